//! As much of JSON Schema as the API's document uses.

use serde_json::Value;

/// Checks a value against a schema.
pub fn check(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let wrong = |what: String| Err(format!("{at}: {what}: {value}"));
    for (word, said) in schema.as_object().into_iter().flatten() {
        match word.as_str() {
            "$ref" => {
                let path = said.as_str().unwrap().trim_start_matches('#');
                check(document, document.pointer(path).unwrap_or_else(|| panic!("{path}")), value, at)?;
            }
            "type" => {
                let is = |kind: &Value| match kind.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_i64() || value.is_u64(),
                    "number" => value.is_number(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => panic!("{other}"),
                };
                if !said.as_array().map_or_else(|| is(said), |kinds| kinds.iter().any(is)) {
                    return wrong(format!("is not of type {said}"));
                }
            }
            "enum" if !said.as_array().unwrap().contains(value) => return wrong(format!("is none of {said}")),
            "required" if value.is_object() => {
                for name in said.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        return wrong(format!("lacks {name}"));
                    }
                }
            }
            "properties" => {
                for (name, schema) in said.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        check(document, schema, value, &format!("{at}.{name}"))?;
                    }
                }
            }
            "additionalProperties" | "unevaluatedProperties" if said == false => {
                let known = schema["properties"].as_object();
                let names = value.as_object().into_iter().flat_map(|value| value.keys());
                if let Some(name) = names.into_iter().find(|name| !known.is_some_and(|known| known.contains_key(*name))) {
                    return wrong(format!("does not know {name}"));
                }
            }
            "additionalProperties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    check(document, said, value, &format!("{at}.{name}"))?;
                }
            }
            "items" => {
                for (nth, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, said, value, &format!("{at}[{nth}]"))?;
                }
            }
            "allOf" => said.as_array().unwrap().iter().try_for_each(|schema| check(document, schema, value, at))?,
            "oneOf" => {
                let fits = said.as_array().unwrap().iter().filter(|schema| check(document, schema, value, at).is_ok()).count();
                if fits != 1 {
                    return wrong(format!("{fits} of {said} fit"));
                }
            }
            "anyOf" => {
                if !said.as_array().unwrap().iter().any(|schema| check(document, schema, value, at).is_ok()) {
                    return wrong(format!("none of {said} fits"));
                }
            }
            "const" if said != value => return wrong(format!("is not {said}")),
            "prefixItems" => {
                for (nth, (schema, value)) in
                    said.as_array().unwrap().iter().zip(value.as_array().into_iter().flatten()).enumerate()
                {
                    check(document, schema, value, &format!("{at}[{nth}]"))?;
                }
            }
            "minItems" if value.as_array().is_some_and(|value| (value.len() as u64) < said.as_u64().unwrap()) => {
                return wrong(format!("has fewer than {said} elements"));
            }
            "maxItems" if value.as_array().is_some_and(|value| value.len() as u64 > said.as_u64().unwrap()) => {
                return wrong(format!("has more than {said} elements"));
            }
            "minimum" if value.as_i64().is_some_and(|value| value < said.as_i64().unwrap()) => {
                return wrong(format!("is below {said}"));
            }
            "maximum" if value.as_u64().is_some_and(|value| value > said.as_u64().unwrap()) => {
                return wrong(format!("is above {said}"));
            }
            "format" if said == "date-time" => {
                let is_time = |text: &str| text.len() == 30 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
                if value.as_str().is_some_and(|text| !is_time(text)) {
                    return wrong("is no time with nine decimals".to_owned());
                }
            }
            "enum" | "required" | "description" | "title" | "format" | "default" | "const" | "minItems" | "maxItems"
            | "minimum" | "maximum" | "uniqueItems" => {}
            other => panic!("{other}"),
        }
    }
    Ok(())
}

#[test]
fn the_check_can_fail() {
    let document =
        serde_json::json!({ "a": { "type": "object", "required": ["x"], "properties": { "x": { "type": "integer" } } } });
    let check = |value: Value| check(&document, &serde_json::json!({ "$ref": "#/a" }), &value, "");
    assert!(check(serde_json::json!({ "x": 1 })).is_ok());
    assert!(
        check(serde_json::json!({ "x": "1" })).is_err() && check(serde_json::json!({})).is_err() && check(Value::Null).is_err()
    );
}
