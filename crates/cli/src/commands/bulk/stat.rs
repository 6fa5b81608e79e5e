//! `tampu bulk stat`.

use std::{io::Write, time::Duration};

use clap::Args;
use indicatif::DecimalBytes;
use serde_json::{Value, json};
use tampu_bulk::{Name, asking, transfers::TransferQuery};

use super::history;
use crate::{
    context::Context,
    failure::{Outcome, written},
    output::table::print_line,
    plural::counted,
};

/// Time limit for answers of senders and receivers.
const PATIENCE: Duration = Duration::from_secs(5);
/// Transfers of --past.
const PAST: u64 = 1000;

/// Show running senders and receivers, and for whom they wait
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu bulk stat\n  tampu bulk stat --stream correlator --json")]
pub struct Stat {
    /// Only this stream
    #[arg(long, value_name = "NAME")]
    stream: Option<Name>,
    /// Show running and kept transfers, the oldest first, at most 1000; as `tampu bulk history` does
    #[arg(long)]
    past: bool,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Stat {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub("tampu-bulk-stat")?;
        if self.past {
            let stream = self.stream.as_ref().map(|name| name.as_str().to_owned());
            let query = TransferQuery { stream, ..TransferQuery::default() };
            return history::show(context, &participant, query, PAST, self.json);
        }
        let found = asking::ask(&participant, PATIENCE).map_err(|error| context.common.connect.call_failed(&error))?;
        let mut rows: Vec<(String, Value)> = Vec::new();
        if found.unreadable > 0 {
            eprintln!("tampu: {} answers could not be read", found.unreadable);
        }
        for answer in found.list {
            for what in ["receiver", "sender"] {
                let state = &answer[what];
                if state.is_object() && self.wants(state) {
                    rows.push((what.to_owned(), state.clone()));
                }
            }
        }
        rows.sort_by_key(|(what, state)| (text(state, "stream").to_owned(), what.clone(), text(state, "source").to_owned()));
        self.show(&rows, &mut std::io::stdout().lock())
    }

    /// Writes the states of senders and receivers. Names are chosen by other processes.
    fn show(&self, rows: &[(String, Value)], out: &mut impl Write) -> Outcome {
        for (what, state) in rows {
            if self.json {
                written(writeln!(out, "{}", json!({ what: state })))?;
                continue;
            }
            let (stream, source) = (text(state, "stream"), text(state, "source"));
            let at = state["address"].as_str().map(|address| format!(" at {address}")).unwrap_or_default();
            print_line(out, &format!("{what} of stream '{stream}': {source}{at}"))?;
            for flow in list(state, "flows") {
                let lines = if what == "sender" { sent(flow) } else { received(flow) };
                lines.into_iter().try_for_each(|line| print_line(out, &format!("  {line}")))?;
            }
            if let Some(more) = state["flows_left_out"].as_u64() {
                written(writeln!(out, "  and {} more", counted(more, "flow")))?;
            }
        }
        if rows.is_empty() && !self.json {
            written(writeln!(out, "no senders and no receivers"))?;
        }
        Ok(())
    }

    fn wants(&self, state: &Value) -> bool {
        let stream = state["stream"].as_str().and_then(|name| Name::new(name).ok());
        self.stream.is_none() || self.stream == stream
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("-")
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn bytes(value: &Value, name: &str) -> DecimalBytes {
    DecimalBytes(value[name].as_f64().unwrap_or(0.0) as u64)
}

fn sent(flow: &Value) -> Vec<String> {
    let mut line = format!(
        "flow '{}': {}, transfer {}, {} at {}/s, {} not acknowledged",
        text(flow, "flow"),
        text(flow, "phase"),
        flow["transfer"],
        bytes(flow, "bytes"),
        bytes(flow, "rate"),
        bytes(flow, "window")
    );
    if let Some(waits) = flow["waits"].as_f64() {
        let whom: Vec<&str> = list(flow, "waits_for").iter().filter_map(Value::as_str).collect();
        let whom = if whom.is_empty() { "room".to_owned() } else { whom.join(", ") };
        line.push_str(&format!("; waits for {whom}, {waits:.1} s"));
    }
    let receivers = list(flow, "receivers").iter().map(|link| {
        let peer = &link["receiver"];
        let since = link["since"].as_f64().unwrap_or(0.0);
        let (status, transport) = (text(link, "status"), text(link, "transport"));
        let protection = protection(link);
        let mut line = format!(
            "  to {} at {}: {status} for {since:.1} s over {transport}{protection}, {} behind",
            text(peer, "source"),
            text(peer, "address"),
            bytes(link, "behind")
        );
        for (name, what) in [("lost_bytes", "bytes lost"), ("reconnects", "reconnections")] {
            if let Some(count) = link[name].as_u64().filter(|count| *count > 0) {
                line.push_str(&format!(", {count} {what}"));
            }
        }
        for name in ["gave_up", "why"] {
            if link[name].as_str().is_some_and(|why| !why.is_empty()) {
                line.push_str(&format!(" ({})", text(link, name)));
            }
        }
        line
    });
    std::iter::once(line).chain(receivers).collect()
}

/// Returns the protection of a connection that has one.
fn protection(of: &Value) -> String {
    match of["protection"].as_str() {
        None | Some("none") => String::new(),
        Some(level) => format!(", {level}"),
    }
}

fn received(flow: &Value) -> Vec<String> {
    let mut line = format!(
        "flow '{}': {}, {}, {} lost",
        text(flow, "flow"),
        counted(flow["transfers"].as_u64().unwrap_or(0), "transfer"),
        bytes(flow, "bytes"),
        bytes(flow, "lost_bytes")
    );
    let sender = &flow["sender"];
    if sender.is_object() {
        line.push_str(&format!(
            "; from {} at {} over {}{}",
            text(sender, "source"),
            text(sender, "address"),
            text(flow, "transport"),
            protection(flow)
        ));
    }
    for (name, what) in [("waits_for_sender", "waits for its sender"), ("in_callback", "is busy with data")] {
        if let Some(seconds) = flow[name].as_f64() {
            line.push_str(&format!("; {what}, {seconds:.1} s"));
        }
    }
    vec![line]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_processes_cannot_drive_the_terminal() {
        let evil = "a\x1b[2J\u{9b}31m\u{202e}b\nc";
        let peer = json!({"source": evil, "address": evil});
        let link =
            json!({"receiver": peer, "status": evil, "transport": evil, "protection": "encrypted", "gave_up": evil, "why": evil});
        let sent = json!({"flow": evil, "phase": evil, "transfer": evil, "waits": 1.0, "waits_for": [evil], "receivers": [link]});
        let taken = json!({"flow": evil, "sender": peer, "transport": evil});
        let state = |flow| json!({"stream": evil, "source": evil, "address": evil, "flows": [flow]});
        let rows = [("sender".to_owned(), state(sent)), ("receiver".to_owned(), state(taken))];
        let stat = Stat { stream: None, past: false, json: false };
        let mut out = Vec::new();
        stat.show(&rows, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}'), "{text:?}");
        assert!(text.contains("a\\x1b[2J\\x9b31m\\u{202e}b⏎c") && text.contains(", encrypted, "), "{text}");
    }
}
