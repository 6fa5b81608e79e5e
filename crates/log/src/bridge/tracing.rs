//! Conversion of events and spans of `tracing` to records.
//!
//! ```no_run
//! use tampu_log::{LogSettings, Logger, bridge};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let logger = Logger::open(LogSettings::from_env("CONTROL/DV01".parse()?)?)?;
//! let _flush = bridge::tracing::install(&logger)?;
//! let _scan = tracing::info_span!("scan", scan = 7).entered();
//! tracing::warn!(axis = "az", "cable wrap at {}", 269.9);
//! # Ok(())
//! # }
//! ```
//!
//! The event's message becomes the text. The event's other fields become data, followed by the fields of the enclosing
//! spans, from the inside out; of equal names the innermost counts. The names of the spans, `observation:scan`, become
//! the record's context. An operator who follows the log reads `cable wrap at 269.9 axis=az scan=7`. A search by the
//! value `scan` finds all records of a scan, and a search by the context finds all records of an activity.
//!
//! Rejected: `observation{project=...}:scan{scan=7}` as the context, as in `tracing`'s own output. The log's table does
//! not show contexts, and a search for a value does not find it within a text. A context is stored once for all records
//! that share it, which saves nothing if each scan has its own.
//!
//! The loggers named after the targets have the levels. [`install`] checks the levels before the event's fields are
//! evaluated. A program that combines layers itself gets the same check by [`Layer::wanted`]. Spans are kept at every
//! level, because they give the context of an event even where their own level is disabled. Spans make no records.
//!
//! An event costs its texts and a look at each enclosing span; only the creation of a span allocates. The bridge
//! accepts records of the `log` crate that arrive through `tracing-log`, as whole records; the bridge for that crate is
//! faster.

mod fields;
mod spans;

use std::{fmt, sync::Arc};

use tampu_text::Statement;
use tampu_types::Level;
use tracing_core::{
    Dispatch, Event, Interest, Metadata, Subscriber,
    dispatcher::{self, SetGlobalDefaultError},
    span,
};
use tracing_subscriber::{
    Registry,
    layer::{Context, Filter, SubscriberExt},
    registry::LookupSpan,
};

use crate::{
    bridge::{
        FlushAtEnd, SITES_MAX, TARGETS_MAX,
        said::{Place, Said},
        speakers::Speakers,
        table::{Mix, Table},
        tracing::{
            fields::{FromLog, each_field},
            spans::{Path, SpanSaid},
        },
    },
    logger::Logger,
};

/// A layer that hands every event to a [`Logger`].
#[derive(Clone)]
pub struct Layer {
    shared: Arc<Shared>,
}

/// Filter for the events that a [`Layer`] accepts, so that the fields of other events are not evaluated.
#[derive(Clone)]
pub struct Wanted {
    shared: Arc<Shared>,
}

struct Shared {
    speakers: Speakers,
    voices: Table<Voice>,
    met: Table<Met>,
}

/// A target's logger within spans.
struct Voice {
    target: &'static str,
    path: Path,
    logger: Logger,
}

/// An event of the program within spans, with the names of its values and theirs.
struct Met {
    metadata: &'static Metadata<'static>,
    path: Path,
    names: Box<[&'static str]>,
    logger: Logger,
    statement: &'static Statement,
}

/// Installs a layer as the program's subscriber, which accepts the levels of the loggers named after the targets. Keep
/// the returned value until the program ends.
pub fn install(logger: &Logger) -> Result<FlushAtEnd, SetGlobalDefaultError> {
    let layer = Layer::new(logger);
    let wanted = layer.wanted();
    let layer = tracing_subscriber::Layer::with_filter(layer, wanted);
    dispatcher::set_global_default(Dispatch::new(Registry::default().with(layer)))?;
    Ok(FlushAtEnd { logger: logger.clone() })
}

impl Layer {
    /// Hands over to this logger, under the names of the targets.
    pub fn new(logger: &Logger) -> Layer {
        let speakers = Speakers::new(logger.clone());
        Layer { shared: Arc::new(Shared { speakers, voices: Table::new(TARGETS_MAX), met: Table::new(SITES_MAX) }) }
    }

    /// The filter that asks this layer's loggers.
    pub fn wanted(&self) -> Wanted {
        Wanted { shared: self.shared.clone() }
    }
}

fn level_of(level: tracing_core::Level) -> Level {
    match level {
        tracing_core::Level::ERROR => Level::Error,
        tracing_core::Level::WARN => Level::Warning,
        tracing_core::Level::INFO => Level::Info,
        tracing_core::Level::DEBUG => Level::Debug,
        tracing_core::Level::TRACE => Level::Trace,
    }
}

fn place_of(metadata: &Metadata<'static>) -> Place<'static> {
    Place {
        level: level_of(*metadata.level()),
        file: metadata.file().unwrap_or_default(),
        line: metadata.line().unwrap_or(0),
        module: metadata.module_path().unwrap_or_default(),
    }
}

impl<S> Filter<S> for Wanted {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        if FromLog::is(metadata) {
            // Its target is one of its fields.
            return true;
        }
        let speaker = self.shared.speakers.of(metadata.target());
        speaker.is_some_and(|speaker| metadata.is_span() || speaker.logger.enabled(level_of(*metadata.level())))
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.shared.speakers.of(metadata.target()) {
            None => Interest::never(),
            Some(_) if metadata.is_span() => Interest::always(),
            Some(_) => Interest::sometimes(),
        }
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> tracing_subscriber::Layer<S> for Layer {
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        if self.shared.speakers.of(attributes.metadata().target()).is_none() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let outer = span.scope().skip(1).find_map(|outer| Some(outer.extensions().get::<SpanSaid>()?.path().clone()));
        let said = SpanSaid::new(outer.unwrap_or_default(), attributes);
        // Two layers of this bridge would record the same values of a span.
        span.extensions_mut().replace(said);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(said) = span.extensions_mut().get_mut::<SpanSaid>() {
            said.learn(values);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        if FromLog::is(metadata) {
            return self.shared.take_log_record(event);
        }
        let level = level_of(*metadata.level());
        let Some(speaker) = self.shared.speakers.of(metadata.target()).filter(|speaker| speaker.logger.enabled(level)) else {
            return;
        };
        let mut said = Said::new();
        event.record(&mut each_field(|name, value| match name {
            "message" => said.message(value),
            _ => said.value(name, value),
        }));
        let mut path = None;
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(outer) = span.extensions().get::<SpanSaid>() {
                path.get_or_insert_with(|| outer.path().clone());
                for (name, value) in outer.values() {
                    if !said.has(name) {
                        said.value(name, format_args!("{value}"));
                    }
                }
            }
        }
        let path = path.unwrap_or_default();
        match if speaker.own { self.shared.meet(metadata, &path, &said, speaker.logger) } else { None } {
            Some(met) => said.call(&met.logger, met.statement),
            None => speaker.logger.record(said.record(&place_of(metadata), metadata.target(), path.text())),
        }
    }
}

impl Shared {
    fn meet(&self, metadata: &'static Metadata<'static>, path: &Path, said: &Said<'static>, logger: &Logger) -> Option<&Met> {
        if !said.fits() {
            return None;
        }
        let mix = Mix::START.number(std::ptr::from_ref(metadata).addr() as u64).number(path.hash());
        let hash = said.names().iter().fold(mix, |mix, name| mix.text(name)).hash();
        let same = |met: &Met| std::ptr::eq(met.metadata, metadata) && met.path == *path && *met.names == *said.names();
        if let Some(met) = self.met.find(hash, same) {
            return Some(met);
        }
        let target = metadata.target();
        let voice = self.voices.find_or_add(
            Mix::START.text(target).number(path.hash()).hash(),
            |voice| voice.target == target && voice.path == *path,
            || Voice {
                target,
                path: path.clone(),
                logger: if path.text().is_empty() { logger.clone() } else { logger.in_context(path.text()) },
            },
        )?;
        let make = || Met {
            metadata,
            path: path.clone(),
            names: said.names().into(),
            logger: voice.logger.clone(),
            statement: place_of(metadata).statement(said.names()),
        };
        self.met.find_or_add(hash, same, make)
    }

    fn take_log_record(&self, event: &Event<'_>) {
        let found = FromLog::of(event);
        let level = level_of(*event.metadata().level());
        let Some(speaker) = self.speakers.of(found.target()).filter(|speaker| speaker.logger.enabled(level)) else { return };
        speaker.logger.record(found.record(level));
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").field("logger", self.shared.speakers.common()).finish()
    }
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted").field("logger", self.shared.speakers.common()).finish()
    }
}
