//! The commands, as a catalogue: a file a verb, with its options, its help and its action.
//!
//! Help, completions and man pages are made from these definitions; there is no second list of options anywhere.

use clap::{CommandFactory, Parser, Subcommand};

use crate::{
    context::{Common, Context},
    failure::Outcome,
};

pub mod access;
pub mod book;
pub mod bulk;
pub mod bus;
pub mod cert;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod event;
mod hub_api;
pub mod log;
pub mod mail;
pub mod man;
pub mod perf;
pub mod role;
pub mod settings;
pub mod site;
pub mod up;

/// Logs, events, bulk data and the logbook of a telescope, an accelerator or a big experiment.
#[derive(Debug, Parser)]
#[command(name = "tampu", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Tampu {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no hub or peer could be reached.\n\
    Data goes to standard output, everything else to standard error. Try first: tampu up --demo --tail";

/// The verbs of the command line.
#[derive(Debug, Subcommand)]
pub enum Command {
    Up(up::Up),
    Demo(demo::Demo),
    #[command(subcommand)]
    Log(Box<log::Log>),
    #[command(subcommand)]
    Event(Box<event::Event>),
    Book(Box<book::Book>),
    #[command(subcommand)]
    Bulk(Box<bulk::Bulk>),
    #[command(subcommand)]
    Bus(bus::Bus),
    Access(access::Access),
    Settings(settings::Settings),
    Mail(mail::MailCommand),
    #[command(subcommand)]
    Perf(perf::Perf),
    Cert(cert::Cert),
    Site(site::Site),
    Doctor(doctor::Doctor),
    #[command(hide = true)]
    Role(role::Role),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Command::Up(up) => up.run(context),
            Command::Demo(demo) => demo.run(context),
            Command::Log(log) => log.run(context),
            Command::Event(event) => event.run(context),
            Command::Book(book) => book.run(context),
            Command::Bulk(bulk) => bulk.run(context),
            Command::Bus(bus) => bus.run(context),
            Command::Access(access) => access.run(context),
            Command::Settings(settings) => settings.run(context),
            Command::Mail(mail) => mail.run(context),
            Command::Perf(perf) => perf.run(context),
            Command::Cert(cert) => cert.run(context),
            Command::Site(site) => site.run(context),
            Command::Doctor(doctor) => doctor.run(context),
            Command::Role(role) => role.run(),
            Command::Completions(completions) => completions.run(Tampu::command()),
            Command::Man(man) => man.run(Tampu::command()),
        }
    }
}
