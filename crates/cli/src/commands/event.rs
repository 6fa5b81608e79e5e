//! `tampu event ...`.

use clap::Subcommand;

use crate::{commands::Context, failure::Outcome};

pub mod conf;
pub mod doctor;
pub mod get;
pub mod list;
pub mod publish;
mod show;
pub mod sub;

/// List, read, follow and publish attributes; see and set when they send events, and why none come
#[derive(Debug, Subcommand)]
pub enum Event {
    List(list::List),
    Get(get::Get),
    Sub(sub::Sub),
    #[command(name = "pub")]
    Publish(publish::Publish),
    Conf(conf::Conf),
    Doctor(doctor::Doctor),
}

impl Event {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Event::List(list) => list.run(context),
            Event::Get(get) => get.run(context),
            Event::Sub(sub) => sub.run(context),
            Event::Publish(publish) => publish.run(context),
            Event::Conf(conf) => conf.run(context),
            Event::Doctor(doctor) => doctor.run(context),
        }
    }
}
