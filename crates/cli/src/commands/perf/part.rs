//! The parts of a measurement, each a process of its own; started by `tampu perf`, not by people.

use clap::{Args, Subcommand};

use crate::{
    commands::perf::{
        bulk::{
            giver::{self, Giving},
            passer::{self, Passing},
            taker::{self, Taking},
        },
        event::{
            Way,
            publisher::{self, Publishing},
            subscriber,
        },
        follower, members, process, producer,
        samples::{self, Writing},
    },
    context::Context,
    failure::Outcome,
};

/// A part of a measurement
#[derive(Debug, Args)]
pub struct Part {
    #[command(subcommand)]
    part: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Logs as fast as it can, or at a rate
    Producer(producer::Asked),
    /// Follows the log and checks every record
    Client { name: String, size: usize },
    /// Writes samples as fast as it can
    Writer {
        seconds: f64,
        size: usize,
        readers: usize,
        #[arg(action = clap::ArgAction::Set)]
        loans: bool,
        #[arg(action = clap::ArgAction::Set)]
        direct: bool,
    },
    /// Reads samples and checks them
    Reader {
        name: String,
        size: usize,
        #[arg(action = clap::ArgAction::Set)]
        direct: bool,
    },
    /// Pushes values of attributes
    Publisher {
        seconds: f64,
        size: usize,
        clients: usize,
        rate: f64,
        attributes: usize,
        #[arg(value_enum)]
        way: Way,
    },
    /// Subscribes to them and checks every element
    Subscriber {
        name: String,
        attributes: usize,
        #[arg(value_enum)]
        way: Way,
    },
    /// Sends blocks of data
    Giver(Giving),
    /// Takes them and checks every byte
    Taker(Taking),
    /// Gives them on
    Passer(Passing),
    /// Joins and stays
    Member(members::Asked),
}

impl Part {
    pub fn run(self, context: &Context) -> Outcome {
        let input = process::input();
        let ended = &input.ended;
        let report = match self.part {
            Which::Producer(asked) => producer::produce(context, &asked)?,
            Which::Client { name, size } => follower::follow(context, &name, size, ended)?,
            Which::Writer { seconds, size, readers, loans, direct } => {
                samples::writer(context, &Writing { seconds, size, readers, loans, direct })?
            }
            Which::Reader { name, size, direct } => samples::reader(context, &name, size, direct, ended)?,
            Which::Publisher { seconds, size, clients, rate, attributes, way } => {
                publisher::publish(context, &Publishing { seconds, size, clients, rate, attributes, way }, &input)?
            }
            Which::Subscriber { name, attributes, way } => subscriber::subscribe(context, &name, attributes, way, ended)?,
            Which::Giver(how) => giver::giver(context, &how)?,
            Which::Taker(how) => taker::taker(context, &how, ended)?,
            Which::Passer(how) => passer::passer(context, &how, ended)?,
            Which::Member(asked) => members::member(context, &asked, ended)?,
        };
        process::say(&report)
    }
}
