//! Warnings of the bus engine as records of the hub's log, from the logger `engine`.
//!
//! The engine and its TLS links report through `tracing`. Without a subscriber a failed handshake, a host that is shut
//! out or an unusable certificate is seen nowhere. Anybody who reaches the address can cause some of these, so each place
//! in the engine's source gets few records in a minute, and the next one counts the others.

use std::{
    fmt::{self, Write},
    sync::{Arc, Once, Weak},
    time::Instant,
};

use parking_lot::Mutex;
use tampu_bus::{access::PeriodLimit, connect::is_target_of_engine};
use tampu_log::{Logger, error, warning};
use tracing_core::{
    Dispatch, Event, Interest, Level, LevelFilter, Metadata, Subscriber,
    callsite::Identifier,
    dispatcher,
    field::{Field, Visit},
    span,
};

/// The name of the logger.
pub(super) const ENGINE: &str = "engine";
/// Length at which a message is cut, in bytes.
const LONGEST: usize = 1000;

static LOG: Mutex<Weak<Logger>> = Mutex::new(Weak::new());

/// Logs the engine's warnings through this logger while it lives. Of several hubs in one process the last one logs.
pub(crate) fn report_engine_warnings(log: &Arc<Logger>) {
    static INSTALLED: Once = Once::new();
    *LOG.lock() = Arc::downgrade(log);
    // A program that embeds a hub may have its own subscriber, and keeps it.
    INSTALLED.call_once(|| drop(dispatcher::set_global_default(Dispatch::new(Warnings::default()))));
}

#[derive(Default)]
struct Warnings {
    limit: PeriodLimit<Identifier>,
}

fn is_wanted(metadata: &Metadata<'_>) -> bool {
    metadata.is_event() && *metadata.level() <= Level::WARN && is_target_of_engine(metadata.target())
}

impl Subscriber for Warnings {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_wanted(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_wanted(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let Some(log) = LOG.lock().upgrade() else { return };
        let Some(untold) = self.limit.admit(metadata.callsite(), Instant::now()) else { return };
        let mut text = Text::default();
        event.record(&mut text);
        if untold > 0 {
            let _ = write!(text.0, "; {untold} more before this one");
        }
        if *metadata.level() == Level::ERROR {
            error!(log, "{}", text.0; module = metadata.target());
        } else {
            warning!(log, "{}", text.0; module = metadata.target());
        }
    }

    // Spans are never enabled.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Message of an event, and its other fields as `name=value`.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        // Writing to a text cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{separator}{value:?}"),
            name => write!(self.0, "{separator}{name}={value:?}"),
        };
        if self.0.len() > LONGEST {
            self.0.truncate(self.0.floor_char_boundary(LONGEST));
            self.0.push('…');
        }
    }
}
