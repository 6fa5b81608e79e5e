//! `tampu bus ...`: the bus itself.

use clap::Subcommand;

use crate::{context::Context, failure::Outcome};

mod qos;

/// Show what holds on the bus
#[derive(Debug, Subcommand)]
pub enum Bus {
    Qos(qos::ShowQos),
}

impl Bus {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Bus::Qos(qos) => qos.run(context),
        }
    }
}
