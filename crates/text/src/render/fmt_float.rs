//! Floats as fmt shows them. The digits come from `core::fmt`; this module places them.

use std::fmt::Write;

use crate::{
    render::{float::MAX_EXPONENT_DIGITS, pad},
    spec::{Align, Kind, Sign, Spec},
};

/// Default number of digits behind the point, or in all for `g`.
const PRECISION: usize = 6;

/// Lowest power of ten from which fmt shows a number without a type or precision with an exponent.
const FIXED_BELOW: i32 = 16;

/// More digits than a double has (767). What lies beyond are zeros, which `g` cuts, and `core::fmt` panics beyond 65535.
const MAX_DIGITS: usize = 1000;

/// Below this power of ten, `g` and a missing type show an exponent.
const FIXED_FROM: i32 = -4;

/// A float, with the shortest digits that lead back to it in its own type.
pub struct Number {
    value: f64,
    /// `d.dde-d`, without sign.
    shortest: String,
}

impl From<f32> for Number {
    fn from(value: f32) -> Number {
        Number { value: value.into(), shortest: format!("{:e}", value.abs()) }
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Number {
        Number { value, shortest: format!("{:e}", value.abs()) }
    }
}

/// Appends a float.
pub fn show(out: &mut String, number: Number, spec: &Spec) {
    let start = out.len();
    let value = number.value.abs();
    match (number.value.is_sign_negative(), spec.sign) {
        (true, _) => out.push('-'),
        (false, Sign::Plus) => out.push('+'),
        (false, Sign::Space) => out.push(' '),
        (false, Sign::None) => {}
    }
    let first_digit = out.len();
    let upper = matches!(spec.kind, Kind::UpperFixed | Kind::UpperExp | Kind::UpperGeneral);
    if !value.is_finite() {
        out.push_str(if value.is_nan() { "nan" } else { "inf" });
    } else {
        let precision = spec.precision.map(usize::from);
        // Writing to a String does not fail.
        let _ = match spec.kind {
            Kind::LowerFixed | Kind::UpperFixed => write!(out, "{:.*}", precision.unwrap_or(PRECISION), value),
            Kind::LowerExp | Kind::UpperExp => {
                let digits = precision.unwrap_or(PRECISION).min(MAX_EXPONENT_DIGITS.into());
                scientific(out, &format!("{:.*e}", digits, value));
                Ok(())
            }
            Kind::LowerGeneral | Kind::UpperGeneral => {
                general(out, value, precision.unwrap_or(PRECISION));
                Ok(())
            }
            _ => {
                match precision {
                    Some(precision) => general(out, value, precision),
                    None => shortest(out, &number.shortest),
                }
                Ok(())
            }
        };
    }
    if upper {
        out[first_digit..].make_ascii_uppercase();
    }
    if spec.zero && spec.align.is_none() && value.is_finite() {
        pad::fill_zeros(out, start, first_digit, spec);
    } else {
        pad::fill(out, start, spec, Align::Right);
    }
}

/// Returns a number's parts, of `core::fmt`'s `d.dde-d`: the digits before the `e`, and the power of ten.
fn parts(text: &str) -> (&str, i32) {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (digits, exponent.parse().unwrap_or(0))
}

/// Appends a number with its exponent: a sign and at least two digits.
fn scientific(out: &mut String, text: &str) {
    let (digits, exponent) = parts(text);
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "{digits}e{sign}{:02}", exponent.unsigned_abs());
}

fn shortest(out: &mut String, text: &str) {
    let (digits, exponent) = parts(text);
    if !(FIXED_FROM..FIXED_BELOW).contains(&exponent) {
        return scientific(out, text);
    }
    let digits: String = digits.chars().filter(|character| *character != '.').collect();
    if exponent < 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
        return out.push_str(&digits);
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.push_str(&digits);
        return out.extend(std::iter::repeat_n('0', whole - digits.len()));
    }
    out.push_str(&digits[..whole]);
    out.push('.');
    out.push_str(&digits[whole..]);
}

/// Formats like C's `%g`: so many digits in all, an exponent for very large or small numbers, no zeros at the end.
fn general(out: &mut String, value: f64, precision: usize) {
    let precision = precision.clamp(1, MAX_DIGITS);
    let rounded = format!("{:.*e}", precision - 1, value);
    let (digits, exponent) = parts(&rounded);
    let start = out.len();
    if exponent < FIXED_FROM || exponent >= precision as i32 {
        out.push_str(digits);
        trim_zeros(out, start);
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    } else {
        let decimals = precision as i32 - 1 - exponent;
        let _ = write!(out, "{:.*}", decimals as usize, value);
        trim_zeros(out, start);
    }
}

fn trim_zeros(out: &mut String, start: usize) {
    if out[start..].contains('.') {
        let end = start + out[start..].trim_end_matches('0').trim_end_matches('.').len();
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_precision_is_shown() {
        for kind in Kind::ALL {
            let spec = Spec { precision: Some(u16::MAX), kind, ..Spec::PLAIN };
            for value in [0.0001, 1.5, 1e300, f64::MIN_POSITIVE] {
                let mut out = String::new();
                show(&mut out, Number::from(value), &spec);
                assert!(!out.is_empty(), "{spec:?}");
            }
        }
    }
}
