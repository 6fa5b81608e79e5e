//! `tampu log send`.

use std::{io::BufRead, time::Duration};

use clap::{Args, ValueEnum};
use tampu_log::{
    Grade, LogSettings, Logger, Threshold,
    logger::{Reread, repeat::RepeatGuard, variable},
};
use tampu_types::units::parse_duration;
use tampu_types::{Datum, Level, LogRecord, SourceName};

use crate::{
    context::Context,
    failure::{Failure, Outcome},
    level::parse_level,
    time_expression::now,
};

/// Log one record, or one for each line of standard input
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tampu log send --level Warning --source CONTROL/DV01 'cable wrap near its limit' --value angle=269.9"
)]
pub struct Send {
    /// The message; without it every line of standard input is a record
    message: Option<String>,
    /// Level of the record
    #[arg(long, default_value = "Info", value_name = "LEVEL", value_parser = parse_level)]
    level: Level,
    /// The component that the record is about
    #[arg(short = 's', long, value_name = "NAME", default_value = "", hide_default_value = true)]
    source: String,
    /// The name of the process that the record comes from
    #[arg(short = 'p', long, value_name = "NAME", default_value = "tampu-send")]
    process: String,
    /// Name of the logger
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    logger: String,
    /// Address the record to these audiences only
    #[arg(long = "audience", value_name = "NAME,...", value_delimiter = ',')]
    audiences: Vec<String>,
    /// A named value beside the message; repeatable
    #[arg(long = "value", value_name = "NAME=VALUE", value_parser = datum)]
    values: Vec<Datum>,
    /// Id of the error chain
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    stack: String,
    /// Position in the error chain, 0 for the outermost
    #[arg(long, value_name = "N", requires = "stack")]
    stack_level: Option<i32>,
    /// The run or observation that the record belongs to
    #[arg(long, value_name = "RUN", default_value = "", hide_default_value = true)]
    run: String,
    /// The trace that the record belongs to, 32 hexadecimal digits (W3C Trace Context)
    #[arg(long, value_name = "ID", value_parser = hexadecimal::<32>)]
    trace: Option<String>,
    /// The span of the trace, 16 hexadecimal digits
    #[arg(long, value_name = "ID", requires = "trace", value_parser = hexadecimal::<16>)]
    span: Option<String>,
    /// Read records from standard input as JSON objects, one a line, as --json writes them
    #[arg(long, conflicts_with = "message")]
    from_json: bool,
    /// Longest time to wait for the acknowledgement
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    timeout: Duration,
    /// Grade of the acknowledgement to wait for
    #[arg(long, value_name = "GRADE", default_value = "delivered")]
    acknowledged: SendGrade,
}

/// The end of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SendGrade {
    /// All who read the log have the records, and the collector has them on its disk
    Delivered,
    /// The collector has the records on its disk
    Kept,
    /// The collector has the records in its memory and will commit them
    Received,
}

fn hexadecimal<const DIGITS: usize>(text: &str) -> Result<String, String> {
    let is_id =
        text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()) && text.bytes().any(|byte| byte != b'0');
    if is_id { Ok(text.to_owned()) } else { Err(format!("write {DIGITS} hexadecimal digits, not all of them 0")) }
}

fn datum(text: &str) -> Result<Datum, String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok(Datum::new(name, value))
}

impl Send {
    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        let participant = connect.join_hub(&self.process)?;
        let source = SourceName::new(self.process.as_str()).map_err(|error| Failure::Usage(error.to_string()))?;
        let mut settings = LogSettings::isolated(participant.domain().clone(), source);
        settings = settings.overridden_by(variable).map_err(|error| Failure::Usage(error.to_string()))?;
        // The command sends every record, regardless of the level settings in the environment.
        settings.central = Threshold::From(Level::Trace);
        settings.loggers.clear();
        (settings.max_per_s, settings.repeat) = (None, RepeatGuard::default());
        let mut again = settings.clone();
        again.reread = None;
        settings.reread = Some(Reread::new(move || Ok(again.clone())));
        // A person or a pipe waits here, not an instrument: waiting is better than dropping.
        settings.full_wait = self.timeout;
        settings.full_wait_grave = self.timeout;
        settings.close_wait = self.timeout;
        settings.appearance = self.timeout;
        let logger = Logger::on(participant, settings).map_err(|error| Failure::failed("starting the logger", error))?;

        let mut sent = 0u64;
        match &self.message {
            Some(message) => {
                logger.record(self.record(message.clone()));
                sent += 1;
            }
            None => {
                for (number, line) in std::io::stdin().lock().lines().enumerate() {
                    let line = line.map_err(|error| Failure::failed("standard input", error))?;
                    logger.record(self.parse(&line, number + 1)?);
                    sent += 1;
                    if context.interrupt.asked() {
                        break;
                    }
                }
            }
        }
        let dropped = logger.stats().dropped;
        if dropped > 0 {
            return Err(Failure::Failed(format!(
                "{dropped} of {sent} records were dropped: the log ring stayed full for {:?}",
                self.timeout
            )));
        }
        let confirmed = match self.acknowledged {
            SendGrade::Delivered => logger.flush(self.timeout),
            SendGrade::Kept => logger.flush_to_archive(self.timeout),
            SendGrade::Received => logger.wait_until(Grade::Received, self.timeout).is_confirmed(),
        };
        if !confirmed {
            let told = format!("no collector acknowledged the {sent} records within {:?}", self.timeout);
            return Err(Failure::Unreachable(connect.advise(&told)));
        }
        Ok(())
    }

    fn parse(&self, line: &str, number: usize) -> Result<LogRecord, Failure> {
        if !self.from_json {
            return Ok(self.record(line.to_owned()));
        }
        let bad = |error: serde_json::Error| Failure::Failed(format!("standard input, line {number}: no record: {error}"));
        let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).map_err(bad)?;
        // The sender of a record may omit its time, unlike a file.
        fields.entry("time").or_insert_with(|| now().to_rfc3339().into());
        let mut record: LogRecord = serde_json::from_value(fields.into()).map_err(bad)?;
        record.id = None;
        record.received = None;
        Ok(record)
    }

    fn record(&self, message: String) -> LogRecord {
        let mut record = LogRecord::new(self.level, message);
        record.source_object.clone_from(&self.source);
        record.process.clone_from(&self.process);
        record.logger.clone_from(&self.logger);
        record.audiences.clone_from(&self.audiences);
        record.data.clone_from(&self.values);
        record.stack_id.clone_from(&self.stack);
        record.stack_level = self.stack_level;
        record.run_id.clone_from(&self.run);
        // The logger makes fields of them.
        let ids = [("trace_id", &self.trace), ("span_id", &self.span)];
        record.data.extend(ids.into_iter().filter_map(|(name, id)| Some(Datum::new(name, id.as_deref()?))));
        record
    }
}
