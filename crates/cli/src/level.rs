//! Levels as users type them.

use tampu_log::Threshold;
use tampu_types::Level;

use crate::near;

/// Reads one of ACS's ten levels, its number, or its name in other systems, in any case.
pub fn parse_level(text: &str) -> Result<Level, String> {
    let text = text.trim();
    if let Some(level) = Level::of_word(text) {
        return Ok(level);
    }
    let names = Level::ALL.map(Level::name);
    let meant = near::nearest(text, names).map(|name| format!("did you mean {name}? ")).unwrap_or_default();
    Err(format!("'{text}' is not a level; {meant}levels are {}", names.join(", ")))
}

/// Reads a level, or `off` for none at all.
pub fn parse_threshold(text: &str) -> Result<Threshold, String> {
    if text.trim().eq_ignore_ascii_case("off") {
        return Ok(Threshold::Off);
    }
    parse_level(text).map(Threshold::From).map_err(|why| format!("{why}, off"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_other_systems_are_understood_and_a_slip_is_named() {
        for (text, level) in [
            ("Warning", Level::Warning),
            ("warning", Level::Warning),
            ("WARN", Level::Warning),
            ("ERR", Level::Error),
            ("crit", Level::Critical),
            ("FATAL", Level::Critical),
            ("8", Level::Error),
        ] {
            assert_eq!(parse_level(text), Ok(level), "{text}");
        }
        assert!(parse_level("Warnin").unwrap_err().contains("did you mean Warning?"));
        assert!(parse_level("Loud").unwrap_err().starts_with("'Loud' is not a level"));
        assert_eq!(parse_threshold("OFF"), Ok(Threshold::Off));
    }
}
