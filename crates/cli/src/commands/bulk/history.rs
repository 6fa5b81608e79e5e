//! `tampu bulk history`.

use std::io::Write;

use clap::Args;
use indicatif::DecimalBytes;
use serde_json::json;
use tampu_bulk::{
    asking,
    transfers::{Outcome as TransferOutcome, PAGE, Transfer, TransferQuery},
};
use tampu_bus::Participant;

use crate::{
    connect::ANSWER_TIMEOUT,
    context::Context,
    failure::{Failure, Outcome, written},
    filter::SpanArgs,
    output::table::print_line,
    plural::counted,
    time_expression::now,
    time_text,
};

/// Show running and kept transfers, the oldest first
///
/// A hub that collects keeps the begin and the end of every transfer in its archive: sender, receivers, bytes, losses, times. The last ones are shown;
/// -n 0 shows all.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu bulk history --since 1h\n  tampu bulk history --stream correlator --outcome incomplete -n 0\n  \
    tampu bulk history --parameter X1a2 --json"
)]
pub struct History {
    #[command(flatten)]
    span: SpanArgs,
    /// Only this transfer, as INCARNATION.NUMBER.STREAM#FLOW
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Only streams of this name or pattern
    #[arg(long, value_name = "PATTERN")]
    stream: Option<String>,
    /// Only flows of this name or pattern
    #[arg(long, value_name = "PATTERN")]
    flow: Option<String>,
    /// Only of senders of this name or pattern
    #[arg(long, value_name = "PATTERN")]
    source: Option<String>,
    /// Only to receivers of this name or pattern
    #[arg(long, value_name = "PATTERN")]
    receiver: Option<String>,
    /// Only from this host
    #[arg(long, value_name = "PATTERN")]
    host: Option<String>,
    /// Only with this text in the parameter or the name of the file
    #[arg(long, value_name = "TEXT")]
    parameter: Option<String>,
    /// Only with this state or result: under_way, complete, incomplete or broken_off
    #[arg(long, value_name = "OUTCOME", value_parser = outcome)]
    outcome: Option<TransferOutcome>,
    /// Show the last N transfers; 0 for all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    limit: u64,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

fn outcome(name: &str) -> Result<TransferOutcome, String> {
    TransferOutcome::from_name(name).ok_or_else(|| "write under_way, complete, incomplete or broken_off".to_owned())
}

impl History {
    pub fn run(self, context: &Context) -> Outcome {
        let (since, until) = self.span.resolve(now())?;
        let participant = context.common.connect.join_hub("tampu-bulk-history")?;
        let query = TransferQuery {
            since,
            until,
            id: self.id,
            stream: self.stream,
            flow: self.flow,
            source: self.source,
            receiver: self.receiver,
            host: self.host,
            parameter: self.parameter,
            outcome: self.outcome,
            ..TransferQuery::default()
        };
        show(context, &participant, query, self.limit, self.json)
    }
}

/// Writes the last transfers of a query, the oldest first; all, if `limit` is 0.
pub fn show(context: &Context, participant: &Participant, query: TransferQuery, limit: u64, json: bool) -> Outcome {
    let most = if limit == 0 { u64::MAX } else { limit };
    let mut query = query;
    let (mut newest_first, mut damaged): (Vec<Transfer>, u64) = (Vec::new(), 0);
    loop {
        let left = most.saturating_sub(newest_first.len() as u64);
        query.limit = Some(left.min(PAGE));
        let page =
            asking::page(participant, &query, ANSWER_TIMEOUT).map_err(|error| context.common.connect.call_failed(&error))?;
        damaged = damaged.max(page.damaged);
        if page.left_out > 0 {
            eprintln!("tampu: {} running transfers are left out: the answer would have been too long", page.left_out);
        }
        newest_first.extend(page.transfers);
        query.after = page.cursor;
        if context.interrupt.asked() {
            return Err(Failure::Failed("interrupted".to_owned()));
        }
        if query.after.is_none() || newest_first.len() as u64 >= most {
            break;
        }
    }
    newest_first.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    if damaged > 0 {
        eprintln!("tampu: {} of the archive cannot be read; tampu bulk archive check lists them", counted(damaged, "part"));
    }
    write_all(newest_first.iter().rev(), json, &mut std::io::stdout().lock())
}

/// Writes transfers, one a line. Names are chosen by other processes.
fn write_all<'a>(transfers: impl Iterator<Item = &'a Transfer>, json: bool, out: &mut impl Write) -> Outcome {
    for one in transfers {
        let (file, text) = one.file_and_text();
        if json {
            let mut object = json!(one);
            object["id"] = json!(one.id());
            object["parameter"] = json!(text);
            if let Some(label) = file {
                object["file"] = json!(label.file);
                object["size"] = json!(label.size);
            }
            written(writeln!(out, "{}", time_text::json_line(&object, "a transfer")?))?;
            continue;
        }
        let named = match &file {
            Some(label) if text.is_empty() => label.file.to_string(),
            Some(label) => format!("{}  {text}", label.file),
            None => text,
        };
        let why = if one.why.is_empty() { String::new() } else { format!("  {}", one.why.join("; ")) };
        let line = format!(
            "{}  {}#{}  {}  {:<10}  {:>10}  {:>10}/s  {}  {named}{why}",
            time_text::local(one.began),
            one.stream,
            one.flow,
            one.transfer,
            one.outcome.name(),
            DecimalBytes(one.bytes).to_string(),
            DecimalBytes(one.bytes_per_s as u64).to_string(),
            one.source,
        );
        print_line(out, &line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_processes_cannot_drive_the_terminal() {
        let evil = "a\x1b[2J\u{9b}31m\u{202e}b\nc";
        let one = json!({"stream": "s", "flow": "f", "transfer": 1, "source": evil, "incarnation": "00000001-00000002-0000000000000003",
            "parameter": evil, "began": 1, "ended": 2, "outcome": "incomplete", "bytes": 1, "seconds": 0.0, "bytes_per_s": 0.0,
            "receivers": 1, "lost_bytes": 0, "why": [evil]});
        let one: Transfer = serde_json::from_value(one).unwrap();
        let mut out = Vec::new();
        write_all([&one].into_iter(), false, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().count() == 1 && text.contains("a\\x1b[2J\\x9b31m\\u{202e}b⏎c"), "{text}");
        assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}'), "{text:?}");
    }
}
