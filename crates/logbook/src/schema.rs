//! JSON schemas of text types.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The schema of a [`tampu_types::Time`] in JSON, which is a text.
pub struct TimeText;

impl JsonSchema for TimeText {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "RFC 3339 with nine decimals, in UTC, as 2026-11-21T08:15:30.123456789Z",
        })
    }
}
