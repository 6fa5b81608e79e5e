//! `tampu`: the command line, and the only main.
//!
//! Commands return their failure; `main` prints it once.

#![allow(missing_docs)]

use std::{io::IsTerminal, process::ExitCode};

use clap::Parser;

mod author;
mod commands;
mod connect;
mod context;
mod demo;
mod desktop;
mod failure;
mod files;
mod filter;
#[cfg(test)]
mod flags;
mod hubs;
mod interrupt;
mod keeper;
mod level;
mod live;
mod loggers;
mod measure;
mod near;
mod output;
mod paint;
mod pause;
mod plural;
mod private;
mod progress;
mod seen;
mod terminal;
mod time_expression;
mod time_text;
mod viewer;

use commands::{Command, Tampu};
use context::{Common, Context};
use failure::Outcome;
use interrupt::Interrupt;

fn main() -> ExitCode {
    let Tampu { common, command } = match Tampu::try_parse() {
        Ok(tampu) => tampu,
        Err(error) => return refused(&error),
    };
    if !matches!(command, Command::Man(_)) {
        private::close();
    }
    time_text::choose(common.utc);
    let outcome = run(common, command);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(text) = failure.message() {
                eprintln!("tampu: {text}");
            }
            failure.code()
        }
    }
}

fn run(common: Common, command: Command) -> Outcome {
    // Files of other processes are mapped. Without the handler a shortened one would end this process.
    let _ = tampu_bus::survive_truncation();
    // It confines itself before it starts the thread that waits for signals.
    if let Command::Role(role) = command {
        return role.run();
    }
    let common = Common { connect: common.connect.or_environment()?, ..common };
    command.run(&Context { common, interrupt: Interrupt::install()? })
}

/// Prints help, or why the command line cannot be understood.
fn refused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe is not an error of `--help`.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render();
    let text = if std::io::stderr().is_terminal() { text.ansi().to_string() } else { text.to_string() };
    eprint!("{}", failure::plain(&text));
    ExitCode::from(2)
}
