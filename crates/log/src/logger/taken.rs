//! What is drained, on its way into packets: voices that only the process itself knows, and records made by hand, which settings may
//! keep out and which print or not by their logger's own threshold.

use std::sync::atomic::Ordering;

use tampu_ring::{Entry, Reader, What};
use tampu_types::{Datum, LogRecord, Time};

use crate::logger::{
    lane::Reach,
    pump::{Pump, Pumped},
    restraint::{REPEAT_COUNT, Speech},
    shared::Shared,
};

/// Takes an entry of a ring into its packet; whether anything could be made of it. What could not is counted.
#[inline]
pub(crate) fn take(
    shared: &Shared,
    pump: &mut Pump,
    urgent: &mut Vec<usize>,
    (ring, entry): (u32, &Entry<'_>),
    time: Time,
    dictionary: &mut Reader,
) -> bool {
    if let What::Record { voice, .. } = entry.what
        && !pump.knows(voice)
        && let Some(voice_of) = shared.voice_of(voice)
    {
        pump.meet(voice, voice_of);
    }
    let mut pumped = pump.take(ring, entry, time, dictionary);
    if let Some((record, reach)) = pump.take_made() {
        pumped = match judge_made(shared, pump, record, reach) {
            Some(record) => put_made(shared, pump, &record, reach),
            None => Pumped::Nothing,
        };
    }
    match pumped {
        Pumped::InLane(lane) => {
            if shared.settings.immediate.passes(pump.lanes.key(lane).level) && !urgent.contains(&lane) {
                urgent.push(lane);
            }
            true
        }
        Pumped::Nothing | Pumped::Made => true,
        Pumped::Unreadable | Pumped::TooLarge => {
            shared.counters.dropped.fetch_add(1, Ordering::Relaxed);
            false
        }
    }
}

/// A record made by hand, unless settings keep it out.
pub(crate) fn judge_made(shared: &Shared, pump: &mut Pump, mut record: LogRecord, reach: Reach) -> Option<LogRecord> {
    let restraint = &mut pump.restraint;
    let guard = shared.repeat(&record.logger);
    if restraint.concerns(guard) {
        let LogRecord { logger, source_object, file, line, message, .. } = &record;
        let key = restraint.key(0, 0, &format!("{logger}\0{source_object}\0{file}\0{line:?}\0{message}"));
        let speech = || Speech::Made {
            record: Box::new(LogRecord { message: String::new(), data: Vec::new(), ..record.clone() }),
            text: record.message.as_str().into(),
            reach,
        };
        let repeats = restraint.judge(guard, key, (record.level, record.time), speech)?;
        if repeats > 0 {
            record.data.push(Datum::new(REPEAT_COUNT, repeats.to_string()));
        }
    }
    Some(record)
}

/// Prints and publishes a record made by hand, as far as it goes.
pub(crate) fn put_made(shared: &Shared, pump: &mut Pump, record: &LogRecord, reach: Reach) -> Pumped {
    // What it calls its logger may be no logger of ours.
    let of_others = || reach == Reach::Local || shared.tunable().local.passes(record.level);
    if shared.prints(&record.logger, record.level).unwrap_or_else(of_others)
        && let Some(printer) = pump.printer()
    {
        printer.record(record);
    }
    if reach == Reach::Local { Pumped::Nothing } else { pump.publish(record, reach) }
}
