//! `tampu log send`.

use std::{io::BufRead, time::Duration};

use clap::Args;
use tampu_log::{
    LogSettings, Logger, Threshold,
    logger::{Reread, repeat::RepeatGuard, variable},
};
use tampu_types::{Datum, Level, LogRecord, SourceName};

use crate::{
    commands::Context,
    failure::{Failure, Outcome},
    time_expression::{now, parse_duration},
};

/// Log one record, or one for each line of standard input
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tampu log send --level Warning --source CONTROL/DV01 'cable wrap near its limit' --data angle=269.9"
)]
pub struct Send {
    /// What to say; without it every line of standard input is a record
    message: Option<String>,
    /// How grave it is
    #[arg(short = 'l', long, default_value = "Info", value_name = "LEVEL")]
    level: Level,
    /// The component it is about
    #[arg(short = 's', long, value_name = "NAME", default_value = "")]
    source: String,
    /// The process it speaks for
    #[arg(short = 'p', long, value_name = "NAME", default_value = "tampu-send")]
    process: String,
    /// The named logger
    #[arg(long, value_name = "NAME", default_value = "")]
    logger: String,
    /// For these audiences only
    #[arg(short = 'a', long = "audience", value_name = "NAME,...", value_delimiter = ',')]
    audiences: Vec<String>,
    /// A named value beside the message
    #[arg(short = 'd', long = "data", value_name = "NAME=VALUE", value_parser = datum)]
    data: Vec<Datum>,
    /// The error chain it belongs to
    #[arg(long, value_name = "STACK ID", default_value = "")]
    stack: String,
    /// Its place in that chain, 0 the outermost
    #[arg(long, value_name = "N", requires = "stack")]
    stack_level: Option<i32>,
    /// The run or observation it belongs to
    #[arg(long, value_name = "RUN", default_value = "")]
    run: String,
    /// Records on standard input are JSON objects as --json writes them
    #[arg(long, conflicts_with = "message")]
    json: bool,
    /// How long to wait until it is delivered
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    timeout: Duration,
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
        // What somebody sends is sent, whatever the environment says of programs.
        settings.central = Threshold::From(Level::Trace);
        settings.loggers.clear();
        (settings.max_per_s, settings.repeat) = (None, RepeatGuard::default());
        let mut again = settings.clone();
        again.reread = None;
        settings.reread = Some(Reread::new(move || Ok(again.clone())));
        // A person or a pipe waits here, not an instrument: rather wait than drop.
        settings.full_wait = self.timeout;
        settings.full_wait_grave = self.timeout;
        settings.close_wait = self.timeout;
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
            return Err(Failure::Failed(format!("{dropped} of {sent} records found no room within {:?}", self.timeout)));
        }
        if !logger.flush(self.timeout) {
            let told = format!("nobody has confirmed {sent} records within {:?}", self.timeout);
            return Err(Failure::Unreachable(connect.advise(&told)));
        }
        Ok(())
    }

    fn parse(&self, line: &str, number: usize) -> Result<LogRecord, Failure> {
        if !self.json {
            return Ok(self.record(line.to_owned()));
        }
        let bad = |error: serde_json::Error| Failure::Failed(format!("standard input, line {number}: no record: {error}"));
        let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).map_err(bad)?;
        // Who sends a record may leave its time to us, unlike a file.
        fields.entry("time").or_insert_with(|| now().to_ns_text().into());
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
        record.data.clone_from(&self.data);
        record.stack_id.clone_from(&self.stack);
        record.stack_level = self.stack_level;
        record.run_id.clone_from(&self.run);
        record
    }
}
