//! Values of attributes as JSON, for the command line and the API.

use serde_json::{Value as Json, json};
use tampu_types::event::{EventView, Shape, ValueView};

/// Returns a value as JSON: a scalar bare, the others as a list of all elements. Numbers that JSON does not know, as
/// `NaN`, become texts.
pub fn value_as_json(view: &EventView<'_>) -> Json {
    let Some(value) = view.value else { return Json::Null };
    let one = |index: usize| match &value {
        ValueView::String(all) => json!(all.iter().nth(index)),
        ValueView::Boolean(all) => json!(all.get(index).map(|&byte| byte != 0)),
        ValueView::Long64(all) => json!(all.get(index)),
        ValueView::ULong64(all) => json!(all.get(index)),
        ValueView::Float(all) if all.get(index).is_some_and(f32::is_finite) => json!(all.get(index)),
        ValueView::Double(all) if all.get(index).is_some_and(f64::is_finite) => json!(all.get(index)),
        ValueView::Float(_) | ValueView::Double(_) | ValueView::State(_) => {
            let mut text = String::new();
            // Writing into a text does not fail.
            let _ = value.write_element(index, &mut text);
            json!(text)
        }
        ValueView::Encoded { format, data } => json!({"format": format, "bytes": data.len()}),
        _ => json!(value.number(index).map(|number| number as i64)),
    };
    if view.shape == Shape::SCALAR {
        return one(0);
    }
    if let ValueView::String(all) = &value {
        return json!(all.iter().collect::<Vec<_>>());
    }
    Json::Array((0..value.len()).map(one).collect())
}
