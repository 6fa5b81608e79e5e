//! Values and events for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use tampu_event::client::Update;
pub use tampu_hub::event_json::value_as_json as value;
use tampu_types::event::{AttributeConfig, EventView, Missed, Shape, ValueView};

/// Elements shown on a line.
const SHOWN: usize = 8;

/// A reading on a line: `1.25e-9 mbar`, `[1, 2, 3, ... 4096]`, `error: ...`.
pub fn reading(view: &EventView<'_>, config: &AttributeConfig) -> String {
    if let Some(first) = view.errors.first() {
        return format!("error: {}: {}", first.reason.escape_debug(), first.description.escape_debug());
    }
    let Some(value) = view.value else { return "no value".to_owned() };
    let mut text = String::new();
    if view.shape == Shape::SCALAR {
        element(&value, 0, config, &mut text);
    } else {
        text.push('[');
        for index in 0..value.len().min(SHOWN) {
            text.push_str(if index > 0 { ", " } else { "" });
            element(&value, index, config, &mut text);
        }
        text.push_str(if value.len() > SHOWN { ", ...]" } else { "]" });
    }
    if !config.unit.is_empty() {
        let _ = write!(text, " {}", config.unit.escape_debug());
    }
    if view.shape != Shape::SCALAR {
        let _ = write!(text, " ({})", view.shape);
    }
    if let Some(set) = &view.set_point {
        text.push_str(" (set ");
        element(set, 0, config, &mut text);
        text.push(')');
    }
    text
}

fn element(value: &ValueView<'_>, index: usize, config: &AttributeConfig, text: &mut String) {
    match value {
        // Text from a value is escaped before it reaches the terminal.
        ValueView::String(all) => {
            let _ = write!(text, "\"{}\"", all.iter().nth(index).unwrap_or_default().escape_debug());
        }
        ValueView::Encoded { format, data } => {
            let _ = write!(text, "{}, {} bytes", format.escape_debug(), data.len());
        }
        ValueView::Enum(all) => {
            let label = all.get(index).and_then(|index| config.labels.get(usize::try_from(index).ok()?));
            match label {
                Some(label) => text.extend(label.escape_debug()),
                None => drop(value.write_readable_element(index, text)),
            }
        }
        other => drop(other.write_readable_element(index, text)),
    }
}

/// An event as JSON.
pub fn event(update: &Update) -> Json {
    let reading = update.reading();
    let reading = reading.as_ref();
    let mut event = json!({
        "name": update.attribute.config.name,
        "reason": update.reason,
        "number": update.number,
        "source": update.source.source,
        "incarnation": update.source.incarnation.to_string(),
        "sent": update.sent,
        "received": update.received,
    });
    if update.missed != Missed::Nothing {
        event["missed"] = json!(update.missed);
    }
    if let Some(reading) = reading {
        event["kinds"] = json!(update.kinds.iter().collect::<Vec<_>>());
        event["time"] = json!(reading.time);
        event["quality"] = json!(reading.quality);
        event["epoch"] = json!(reading.epoch);
        event["value"] = value(reading);
        if !reading.errors.is_empty() {
            event["errors"] = json!(reading.errors);
        }
        if !reading.name.is_empty() {
            event["event"] = json!(reading.name);
        }
    }
    event
}
