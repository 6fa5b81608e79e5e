//! The table of events: its columns, and the conversion between kept events and rows. `spec/event-archive.md` defines
//! each column.

use tampu_archive::{Cell, ColumnSpec, Layout, Row, Schema, Shape};
use tampu_types::{
    BatchHeader, ClockState,
    event::{EventView, KEPT_EVENT_TYPE, Reason, ValueView, kept::KeptEvent},
};

/// The type of the samples.
pub(super) const KEPT_TYPE: u32 = KEPT_EVENT_TYPE;

/// The table of events.
pub static SCHEMA: Schema = Schema {
    layout: Layout {
        name: "event",
        columns: &[
            ColumnSpec::new("time", Shape::Time),
            ColumnSpec::new("received", Shape::Time),
            ColumnSpec::new("incarnation", Shape::Text),
            ColumnSpec::new("attribute_number", Shape::Number),
            ColumnSpec::new("from_sequence", Shape::UnsignedNumber),
            ColumnSpec::new("sequence", Shape::UnsignedNumber),
            ColumnSpec::new("kind_bits", Shape::Number),
            ColumnSpec::new("attribute", Shape::Text),
            ColumnSpec::new("reason", Shape::Text),
            ColumnSpec::new("kind", Shape::Text),
            ColumnSpec::new("quality", Shape::Text),
            ColumnSpec::new("value", Shape::OptionalDouble),
            ColumnSpec::new("text", Shape::Text),
            ColumnSpec::new("unit", Shape::Text),
            ColumnSpec::new("type", Shape::Text),
            ColumnSpec::new("shape", Shape::Text),
            ColumnSpec::new("epoch", Shape::OptionalNumber),
            ColumnSpec::new("source", Shape::Text),
            ColumnSpec::new("clock", Shape::Text),
            ColumnSpec::new("note", Shape::Text),
            ColumnSpec::new("event", Shape::Bytes),
        ],
        time: 0,
    },
    type_id: KEPT_TYPE,
    read,
};

/// The column of the attribute's name.
pub(super) const ATTRIBUTE: usize = 7;
/// Mark of rows without a reading: gaps and changes of sources. A query for some kinds gets them too, so missing events
/// are never hidden.
pub(super) const WORD: u16 = 1 << 15;

/// Most elements of a spectrum or image that are written as text. Longer ones stand only in the event's bytes.
const WRITTEN_OUT: usize = 1024;

fn read(_header: &BatchHeader, sample: &[u8]) -> Result<Row, String> {
    let kept = KeptEvent::parse(sample).map_err(|error| error.to_string())?;
    row(&kept)
}

/// Makes the row of an event.
pub fn row(kept: &KeptEvent<'_>) -> Result<Row, String> {
    let view = match kept.event {
        [] => None,
        bytes => Some(EventView::parse(bytes).map_err(|error| error.to_string())?),
    };
    let text = |text: &str| Cell::Text(text.as_bytes().to_vec());
    let kinds = view.as_ref().map_or(0, |view| view.kinds.known().0 as u16);
    let cells = vec![
        text(kept.name),
        text(kept.reason.name()),
        text(
            &view
                .as_ref()
                .map(|view| view.kinds.known().iter().map(|kind| kind.name()).collect::<Vec<_>>().join(","))
                .unwrap_or_default(),
        ),
        text(view.as_ref().map_or("", |view| view.quality.name())),
        Cell::Double(view.as_ref().and_then(number)),
        text(&view.as_ref().map(written).unwrap_or_default()),
        text(kept.unit),
        text(view.as_ref().and_then(|view| view.value).map_or("", |value| value.data_type().name())),
        text(&view.as_ref().filter(|view| view.value.is_some()).map(|view| view.shape.to_string()).unwrap_or_default()),
        Cell::OptionalNumber(view.as_ref().map(|view| view.epoch.into())),
        text(kept.source),
        text(clock_name(kept.clock)),
        text(kept.note),
        Cell::Text(kept.event.to_vec()),
    ];
    Ok(Row {
        time: kept.time,
        received: kept.received,
        life: kept.incarnation,
        ring: kept.attribute,
        from: kept.from,
        number: kept.number,
        marks: if kinds == 0 { WORD } else { kinds },
        cells,
    })
}

/// Returns a scalar as a number, if it is a number or has one (true is 1, a label its index).
fn number(view: &EventView<'_>) -> Option<f64> {
    view.value.filter(|_| view.shape.format == tampu_types::event::Format::Scalar)?.number(0)
}

/// Returns a value as text if a column of numbers cannot hold it. This applies to a text, the name of a state, an
/// integer that no f64 holds, elements of arrays and an error.
fn written(view: &EventView<'_>) -> String {
    if let Some(first) = view.errors.first() {
        return format!("error: {}: {}", first.reason, first.description);
    }
    let Some(value) = view.value else { return String::new() };
    let element = |index: usize| {
        let mut text = String::new();
        // Writing into a text does not fail.
        let _ = value.write_element(index, &mut text);
        text
    };
    if view.shape.format == tampu_types::event::Format::Scalar {
        let exact = match value {
            ValueView::Long64(all) => all.get(0).is_some_and(|number| number.unsigned_abs() <= 1 << 53),
            ValueView::ULong64(all) => all.get(0).is_some_and(|number| number <= 1 << 53),
            _ => value.data_type().is_numeric(),
        };
        return if exact { String::new() } else { element(0) };
    }
    if value.len() > WRITTEN_OUT {
        return String::new();
    }
    let elements: Vec<String> = match value {
        ValueView::String(all) => all.iter().map(|text| format!("{text:?}")).collect(),
        _ => (0..value.len()).map(element).collect(),
    };
    format!("[{}]", elements.join(", "))
}

/// Decodes the event of a row. Invalid texts in a row give `None`.
pub fn kept(row: &Row) -> Option<KeptEvent<'_>> {
    let text = |column: usize| std::str::from_utf8(row.cells.get(column)?.text()).ok();
    Some(KeptEvent {
        reason: Reason::from_name(text(1)?)?,
        clock: clock_of(text(11)?),
        attribute: row.ring,
        from: row.from,
        number: row.number,
        time: row.time,
        received: row.received,
        incarnation: row.life,
        source: text(10)?,
        name: text(0)?,
        unit: text(6)?,
        note: text(12)?,
        event: row.cells.get(13)?.text(),
    })
}

fn clock_name(clock: ClockState) -> &'static str {
    match clock {
        ClockState::Unknown => "unknown",
        ClockState::Synchronised => "synchronised",
        ClockState::Free => "free",
        ClockState::Stepped => "stepped",
    }
}

fn clock_of(name: &str) -> ClockState {
    match name {
        "synchronised" => ClockState::Synchronised,
        "free" => ClockState::Free,
        "stepped" => ClockState::Stepped,
        _ => ClockState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{
        Incarnation, Time,
        event::{Data, EventSample, Failure, Kinds, Severity, Shape as Arranged, Value},
    };

    use super::*;

    fn row_of(event: &EventSample<'_>, note: &str) -> Row {
        let mut bytes = Vec::new();
        event.encode(&mut bytes).unwrap();
        let kept = KeptEvent {
            reason: Reason::Update,
            clock: ClockState::Free,
            attribute: 3,
            from: 5,
            number: 7,
            time: Time(11),
            received: Time(12),
            incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
            source: "server",
            name: "a/b/c/d",
            unit: "mbar",
            note,
            event: &bytes,
        };
        let row = row(&kept).unwrap();
        assert_eq!(row.cells.len() + tampu_archive::KEYS, SCHEMA.layout.columns.len());
        assert_eq!(super::kept(&row), Some(kept), "a row leads back");
        row
    }

    #[test]
    fn columns_say_what_the_event_says_and_rows_lead_back() {
        let said = |event: EventSample<'_>| {
            let row = row_of(&EventSample { kinds: Kinds::ARCHIVE | Kinds::CHANGE, ..event }, "");
            let Cell::Double(value) = row.cells[4] else { panic!("{row:?}") };
            assert_eq!((row.marks, row.cells[2].text()), (0b101, &b"change,archive"[..]));
            (value, String::from_utf8(row.cells[5].text().to_vec()).unwrap())
        };
        let none = String::new;
        assert_eq!(said(EventSample::of(3, Value::scalar(&1.25f64))), (Some(1.25), none()));
        assert_eq!(said(EventSample::of(3, Value::scalar(&-7i64))), (Some(-7.0), none()));
        assert_eq!(said(EventSample::of(3, Value::scalar(&i64::MAX))), (Some(i64::MAX as f64), i64::MAX.to_string()));
        assert_eq!(said(EventSample::of(3, Value::scalar(&true))), (Some(1.0), "true".to_owned()));
        assert_eq!(said(EventSample::of(3, Value::scalar(&"on \"air\"".to_owned()))), (None, "on \"air\"".to_owned()));
        assert_eq!(said(EventSample::of(3, Value::spectrum(&[1i16, -2]))), (None, "[1, -2]".to_owned()));
        assert_eq!(said(EventSample::of(3, Value::spectrum::<f64>(&[]))), (None, "[]".to_owned()));
        assert_eq!(said(EventSample::of(3, Value::spectrum(&vec![0u8; 5000]))), (None, none()));
        assert_eq!(said(EventSample::of(3, Value { data: Data::Enum(&[1]), shape: Arranged::SCALAR })).0, Some(1.0));
        let failure = Failure {
            reason: "TIMEOUT".into(),
            description: "no answer".into(),
            origin: "device".into(),
            severity: Severity::Error,
        };
        let failed = [failure];
        let event = EventSample { errors: &failed, ..EventSample::without_value(3) };
        assert_eq!(said(event), (None, "error: TIMEOUT: no answer".to_owned()));
    }

    #[test]
    fn a_sample_that_is_none_is_refused() {
        let event = row_of(&EventSample::of(3, Value::scalar(&1.5f64)), "note");
        assert_eq!(event.cells[12].text(), b"note");
        let kept = super::kept(&event).unwrap();
        let mut bytes = Vec::new();
        KeptEvent { event: b"no event", ..kept }.encode(&mut bytes);
        assert!(KeptEvent::parse(&bytes).is_ok() && row(&KeptEvent::parse(&bytes).unwrap()).is_err());
    }
}
