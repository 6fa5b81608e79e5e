//! The state of an attribute: its configuration, its last reading in encoded form, and counters.

use std::sync::Arc;

use tampu_bus::LoanMemory;
use tampu_types::{
    Time,
    event::{
        AttributeConfig, Data, EventSample, EventView, Failure, Kinds, Limits, Quality,
        sample::{FLAG_IN_STREAM, FLAG_REFRESH},
    },
};

use super::{early_events::EarlyEvents, host_route::HostRoute};
use crate::criteria::{Detector, Reading};

/// Place of the last reading.
pub(super) enum LastReading {
    /// There was no reading.
    Nothing,
    /// The reading is in the buffer.
    Here,
    /// The event with the reading is in lent memory, which the attribute's next long value may use.
    Lent(LoanMemory),
    /// The reading is in lent memory, and in the stream only.
    InStream,
}

pub(super) struct AttributeState {
    pub config: Arc<AttributeConfig>,
    pub epoch: u32,
    pub detector: Detector,
    /// Number of events sent.
    pub number: u64,
    /// Last reading in encoded form. The buffer is used again for the next reading.
    pub buffer: Vec<u8>,
    pub last: LastReading,
    pub pushes: u64,
    pub held_back: u64,
    pub pushed_at: Time,
    /// Time of the last push, monotonic ns.
    pub read_at: Option<u64>,
    pub quality: Option<Quality>,
    /// First events, for other hosts.
    pub early: EarlyEvents,
    /// Hosts whose streams have this attribute.
    pub hosts: Vec<HostRoute>,
}

impl AttributeState {
    pub fn new(config: AttributeConfig, early: EarlyEvents) -> AttributeState {
        AttributeState {
            config: Arc::new(config),
            epoch: 1,
            detector: Detector::default(),
            number: 0,
            buffer: Vec::new(),
            last: LastReading::Nothing,
            pushes: 0,
            held_back: 0,
            pushed_at: Time(0),
            read_at: None,
            quality: None,
            early,
            hosts: Vec::new(),
        }
    }

    /// Notes that the last reading is in lent memory, if that can be read again, or in this copy of it.
    pub fn reading_is_lent(&mut self, memory: Option<LoanMemory>, copy: Option<Vec<u8>>) {
        self.buffer.clear();
        self.last = match (memory, copy) {
            (Some(memory), _) => LastReading::Lent(memory),
            (None, Some(copy)) => {
                self.buffer = copy;
                LastReading::Here
            }
            (None, None) => LastReading::InStream,
        };
    }

    /// Copies the last reading from lent memory: something else may be written there.
    pub fn fetch_reading(&mut self) {
        if let LastReading::Lent(memory) = &self.last {
            self.buffer.clear();
            let is_whole = memory.copy_to(&mut self.buffer).is_ok();
            self.last = if is_whole { LastReading::Here } else { LastReading::InStream };
        }
    }

    /// Returns the current value as an answer to `token`.
    pub fn refreshed(&mut self, attribute: u32, token: u64) -> Vec<u8> {
        self.fetch_reading();
        let event = match self.last {
            LastReading::Here => EventView::parse(&self.buffer).ok().map(|view| view.to_event()),
            _ => None,
        };
        let Some(mut event) = event else { return self.without_value(attribute, token, &[]) };
        let mut out = Vec::new();
        event.flags |= FLAG_REFRESH;
        event.token = Some(token);
        event.kinds = Kinds::NONE;
        event.epoch = self.epoch;
        event.number = self.number;
        // What was encoded once can be encoded again.
        let _ = event.encode(&mut out);
        out
    }

    /// Returns the answer without a value: there was no reading, it is in the stream, or these errors explain it.
    pub fn without_value(&self, attribute: u32, token: u64, errors: &[Failure]) -> Vec<u8> {
        let is_in_stream = matches!(self.last, LastReading::InStream) && errors.is_empty();
        let in_stream = if is_in_stream { FLAG_IN_STREAM } else { 0 };
        let quality = if errors.is_empty() { self.quality.unwrap_or(Quality::Invalid) } else { Quality::Invalid };
        let event = EventSample {
            epoch: self.epoch,
            time: self.pushed_at,
            number: self.number,
            quality,
            flags: FLAG_REFRESH | in_stream,
            token: Some(token),
            errors,
            ..EventSample::without_value(attribute)
        };
        let mut out = Vec::new();
        // Texts of this release are short.
        let _ = event.encode(&mut out);
        out
    }
}

/// Returns the quality of a valid reading by the limits of its attribute.
pub(super) fn quality_within(limits: &Limits, reading: &Reading<'_>) -> Quality {
    let (Quality::Valid, Some(value)) = (reading.quality, reading.value) else { return reading.quality };
    let beyond = |low: Option<f64>, high: Option<f64>| {
        (low.is_some() || high.is_some())
            && any_number(value.data, |number| low.is_some_and(|low| number <= low) || high.is_some_and(|high| number >= high))
    };
    if beyond(limits.alarm_low, limits.alarm_high) {
        Quality::Alarm
    } else if beyond(limits.warning_low, limits.warning_high) {
        Quality::Warning
    } else {
        Quality::Valid
    }
}

fn any_number(data: Data<'_>, is: impl Fn(f64) -> bool) -> bool {
    match data {
        Data::UChar(all) => all.iter().any(|&number| is(number.into())),
        Data::Short(all) => all.iter().any(|&number| is(number.into())),
        Data::UShort(all) => all.iter().any(|&number| is(number.into())),
        Data::Long(all) => all.iter().any(|&number| is(number.into())),
        Data::ULong(all) => all.iter().any(|&number| is(number.into())),
        Data::Long64(all) => all.iter().any(|&number| is(number as f64)),
        Data::ULong64(all) => all.iter().any(|&number| is(number as f64)),
        Data::Float(all) => all.iter().any(|&number| is(number.into())),
        Data::Double(all) => all.iter().any(|&number| is(number)),
        Data::Boolean(_) | Data::String(_) | Data::State(_) | Data::Encoded { .. } | Data::Enum(_) => false,
    }
}
