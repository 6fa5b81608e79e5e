//! Conversion of the `log` crate's records to Tampu's records.
//!
//! ```no_run
//! use tampu_log::{LogSettings, Logger, bridge};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let logger = Logger::open(LogSettings::from_env("CONTROL/DV01".parse()?)?)?;
//! let _flush = bridge::log::install(&logger)?;
//! log::warn!(target: "mount", axis = "az"; "cable wrap at {}", 269.9);
//! # Ok(())
//! # }
//! ```
//!
//! The target names the logger, and the levels of that logger apply. File and line are kept, the module becomes the
//! routine, and key-values become data. The check of a disabled level looks up the target: a hash and a table look-up.
//! Where that costs too much, [`log::set_max_level`](::log::set_max_level) sets a limit that is checked first.

use std::sync::Arc;

use log::kv::{self, Key, Value, VisitSource};
use tampu_text::Statement;
use tampu_types::Level;

use crate::{
    bridge::{
        FLUSH_WAIT, FlushAtEnd, SITES_MAX,
        said::{Place, Said},
        speakers::Speakers,
        table::{Mix, Table},
    },
    logger::Logger,
};

/// A [`log::Log`](::log::Log) that hands everything to a [`Logger`].
#[derive(Clone)]
pub struct LogBridge {
    shared: Arc<Shared>,
}

struct Shared {
    speakers: Speakers,
    met: Table<Met>,
}

/// A place that has spoken, with the names of its values.
struct Met {
    level: Level,
    line: u32,
    file: Box<str>,
    module: Box<str>,
    target: Box<str>,
    names: Box<[Box<str>]>,
    statement: &'static Statement,
}

impl LogBridge {
    /// Hands over to this logger, under the names of the targets.
    pub fn new(logger: &Logger) -> LogBridge {
        LogBridge { shared: Arc::new(Shared { speakers: Speakers::new(logger.clone()), met: Table::new(SITES_MAX) }) }
    }
}

/// Installs the bridge as the program's logger: every record of the `log` crate goes to this logger, at every level
/// that the loggers named after the targets accept. Keep the returned value until the program ends.
pub fn install(logger: &Logger) -> Result<FlushAtEnd, log::SetLoggerError> {
    log::set_boxed_logger(Box::new(LogBridge::new(logger)))?;
    // Each logger has its own level, which changes while the program runs, so no level is excluded here.
    log::set_max_level(log::LevelFilter::Trace);
    Ok(FlushAtEnd { logger: logger.clone() })
}

fn level_of(level: log::Level) -> Level {
    match level {
        log::Level::Error => Level::Error,
        log::Level::Warn => Level::Warning,
        log::Level::Info => Level::Info,
        log::Level::Debug => Level::Debug,
        log::Level::Trace => Level::Trace,
    }
}

impl log::Log for LogBridge {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        let speaker = self.shared.speakers.of(metadata.target());
        speaker.is_some_and(|speaker| speaker.logger.enabled(level_of(metadata.level())))
    }

    fn log(&self, record: &log::Record<'_>) {
        let (level, target) = (level_of(record.level()), record.target());
        let Some(speaker) = self.shared.speakers.of(target).filter(|speaker| speaker.logger.enabled(level)) else { return };
        let place = Place {
            level,
            file: record.file().unwrap_or_default(),
            line: record.line().unwrap_or(0),
            module: record.module_path().unwrap_or_default(),
        };
        let mut said = Said::new();
        said.message(*record.args());
        // It fails only if the visitor fails, and this one does not.
        let _ = record.key_values().visit(&mut Values(&mut said));
        match if speaker.own { self.shared.meet(target, &place, &said) } else { None } {
            Some(met) => said.call(speaker.logger, met.statement),
            None => speaker.logger.record(said.record(&place, target, "")),
        }
    }

    fn flush(&self) {
        self.shared.speakers.common().flush(FLUSH_WAIT);
    }
}

impl Shared {
    fn meet(&self, target: &str, place: &Place<'_>, said: &Said<'_>) -> Option<&Met> {
        if !said.fits() {
            return None;
        }
        let &Place { level, file, line, module } = place;
        let mix = Mix::START.number(u64::from(level.number()) << 32 | u64::from(line)).text(target).text(file);
        let hash = said.names().iter().fold(mix, |mix, name| mix.text(name)).hash();
        let same = |met: &Met| {
            (met.level, met.line, &*met.file, &*met.target, &*met.module) == (level, line, file, target, module)
                && met.names.iter().map(|name| &**name).eq(said.names().iter().copied())
        };
        let make = || Met {
            level,
            line,
            file: file.into(),
            module: module.into(),
            target: target.into(),
            names: said.names().iter().map(|&name| name.into()).collect(),
            statement: place.statement(said.names()),
        };
        self.met.find_or_add(hash, same, make)
    }
}

struct Values<'said, 'kvs>(&'said mut Said<'kvs>);

impl<'kvs> VisitSource<'kvs> for Values<'_, 'kvs> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        match key.to_borrowed_str() {
            Some(name) => self.0.value(name, format_args!("{value}")),
            None => self.0.value_beyond(key.as_str(), format_args!("{value}")),
        }
        Ok(())
    }
}
