//! `tampu bulk control ...`.

use std::{io::Write, time::Duration};

use clap::{Args, Subcommand};
use indicatif::DecimalBytes;
use serde_json::{Value, json};
use tampu_bulk::{
    Name,
    control::{self, ControlCommand, ControlKind, ControlState, FASTEST, OpenCommand, SLOWEST, StartCommand},
};
use tampu_types::units::{parse_duration, parse_size};

use super::choices::{OnOff, ProtectionChoice, Protocol};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    output::table::print_line,
};

/// Start, pace and stop senders of other programs, and open and close their receivers
///
/// A program offers this under a name: `tampu bulk send --control NAME`, `tampu bulk recv --control NAME`, or by a call of
/// the library. The rules of its host decide about each command: by default only the user of that host may give it.
/// Ends with 3 if no program offers the name.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu bulk control list\n  tampu bulk control start correlator --parameter uid://A002/X1\n  \
    tampu bulk control pace correlator 50MB\n  tampu bulk control open archive --flow spectra --protocol udp"
)]
pub struct Control {
    #[command(subcommand)]
    action: Action,
}

/// Options of every command.
#[derive(Debug, Args)]
struct Asking {
    /// Longest time to wait for the answer
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    timeout: Duration,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// The name of an offer.
#[derive(Debug, Args)]
struct Named {
    /// The name under which the program offers its control
    name: Name,
    #[command(flatten)]
    asking: Asking,
}

/// A sender, and one of its flows.
#[derive(Debug, Args)]
struct OfFlow {
    #[command(flatten)]
    named: Named,
    /// The flow [default: all flows]
    #[arg(long, value_name = "NAME")]
    flow: Option<Name>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what programs offer
    List(Asking),
    /// Show the state of a sender or a receiver
    State(Named),
    /// Start sending: what the program chooses, or one of the files that it offers
    Start(Start),
    /// Limit the rate of a sender, also of a running transfer
    Pace(Pace),
    /// Send no data until it is resumed
    Pause(OfFlow),
    /// Go on sending after a pause
    Resume(OfFlow),
    /// End the running transfer of a sender
    Stop(OfFlow),
    /// Open a receiver, with settings that may be stricter than those of its program
    Open(Open),
    /// Close a receiver; its running transfers end incomplete
    Close(Named),
}

#[derive(Debug, Args)]
struct Start {
    #[command(flatten)]
    named: Named,
    /// One of the files that the program offers, by its name at the receivers [default: the program decides]
    file: Option<String>,
    /// The flow [default: the only one]
    #[arg(long, value_name = "NAME")]
    flow: Option<Name>,
    /// A text that receivers get before the data
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    parameter: String,
}

#[derive(Debug, Args)]
struct Pace {
    #[command(flatten)]
    named: Named,
    /// Bytes a second: 50MB, 1GiB; none lifts the limit
    #[arg(value_parser = parse_rate)]
    rate: f64,
    /// The flow [default: all flows]
    #[arg(long, value_name = "NAME")]
    flow: Option<Name>,
}

#[derive(Debug, Args)]
struct Open {
    #[command(flatten)]
    named: Named,
    /// The flows, separated by commas or repeated [default: all flows of the program]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    flow: Vec<Name>,
    /// Transport of the data [default: those of the program]
    #[arg(long, value_enum, value_name = "PROTOCOL")]
    protocol: Option<Protocol>,
    /// Checksums on the data
    #[arg(long, value_enum, value_name = "CHECKSUM")]
    checksum: Option<OnOff>,
    /// Least protection of the connection, at least that of the program
    #[arg(long, value_enum, value_name = "PROTECTION")]
    protection: Option<ProtectionChoice>,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    if text == "none" {
        return Ok(0.0);
    }
    let rate = parse_size(text).map_err(|why| format!("{why}; or write none for no limit"))? as f64;
    if (SLOWEST..=FASTEST).contains(&rate) {
        return Ok(rate);
    }
    let (slowest, fastest) = (DecimalBytes(SLOWEST as u64), DecimalBytes(FASTEST as u64));
    Err(format!("use {slowest} to {fastest} a second, or none for no limit"))
}

impl Control {
    pub fn run(self, context: &Context) -> Outcome {
        let (named, command) = match self.action {
            Action::List(asking) => return list(&asking, context),
            Action::State(named) => (named, ControlCommand::State),
            Action::Start(Start { named, file, flow, parameter }) => {
                (named, ControlCommand::Start(StartCommand { flow, parameter, file }))
            }
            Action::Pace(Pace { named, rate, flow }) => (named, ControlCommand::Pace { flow, bytes_per_s: rate }),
            Action::Pause(OfFlow { named, flow }) => (named, ControlCommand::Pause { flow }),
            Action::Resume(OfFlow { named, flow }) => (named, ControlCommand::Resume { flow }),
            Action::Stop(OfFlow { named, flow }) => (named, ControlCommand::Stop { flow }),
            Action::Open(open) => open.command(),
            Action::Close(named) => (named, ControlCommand::Close),
        };
        let participant = context.common.connect.join_hub("tampu-bulk-control")?;
        let state = control::command(&participant, &named.name, command, named.asking.timeout).map_err(|error| {
            let text = error.to_string();
            if error.is_unreachable() { Failure::Unreachable(text) } else { Failure::Failed(text) }
        })?;
        show(&state, named.asking.json, &mut std::io::stdout().lock())
    }
}

impl Open {
    fn command(self) -> (Named, ControlCommand) {
        let open = OpenCommand {
            flows: self.flow,
            protocol: self.protocol.map(Into::into),
            checksum: self.checksum.map(OnOff::is_on),
            protection: self.protection.map(ProtectionChoice::protection),
        };
        (self.named, ControlCommand::Open(open))
    }
}

fn list(asking: &Asking, context: &Context) -> Outcome {
    let participant = context.common.connect.join_hub("tampu-bulk-control")?;
    let found = control::list(&participant, asking.timeout).map_err(|error| context.common.connect.call_failed(&error))?;
    let mut out = std::io::stdout().lock();
    found.iter().try_for_each(|state| show(state, asking.json, &mut out))?;
    if found.is_empty() && !asking.json {
        written(writeln!(out, "no program offers its control; 'tampu bulk send --control NAME' does"))?;
    }
    Ok(())
}

/// Writes a state. Names are chosen by other processes.
fn show(state: &ControlState, as_json: bool, out: &mut impl Write) -> Outcome {
    if as_json {
        return written(writeln!(out, "{}", json!(state)));
    }
    let does = match (state.kind, state.active) {
        (ControlKind::Sender, true) => "sends",
        (ControlKind::Sender, false) => "sends nothing",
        (ControlKind::Receiver, true) => "open",
        (ControlKind::Receiver, false) => "closed",
    };
    let kind = state.kind.name();
    let mut line = format!("{}: {kind} of stream '{}' by {}, {does}", state.name, state.stream, state.source);
    match (&state.failure, state.kind) {
        (None, _) => {}
        (Some(why), ControlKind::Sender) => line.push_str(&format!("; the last start ended early: {why}")),
        (Some(why), ControlKind::Receiver) => line.push_str(&format!("; the last opening failed: {why}")),
    }
    print_line(out, &line)?;
    let flows = state.report[kind]["flows"].as_array().map(Vec::as_slice).unwrap_or_default();
    flows.iter().try_for_each(|flow| print_line(out, &format!("  {}", flow_line(flow, state.kind))))
}

fn flow_line(flow: &Value, kind: ControlKind) -> String {
    let bytes = |name: &str| DecimalBytes(flow[name].as_f64().unwrap_or(0.0) as u64);
    let name = flow["flow"].as_str().unwrap_or("-");
    if kind == ControlKind::Receiver {
        return format!("flow '{name}': {} transfers, {}, {} lost", flow["transfers"], bytes("bytes"), bytes("lost_bytes"));
    }
    let limit = if flow["throttle"].is_number() { format!(" of {}/s", bytes("throttle")) } else { String::new() };
    let paused = if flow["paused"] == true { ", paused" } else { "" };
    format!("flow '{name}': transfer {}, {} at {}/s{limit}{paused}", flow["transfer"], bytes("bytes"), bytes("rate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_sizes_within_limits_or_none() {
        assert_eq!(parse_rate("50MB"), Ok(50e6));
        assert_eq!(parse_rate("none"), Ok(0.0));
        for wrong in ["0", "5", "2TB", "fast", "-1MB"] {
            assert!(parse_rate(wrong).unwrap_err().contains("none for no limit"), "{wrong}");
        }
    }

    #[test]
    fn texts_of_other_processes_cannot_drive_the_terminal() {
        let evil = "a\x1b[2J\u{9b}31m\nc";
        let report = json!({"sender": {"flows": [{"flow": evil, "transfer": evil, "throttle": 1e6, "paused": true}]}});
        let state = json!({"name": "x", "kind": "sender", "process": evil, "source": evil, "stream": "s", "active": true,
            "starts": 1, "failure": evil, "report": report});
        let mut out = Vec::new();
        show(&serde_json::from_value(state).unwrap(), false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
        assert!(text.contains("of 1.00 MB/s, paused") && text.contains("the last start ended early: a"), "{text}");
    }
}
