//! The columns of a record for people, in CSV, chosen columns, sorting and the viewer: the visible fields of the
//! catalogue ([`Column::SHOWN`]).

use serde_json::{Map, Value};
use tampu_types::LogRecord;
pub use tampu_types::{RecordField as Column, record::field::UnknownColumn};

/// Returns a record as JSON with these fields alone.
pub fn chosen(record: &LogRecord, columns: &[Column]) -> serde_json::Result<Map<String, Value>> {
    let Value::Object(mut all) = serde_json::to_value(record)? else { return Ok(Map::new()) };
    Ok(columns.iter().filter_map(|column| all.remove(column.name()).map(|value| (column.name().to_owned(), value))).collect())
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use tampu_types::Level;

    use super::*;

    #[test]
    fn numbers_are_ordered_by_value_and_chosen_fields_keep_their_names() {
        let mut one = LogRecord::new(Level::Error, "a");
        one.line = Some(9);
        let mut other = LogRecord::new(Level::Debug, "b");
        other.line = Some(10);
        assert_eq!(Column::Line.order(&one, &other), Ordering::Less);
        assert_eq!(Column::Level.order(&one, &other), Ordering::Greater);
        let fields = chosen(&one, &[Column::Message, Column::Line, Column::Uri]).unwrap();
        assert_eq!(Value::from(fields), serde_json::json!({"message": "a", "line": 9}));
    }
}
