//! Rates and events in the reports of transfers.

use serde_json::{Value, json};

/// Bytes a second; nothing where no time has passed.
pub fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
}

/// Makes a JSON object of the event's name and its properties.
pub fn event(name: &str, mut with: Value) -> Value {
    if let Value::Object(fields) = &mut with {
        fields.insert("event".to_owned(), json!(name));
    }
    with
}
