//! Events of the history as rows of a table.

use tampu_archive::columns::{ColumnSchema, ColumnTable, ColumnType, ColumnValue};
use tampu_types::event::{DataType, EventKind, EventView, Format, KeptEvent, Quality, ValueView};

/// Columns of events.
pub const COLUMNS: &ColumnSchema = &[
    ("time", ColumnType::Time),
    ("name", ColumnType::Name),
    // The number of a scalar, also of states and enumerations.
    ("value", ColumnType::Number),
    // The text of a scalar that is no number: texts, names of states, labels, the format of encoded bytes.
    ("text", ColumnType::Text),
    // The numbers of a spectrum, or of an image, row by row.
    ("values", ColumnType::Numbers),
    ("unit", ColumnType::Name),
    ("quality", ColumnType::Name),
    ("reason", ColumnType::Name),
    ("kinds", ColumnType::Name),
    ("from", ColumnType::Integer),
    ("number", ColumnType::Integer),
    ("source", ColumnType::Name),
    ("incarnation", ColumnType::Name),
    ("received", ColumnType::Time),
    ("note", ColumnType::Text),
    ("errors", ColumnType::Text),
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
pub fn push(table: &mut ColumnTable, kept: &KeptEvent<'_>, numbers: &mut Vec<f64>) {
    let view = EventView::parse(kept.event).ok();
    let read = view.as_ref().and_then(|view| Some((view.value.as_ref()?, view.shape.format == Format::Scalar)));
    let (value, text, values) = match read {
        Some((value, true)) => {
            (value.number(0).map_or(ColumnValue::Missing, ColumnValue::Number), text_of(value, kept.note), ColumnValue::Missing)
        }
        Some((value, false)) if value.number(0).is_some() || value.is_empty() => {
            numbers.clear();
            numbers.extend((0..value.len()).filter_map(|index| value.number(index)));
            (ColumnValue::Missing, String::new(), ColumnValue::Numbers(numbers))
        }
        _ => (ColumnValue::Missing, String::new(), ColumnValue::Missing),
    };
    let kinds: Vec<&str> = view.iter().flat_map(|view| view.kinds.iter()).map(EventKind::name).collect();
    let errors = view.as_ref().filter(|view| !view.errors.is_empty());
    let errors = errors.and_then(|view| serde_json::to_string(&view.errors).ok()).unwrap_or_default();
    let (kinds, incarnation) = (kinds.join(","), kept.incarnation.to_string());
    table.push(&[
        ColumnValue::Integer(kept.time.0),
        ColumnValue::Text(kept.name),
        value,
        ColumnValue::text(&text),
        values,
        ColumnValue::text(kept.unit),
        view.as_ref().map_or(ColumnValue::Missing, |view| ColumnValue::Text(Quality::name(view.quality))),
        ColumnValue::Text(kept.reason.name()),
        ColumnValue::text(&kinds),
        ColumnValue::Integer(kept.from.cast_signed()),
        ColumnValue::Integer(kept.number.cast_signed()),
        ColumnValue::text(kept.source),
        ColumnValue::Text(&incarnation),
        ColumnValue::Integer(kept.received.0),
        ColumnValue::text(kept.note),
        ColumnValue::text(&errors),
    ]);
}
