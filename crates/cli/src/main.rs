//! `tampu`: the command line, and the only main.
//!
//! Commands return what went wrong; it is printed here, once.

#![allow(missing_docs)]

use std::process::ExitCode;

use clap::Parser;

mod commands;
mod connect;
mod demo;
mod failure;
mod files;
mod filter;
mod interrupt;
mod keeper;
mod live;
mod loggers;
mod measure;
mod output;
mod paint;
mod pause;
mod progress;
mod seen;
mod terminal;
mod time_expression;
mod viewer;

use commands::{Context, Tampu};
use interrupt::Interrupt;

fn main() -> ExitCode {
    let Tampu { common, command } = Tampu::parse();
    let outcome = Interrupt::install().and_then(|interrupt| command.run(&Context { common, interrupt }));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(text) = failure.text() {
                eprintln!("tampu: {text}");
            }
            failure.code()
        }
    }
}
