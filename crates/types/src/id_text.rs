//! Ids of 64 bits in JSON as decimal text, because a browser and `jq` read a JSON number as a double of 53 bits. For
//! `#[serde(with = "tampu_types::id_text")]`.

use std::fmt::Display;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes an id.
pub fn serialize<S: Serializer>(id: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(id)
}

/// Reads an id.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|_| D::Error::custom(format!("invalid id '{}': write a whole number as text", text.escape_debug())))
}

/// Ids in the JSON of a store. They are written as text; a number is read as well, from older stores.
pub mod stored {
    use super::{Deserialize, Deserializer, Error};

    pub use super::serialize;

    /// An id as JSON may have it.
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "an id has to be a whole number as text")]
    enum Written {
        Text(String),
        Number(i64),
    }

    /// Reads an id from text or from a number.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        match Written::deserialize(from)? {
            Written::Text(text) => {
                text.parse().map_err(|_| D::Error::custom(format!("invalid id '{}': write a whole number", text.escape_debug())))
            }
            Written::Number(number) => Ok(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Ids {
        #[serde(with = "super")]
        text: i64,
        #[serde(with = "super::stored")]
        either: i64,
    }

    #[test]
    fn all_bits_survive() {
        let ids = Ids { text: i64::MAX, either: i64::MIN };
        let text = serde_json::to_string(&ids).unwrap();
        assert_eq!(text, r#"{"text":"9223372036854775807","either":"-9223372036854775808"}"#);
        assert_eq!(serde_json::from_str::<Ids>(&text).unwrap(), ids);
        assert_eq!(serde_json::from_str::<Ids>(r#"{"text":"1","either":2}"#).unwrap(), Ids { text: 1, either: 2 });
        for bad in [r#"{"text":1,"either":2}"#, r#"{"text":"x","either":2}"#, r#"{"text":"1","either":"x"}"#] {
            assert!(serde_json::from_str::<Ids>(bad).is_err(), "{bad}");
        }
    }
}
