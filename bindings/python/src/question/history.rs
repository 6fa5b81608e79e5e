//! Events of the history as rows of a table.

use tampu_types::event::{DataType, EventKind, EventView, Format, KeptEvent, Quality, ValueView};

use super::table::{Cell, Kind, Schema, Table};

/// Columns of events.
pub const COLUMNS: Schema = &[
    (c"time", Kind::Time),
    (c"name", Kind::Text),
    // The number of a scalar, also of states and enumerations.
    (c"value", Kind::Number),
    // The text of a scalar that is no number: texts, names of states, labels, the format of encoded bytes.
    (c"text", Kind::Text),
    // The numbers of a spectrum, or of an image, row by row.
    (c"values", Kind::Numbers),
    (c"unit", Kind::Text),
    (c"quality", Kind::Text),
    (c"reason", Kind::Text),
    (c"kinds", Kind::Text),
    (c"from", Kind::Integer),
    (c"number", Kind::Integer),
    (c"source", Kind::Text),
    (c"incarnation", Kind::Text),
    (c"received", Kind::Time),
    (c"note", Kind::Text),
    (c"errors", Kind::Text),
];

fn text_of(value: &ValueView<'_>, note: &str) -> String {
    let is_text = matches!(value.data_type(), DataType::String | DataType::State | DataType::Enum);
    match value {
        ValueView::Enum(_) if !note.is_empty() => note.to_owned(),
        ValueView::Encoded { format, .. } => (*format).to_owned(),
        value if is_text => {
            let mut text = String::new();
            // A String takes whatever is written to it.
            let _ = value.write_element(0, &mut text);
            text
        }
        _ => String::new(),
    }
}

/// Adds an event. `numbers` is memory for its elements.
pub fn push(table: &mut Table, kept: &KeptEvent<'_>, numbers: &mut Vec<f64>) {
    let view = EventView::parse(kept.event).ok();
    let read = view.as_ref().and_then(|view| Some((view.value.as_ref()?, view.shape.format == Format::Scalar)));
    let (value, text, values) = match read {
        Some((value, true)) => (value.number(0).map_or(Cell::Missing, Cell::Number), text_of(value, kept.note), Cell::Missing),
        Some((value, false)) if value.number(0).is_some() || value.is_empty() => {
            numbers.clear();
            numbers.extend((0..value.len()).filter_map(|index| value.number(index)));
            (Cell::Missing, String::new(), Cell::Numbers(numbers))
        }
        _ => (Cell::Missing, String::new(), Cell::Missing),
    };
    let kinds: Vec<&str> = view.iter().flat_map(|view| view.kinds.iter()).map(EventKind::name).collect();
    let errors = view.as_ref().filter(|view| !view.errors.is_empty());
    let errors = errors.and_then(|view| serde_json::to_string(&view.errors).ok()).unwrap_or_default();
    let (kinds, incarnation) = (kinds.join(","), kept.incarnation.to_string());
    table.push(&[
        Cell::Integer(kept.time.0),
        Cell::Text(kept.name),
        value,
        Cell::text(&text),
        values,
        Cell::text(kept.unit),
        view.as_ref().map_or(Cell::Missing, |view| Cell::Text(Quality::name(view.quality))),
        Cell::Text(kept.reason.name()),
        Cell::text(&kinds),
        Cell::Integer(kept.from.cast_signed()),
        Cell::Integer(kept.number.cast_signed()),
        Cell::text(kept.source),
        Cell::Text(&incarnation),
        Cell::Integer(kept.received.0),
        Cell::text(kept.note),
        Cell::text(&errors),
    ]);
}
