//! Numbers for people: few digits, an exponent only where it helps.
//!
//! A sensor that reports `0.30000000000000004` measures 0.3. Output for people shows seven significant digits, because
//! an instrument seldom has more; output for programs stays exact, by [`ValueView::write_element`]. Whole numbers below
//! 10^15 are shown in full, as they are counters more often than measurements.

use std::fmt;

use super::{data::DataType, elements::ValueView};

/// Significant digits of a number for people.
pub const READABLE_DIGITS: usize = 7;

/// Whole numbers below this one are shown with all digits.
const WHOLE_BELOW: f64 = 1e15;

/// A number with at most [`READABLE_DIGITS`] significant digits: `0.3`, `1.2e-9`, `273.15`, `NaN`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Readable(pub f64);

impl fmt::Display for Readable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0;
        if !number.is_finite() {
            return write!(f, "{number}");
        }
        if number == 0.0 || number.fract() == 0.0 && number.abs() < WHOLE_BELOW {
            // Without the sign of a negative zero.
            return write!(f, "{}", number + 0.0);
        }
        // The exponent form rounds to the digits and shows the exponent after rounding.
        let rounded = format!("{number:.*e}", READABLE_DIGITS - 1);
        let Some((mantissa, exponent)) = rounded.split_once('e') else { return f.write_str(&rounded) };
        match exponent.parse::<i32>() {
            Ok(exponent @ -4..=14) => {
                let decimals = (READABLE_DIGITS as i32 - 1 - exponent).max(0) as usize;
                let text = format!("{number:.decimals$}");
                f.write_str(without_trailing_zeros(&text))
            }
            _ => write!(f, "{}e{exponent}", without_trailing_zeros(mantissa)),
        }
    }
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

impl ValueView<'_> {
    /// Writes one element as people read it: numbers of floating point with at most [`READABLE_DIGITS`] significant
    /// digits, other elements as [`ValueView::write_element`] does.
    pub fn write_readable_element(&self, index: usize, out: &mut impl fmt::Write) -> fmt::Result {
        match (self.data_type(), self.number(index)) {
            (DataType::Float | DataType::Double, Some(number)) => write!(out, "{}", Readable(number)),
            _ => self.write_element(index, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits_and_an_exponent_where_it_helps() {
        for (number, text) in [
            (0.1 + 0.2, "0.3"),
            (f64::from(0.1f32), "0.1"),
            (f64::from(21.7f32), "21.7"),
            (1.0 / 3.0, "0.3333333"),
            (1.2e-9, "1.2e-9"),
            (0.000_123_456_789, "0.0001234568"),
            (0.000_012_345_678_9, "1.234568e-5"),
            (123_456.789, "123456.8"),
            (-273.15, "-273.15"),
            (99_999_999.5, "100000000"),
            (9.999_999_99, "10"),
            (1_795_385_734.0, "1795385734"),
            (6.022_140_76e23, "6.022141e23"),
            (0.0, "0"),
            (-0.0, "0"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
            (f64::MIN_POSITIVE, "2.225074e-308"),
        ] {
            assert_eq!(Readable(number).to_string(), text);
        }
    }
}
