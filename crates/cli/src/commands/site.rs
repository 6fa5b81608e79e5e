//! `tampu site ...`: the hosts of a domain, and who writes, reads, lags and loses.

use std::{io::Write, time::Duration};

use clap::{Args, Subcommand};
use serde::Serialize;
use tampu_hub::site::{
    gather::{self, Picture},
    streams,
};
use tampu_types::units::parse_duration;

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    output::rows::write_rows,
};

mod tables;

/// Show the hosts of this domain, their processes, topics, readers and links
///
/// Without a verb: hosts. A reader of another host that the rules keep from a topic does not see it here either.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu site\n  tampu site readers\n  tampu site topics --interval 5s\n  \
    tampu site links --json\n  tampu doctor --site")]
pub struct Site {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Time between the two looks from which rates are computed
    #[arg(long, global = true, value_name = "DURATION", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,
    /// Write JSON objects, one a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Verb {
    /// Hosts with a node: version, clock, processes, connections (the default)
    Hosts,
    /// Processes on the bus, with the streams that each writes and the readers that it has
    Processes,
    /// Topics, with writers, readers, samples and bytes a second
    Topics,
    /// Readers of each stream that are behind or lost something; with --json all of them
    Readers,
    /// Encrypted links between hosts, with bytes a second in both directions
    Links,
}

impl Site {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub("tampu-site")?;
        let picture = Picture::take(&participant, self.needs(), self.interval, &|time| {
            context.interrupt.wait(time);
        })
        .map_err(|error| context.common.connect.call_failed(&error))?;
        let out = &mut std::io::stdout().lock();
        match self.verb.unwrap_or(Verb::Hosts) {
            Verb::Hosts => self.show(out, &tables::hosts(&picture)),
            Verb::Processes => self.show(out, &tables::processes(&picture)),
            Verb::Topics => self.show(out, &streams::topics(&picture, true)),
            Verb::Readers => self.show(out, &streams::readers(&picture, self.json)),
            Verb::Links => self.show(out, &tables::links(&picture)),
        }?;
        for process in &picture.silent {
            eprintln!("tampu: {} did not say what it writes and reads: {}", process.source, process.why);
        }
        Ok(())
    }

    fn needs(&self) -> gather::Needs {
        let verb = self.verb.unwrap_or(Verb::Hosts);
        gather::Needs {
            states: !matches!(verb, Verb::Links),
            rates: matches!(verb, Verb::Topics | Verb::Links),
            hosts: matches!(verb, Verb::Hosts | Verb::Links | Verb::Processes),
            spools: false,
            itself: false,
        }
    }

    fn show<R: tables::Row>(&self, out: &mut impl Write, rows: &[R]) -> Outcome {
        if self.json {
            return rows.iter().try_for_each(|row| write_json(out, row));
        }
        if rows.is_empty() {
            return written(writeln!(out, "{}", R::NONE));
        }
        write_rows(out, R::TITLES, &rows.iter().map(tables::Row::cells).collect::<Vec<_>>())
    }
}

fn write_json(out: &mut impl Write, row: &impl Serialize) -> Outcome {
    let line = serde_json::to_string(row).map_err(|error| Failure::failed("a row as JSON", error))?;
    written(writeln!(out, "{line}"))
}
