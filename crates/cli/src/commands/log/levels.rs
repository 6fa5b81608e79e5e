//! `tampu log levels`.

use std::{collections::BTreeSet, io::Write};

use clap::{Args, Subcommand};
use serde_json::json;
use tampu_log::{
    Threshold,
    logger::control::{Change, Heard, LoggerState, ProcessLoggers, Question},
};

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    level::parse_threshold,
    loggers::{self, Loggers},
    output::table::printable,
    plural::counted,
};

/// Show and set the levels from which loggers publish and print
///
/// Every process that logs is asked, also one that has not logged anything yet. Central: records from this level on are
/// published. Local: records from this level on are printed on the process's standard error.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu log levels\n  tampu log levels --process 'CONTROL/*'\n  tampu log levels set mount Debug\n  \
    tampu log levels set '*' off --local --process CORR\n  tampu log levels refresh"
)]
pub struct Levels {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Loggers of these processes only (* and ? are wildcards)
    #[arg(short, long, value_name = "PATTERN", global = true)]
    process: Option<String>,
    /// Write JSON objects, one a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Set(Set),
    Refresh(Refresh),
}

/// Have processes read their configuration again
///
/// Levels and guards against repetitions of all their loggers become what the configuration says by now, also where they were
/// changed while the processes run. A process without a configuration reads its environment and its defaults; one whose
/// configuration cannot be read says why and stays as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log levels refresh\n  tampu log levels refresh --process 'CONTROL/*'")]
struct Refresh {}

/// Change levels while the processes run
///
/// Every call that begins afterwards goes by the new level, in all threads, until the process ends. A logger that is named
/// later begins with its process's settings.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log levels set mount Debug\n  tampu log levels set 'CONTROL/*' Warning\n  \
    tampu log levels set mount off --local --process CONTROL/DV01")]
struct Set {
    /// The named loggers (* and ? stand for any characters)
    name: String,
    /// The least level that counts; off for none at all
    #[arg(value_parser = parse_threshold)]
    level: Threshold,
    /// Change the level of published records; this is the default without --local
    #[arg(long)]
    central: bool,
    /// Change the level of records printed on standard error
    #[arg(long)]
    local: bool,
}

impl Set {
    /// Returns the change. It changes the printed level only on request, because a process's standard error may have no
    /// reader.
    fn change(&self) -> Change {
        let central = self.central || !self.local;
        Change { central: central.then_some(self.level), local: self.local.then_some(self.level) }
    }

    /// `central and local Debug`.
    fn words(&self) -> String {
        let Change { central, local } = self.change();
        let which: Vec<&str> = [central.map(|_| "central"), local.map(|_| "local")].into_iter().flatten().collect();
        format!("{} {}", which.join(" and "), String::from(self.level))
    }
}

impl Levels {
    pub fn run(self, context: &Context) -> Outcome {
        let loggers = Loggers::find(&context.common.connect, "tampu-levels")?;
        let mut out = std::io::stdout().lock();
        match &self.verb {
            Some(Verb::Set(set)) => self.set(&loggers, set, &mut out),
            Some(Verb::Refresh(_)) => self.refresh(&loggers, &mut out),
            None => {
                let heard = loggers.ask(&Question { source: self.process.clone(), ..Question::default() })?;
                self.show(&heard, &mut out)?;
                loggers::tell_missing(&heard);
                Ok(())
            }
        }
    }

    fn refresh(&self, loggers: &Loggers, out: &mut impl Write) -> Outcome {
        let heard = loggers.ask(&Question { source: self.process.clone(), refresh: true, ..Question::default() })?;
        self.show(&heard, out)?;
        let missing = loggers::missing(&heard);
        if missing.is_empty() { Ok(()) } else { Err(Failure::Failed(missing.join("\n"))) }
    }

    fn set(&self, loggers: &Loggers, set: &Set, out: &mut impl Write) -> Outcome {
        let name = Some(set.name.clone());
        let heard =
            loggers.ask(&Question { source: self.process.clone(), name, set: Some(set.change()), ..Question::default() })?;
        let changed: usize = heard.processes.values().map(|process| process.loggers.len()).sum();
        let missing = loggers::missing(&heard);
        if changed == 0 {
            // A process that does not support the change does not report its loggers either.
            let refused = !heard.unheeded.is_empty();
            return Err(if refused { Failure::Failed(missing.join("\n")) } else { self.none_named(loggers, set, &heard) });
        }
        if self.json {
            self.show(&heard, out)?;
        } else {
            let processes = heard.processes.values().filter(|process| !process.loggers.is_empty()).count();
            let (loggers, processes) = (counted(changed as u64, "logger"), counted(processes as u64, "process"));
            written(writeln!(out, "{loggers} in {processes}: {}", set.words()))?;
        }
        if missing.is_empty() { Ok(()) } else { Err(Failure::Failed(missing.join("\n"))) }
    }

    /// Returns the failure with the existing names, if no name matches the given one.
    fn none_named(&self, loggers: &Loggers, set: &Set, heard: &Heard) -> Failure {
        let mut text = match &self.process {
            Some(source) => format!("no logger '{}' in a process '{source}'", set.name),
            None => format!("no logger '{}'", set.name),
        };
        // Matching processes and their loggers are listed apart, because either name may be wrong.
        let there = loggers.ask(&Question { source: self.process.clone(), ..Question::default() }).unwrap_or_default();
        let names = there.processes.values().flat_map(|process| &process.loggers).map(|logger| logger.name.as_str());
        let sources = heard.processes.values().map(|process| process.source.as_str());
        match (listed(names), listed(sources)) {
            (Some(names), _) => text.push_str(&format!("; there are: {names}")),
            (None, Some(sources)) => text.push_str(&format!("; there are the processes: {sources}")),
            (None, None) => {}
        }
        loggers::missing(heard).iter().for_each(|line| text.push_str(&format!("\n{line}")));
        Failure::Failed(text)
    }

    fn show(&self, heard: &Heard, out: &mut impl Write) -> Outcome {
        let mut rows = Vec::new();
        for (incarnation, process) in &heard.processes {
            rows.extend(process.loggers.iter().map(|logger| (process, logger, incarnation)));
        }
        rows.sort_by_key(|(process, logger, incarnation)| (&process.source, **incarnation, &logger.name));
        if self.json {
            return rows.into_iter().try_for_each(|(ProcessLoggers { source, .. }, logger, incarnation)| {
                let LoggerState { name, central, local, attached } = logger;
                let mut line = json!({
                    "process": source, "incarnation": incarnation, "logger": name, "central": central, "local": local,
                });
                if let Some(attached) = attached {
                    line["attached"] = json!(attached);
                }
                written(writeln!(out, "{line}"))
            });
        }
        let width = rows.iter().map(|(process, ..)| printable(&process.source).chars().count()).fold("process".len(), usize::max);
        let line = |source: &str, central: &str, local: &str, logger: &str| {
            format!("{source:<width$}  {central:<9}  {local:<9}  {logger}")
        };
        written(writeln!(out, "{}", line("process", "central", "local", "logger")))?;
        rows.into_iter().try_for_each(|(process, logger, _)| {
            let (central, local) = (String::from(logger.central), String::from(logger.local));
            let attached =
                logger.attached.map_or(String::new(), |from| format!("  (for attached readers: {})", String::from(from)));
            written(writeln!(out, "{}{attached}", line(&printable(&process.source), &central, &local, &printable(&logger.name))))
        })
    }
}

/// Largest number of names in a message.
const LISTED: usize = 20;

/// The names without repetition, the first of them where there are many.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: BTreeSet<&str> = names.collect();
    let first: Vec<&str> = names.iter().copied().take(LISTED).collect();
    let more = if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
    (!first.is_empty()).then(|| first.join(", ") + &more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_cut_and_none_are_nothing() {
        let names: Vec<String> = (10..35).map(|number| format!("n{number}")).collect();
        let text = listed(names.iter().chain(&names).map(String::as_str)).unwrap();
        assert!(text.starts_with("n10, n11, ") && text.ends_with(", n29 and 5 more"), "{text}");
        assert_eq!(listed(["b", "a", "b"].into_iter()).as_deref(), Some("a, b"));
        assert_eq!(listed(std::iter::empty()), None);
    }

    #[test]
    fn what_is_printed_is_changed_only_where_it_is_said() {
        let set = |central, local| Set { name: "*".into(), level: Threshold::Off, central, local };
        let off = Some(Threshold::Off);
        for (central, local, change, words) in [
            (false, false, Change { central: off, local: None }, "central Off"),
            (true, false, Change { central: off, local: None }, "central Off"),
            (false, true, Change { central: None, local: off }, "local Off"),
            (true, true, Change { central: off, local: off }, "central and local Off"),
        ] {
            assert_eq!((set(central, local).change(), set(central, local).words().as_str()), (change, words));
        }
    }
}
