//! Events in the JSON form of the gateway: `spec/wire/gateway.md`.
//!
//! Times and integers of 64 bits are texts, because JavaScript's numbers end at 2^53. Numbers that JSON does not have are texts as
//! well: `NaN`, `inf`, `-inf`.

use std::str::FromStr;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::messages::Big;
use crate::{
    Time,
    event::{DataType, DevState, EventKind, EventSample, EventView, Format, Quality, Shape, Value, ValueView, Values},
};

/// Writes a time with nine decimals.
pub(super) fn utc(time: Time) -> String {
    format!("{time}Z")
}

/// Writes an event.
pub(super) fn event(view: &EventView<'_>) -> Json {
    let mut event = json!({
        "time": utc(view.time),
        "number": Big(view.number),
        "epoch": view.epoch,
        "kinds": view.kinds.iter().collect::<Vec<_>>(),
        "quality": view.quality,
    });
    if let Some(value) = &view.value {
        event["type"] = json!(value.data_type());
        event["format"] = json!(view.shape.format);
        event["value"] = elements(value, view.shape.format == Format::Scalar);
        if view.shape.format == Format::Image {
            event["x"] = json!(view.shape.x);
            event["y"] = json!(view.shape.y);
        }
    }
    if let Some(set_point) = &view.set_point {
        event["set_point"] = elements(set_point, set_point.len() == 1);
    }
    if !view.errors.is_empty() {
        event["errors"] = json!(view.errors);
    }
    if !view.name.is_empty() {
        event["name"] = json!(view.name);
    }
    event
}

/// Writes the elements of a value: one, or a list row by row.
fn elements(value: &ValueView<'_>, is_scalar: bool) -> Json {
    let all: Vec<Json> = match value.to_values() {
        Values::Boolean(all) => all.into_iter().map(Json::from).collect(),
        Values::UChar(all) => all.into_iter().map(Json::from).collect(),
        Values::Short(all) | Values::Enum(all) => all.into_iter().map(Json::from).collect(),
        Values::UShort(all) => all.into_iter().map(Json::from).collect(),
        Values::Long(all) => all.into_iter().map(Json::from).collect(),
        Values::ULong(all) => all.into_iter().map(Json::from).collect(),
        Values::Long64(all) => all.into_iter().map(|number| json!(number.to_string())).collect(),
        Values::ULong64(all) => all.into_iter().map(|number| json!(number.to_string())).collect(),
        Values::Float(all) => {
            all.into_iter().map(|number| if number.is_finite() { json!(number) } else { json!(number.to_string()) }).collect()
        }
        Values::Double(all) => {
            all.into_iter().map(|number| if number.is_finite() { json!(number) } else { json!(number.to_string()) }).collect()
        }
        Values::String(all) => all.into_iter().map(Json::from).collect(),
        Values::State(all) => all.into_iter().map(|state| json!(state.name())).collect(),
        Values::Encoded { format, data } => vec![json!({ "format": format, "base64": STANDARD.encode(data) })],
    };
    match <[Json; 1]>::try_from(all) {
        Ok([one]) if is_scalar => one,
        Ok(one) => Json::Array(one.into()),
        Err(all) => Json::Array(all),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reading {
    #[serde(default, rename = "type")]
    data_type: Option<DataType>,
    #[serde(default)]
    format: Option<Format>,
    #[serde(default)]
    x: u32,
    #[serde(default)]
    y: u32,
    #[serde(default)]
    value: Json,
    #[serde(default)]
    quality: Quality,
    #[serde(default)]
    time: Option<String>,
    #[serde(default)]
    kinds: Vec<EventKind>,
}

#[derive(Deserialize)]
struct Encoded {
    format: String,
    base64: String,
}

/// Reads a reading; returns it as an event.
pub(super) fn reading(json: &Json) -> Result<Vec<u8>, String> {
    let reading = Reading::deserialize(json).map_err(|why| format!("no reading: {why}"))?;
    let mut values = None;
    if !reading.value.is_null() {
        let data_type = reading.data_type.ok_or("a value needs its type, as \"type\": \"DevDouble\"")?;
        values = Some(parsed(data_type, &reading.value)?);
    }
    let value = values.as_ref().map(|values| {
        let data = values.as_data();
        let is_list = reading.value.is_array();
        let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let shape = match reading.format.unwrap_or(if is_list { Format::Spectrum } else { Format::Scalar }) {
            Format::Scalar => Shape::SCALAR,
            Format::Spectrum => Shape::spectrum(count),
            Format::Image => Shape::image(reading.x, reading.y),
        };
        Value { data, shape }
    });
    let time = match &reading.time {
        Some(text) => text.parse().map_err(|_| format!("'{}' is no time", text.escape_debug()))?,
        None => Time(0),
    };
    let sample = EventSample {
        time,
        kinds: reading.kinds.into_iter().collect(),
        quality: reading.quality,
        value,
        ..EventSample::without_value(0)
    };
    let mut bytes = Vec::new();
    sample.encode(&mut bytes).map_err(|why| why.to_string())?;
    Ok(bytes)
}

/// Reads the elements of a value of this type.
fn parsed(data_type: DataType, value: &Json) -> Result<Values, String> {
    let all = match value {
        Json::Array(all) => &all[..],
        one => std::slice::from_ref(one),
    };
    let bad = |element: &Json| format!("'{element}' is no element of {}", data_type.name());
    fn each<T>(all: &[Json], bad: impl Fn(&Json) -> String, read: impl Fn(&Json) -> Option<T>) -> Result<Vec<T>, String> {
        all.iter().map(|element| read(element).ok_or_else(|| bad(element))).collect()
    }
    fn whole<T: TryFrom<i64> + TryFrom<u64> + FromStr>(element: &Json) -> Option<T> {
        let signed = element.as_i64().and_then(|number| T::try_from(number).ok());
        let unsigned = || element.as_u64().and_then(|number| T::try_from(number).ok());
        signed.or_else(unsigned).or_else(|| element.as_str()?.parse().ok())
    }
    let real = |element: &Json| element.as_f64().or_else(|| element.as_str()?.parse().ok());
    Ok(match data_type {
        DataType::Boolean => Values::Boolean(each(all, bad, Json::as_bool)?),
        DataType::UChar => Values::UChar(each(all, bad, whole)?),
        DataType::Short => Values::Short(each(all, bad, whole)?),
        DataType::UShort => Values::UShort(each(all, bad, whole)?),
        DataType::Long => Values::Long(each(all, bad, whole)?),
        DataType::ULong => Values::ULong(each(all, bad, whole)?),
        DataType::Long64 => Values::Long64(each(all, bad, whole)?),
        DataType::ULong64 => Values::ULong64(each(all, bad, whole)?),
        DataType::Float => Values::Float(each(all, bad, |element| real(element).map(|number| number as f32))?),
        DataType::Double => Values::Double(each(all, bad, real)?),
        DataType::String => Values::String(each(all, bad, |element| element.as_str().map(str::to_owned))?),
        DataType::State => Values::State(each(all, bad, |element| DevState::from_name(element.as_str()?))?),
        DataType::Enum => Values::Enum(each(all, bad, whole)?),
        DataType::Encoded => {
            let Encoded { format, base64 } = Encoded::deserialize(value).map_err(|_| bad(value))?;
            Values::Encoded { format, data: STANDARD.decode(base64).map_err(|_| "invalid base64".to_owned())? }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The event that a reading becomes, as JSON again.
    fn through(given: Json) -> Json {
        let bytes = reading(&given).unwrap_or_else(|why| panic!("{why}: {given}"));
        event(&EventView::parse(&bytes).unwrap())
    }

    #[test]
    fn readings_of_every_type_and_format_lead_back() {
        for (data_type, value) in [
            ("DevBoolean", json!([true, false])),
            ("DevUChar", json!([0, 255])),
            ("DevShort", json!([-32_768, 32_767])),
            ("DevUShort", json!([65_535])),
            ("DevLong", json!([-2_147_483_648i64])),
            ("DevULong", json!([4_294_967_295u32])),
            ("DevLong64", json!(["-9223372036854775808", "9223372036854775807"])),
            ("DevULong64", json!(["18446744073709551615"])),
            ("DevFloat", json!([1.5, "NaN", "inf"])),
            ("DevDouble", json!([0.1, "-inf"])),
            ("DevString", json!(["", "é\n"])),
            ("DevState", json!(["ON", "FAULT"])),
            ("DevEnum", json!([3])),
        ] {
            let read = through(json!({ "type": data_type, "value": value, "quality": "alarm", "kinds": ["change", "user"] }));
            assert_eq!((&read["type"], &read["value"], &read["format"]), (&json!(data_type), &value, &json!("spectrum")));
            assert_eq!((&read["quality"], &read["kinds"]), (&json!("alarm"), &json!(["change", "user"])));
            let one = &value[0];
            let read = through(json!({ "type": data_type, "value": one, "time": "2026-11-21T08:15:30.123456789Z" }));
            assert_eq!((&read["value"], &read["format"]), (one, &json!("scalar")));
            assert_eq!(read["time"], "2026-11-21T08:15:30.123456789Z");
            let image = json!({ "type": data_type, "format": "image", "x": 2, "y": 1, "value": [one, one] });
            let read = through(image);
            assert_eq!((&read["x"], &read["y"], &read["value"]), (&json!(2), &json!(1), &json!([one, one])));
        }
        let encoded = json!({ "format": "JPEG_RGB24", "base64": "AQID" });
        assert_eq!(through(json!({ "type": "DevEncoded", "value": encoded }))["value"], encoded);
        assert_eq!(through(json!({ "quality": "invalid" })).get("value"), None);
    }

    #[test]
    fn wrong_readings_are_named() {
        for (given, words) in [
            (json!({ "value": 1 }), "needs its type"),
            (json!({ "type": "DevShort", "value": 40_000 }), "'40000' is no element of DevShort"),
            (json!({ "type": "DevLong64", "value": 1.5 }), "'1.5' is no element of DevLong64"),
            (json!({ "type": "DevState", "value": "UP" }), "is no element of DevState"),
            (json!({ "type": "DevEncoded", "value": { "format": "x", "base64": "?" } }), "invalid base64"),
            (json!({ "type": "DevNumber", "value": 1 }), "no reading"),
            (json!({ "typo": 1 }), "typo"),
            (json!({ "time": "yesterday" }), "'yesterday' is no time"),
            (json!({ "type": "DevLong", "format": "image", "x": 2, "y": 2, "value": [1] }), ""),
            (json!(7), "no reading"),
        ] {
            let why = reading(&given).unwrap_err();
            assert!(why.contains(words), "{given}: {why}");
        }
    }
}
