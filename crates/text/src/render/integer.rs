//! Integers, in every base.

use std::fmt::Write;

use crate::{
    render::{digits, float, fmt_float, pad, text},
    site::Dialect,
    spec::{Align, Kind, Sign, Spec},
};

/// Appends an integer given by sign and magnitude; `bits` is its type's size, if negative numbers have a two's
/// complement.
pub fn show(out: &mut String, negative: bool, magnitude: u128, bits: u8, spec: &Spec, dialect: Dialect) {
    match dialect {
        Dialect::Rust => rust(out, negative, magnitude, bits, spec),
        Dialect::Fmt => fmt(out, negative, magnitude, spec),
    }
}

fn rust(out: &mut String, negative: bool, magnitude: u128, bits: u8, spec: &Spec) {
    let (base, prefix) = match spec.kind {
        Kind::LowerHex | Kind::DebugLowerHex => (Base::LowerHex, "0x"),
        Kind::UpperHex | Kind::DebugUpperHex => (Base::UpperHex, "0x"),
        Kind::Octal => (Base::Octal, "0o"),
        Kind::Binary => (Base::Binary, "0b"),
        Kind::LowerExp | Kind::UpperExp => return exponent(out, negative, magnitude, spec),
        _ => (Base::Decimal, ""),
    };
    // In any base but ten a negative number is its two's complement, and so has no sign.
    let complement = negative && base != Base::Decimal;
    let shown = if complement { magnitude.wrapping_neg() & (u128::MAX >> (128 - u32::from(bits))) } else { magnitude };
    let sign = sign(negative && !complement, spec.sign);
    put(out, sign, if spec.alternate { prefix } else { "" }, shown, base, spec, spec.zero);
}

fn exponent(out: &mut String, negative: bool, magnitude: u128, spec: &Spec) {
    match (negative, i128::try_from(magnitude)) {
        (false, _) => float::show(out, magnitude, spec),
        (true, Ok(magnitude)) => float::show(out, -magnitude, spec),
        (true, Err(_)) => float::show(out, i128::MIN, spec),
    }
}

/// Appends an integer as fmt does: in every base with its sign.
pub fn fmt(out: &mut String, negative: bool, magnitude: u128, spec: &Spec) {
    let octal_prefix = if magnitude == 0 { "" } else { "0" };
    let (base, prefix) = match spec.kind {
        Kind::LowerHex | Kind::DebugLowerHex => (Base::LowerHex, "0x"),
        Kind::UpperHex | Kind::DebugUpperHex => (Base::UpperHex, "0X"),
        Kind::Octal => (Base::Octal, octal_prefix),
        Kind::Binary => (Base::Binary, "0b"),
        Kind::UpperBinary => (Base::Binary, "0B"),
        Kind::Character => {
            let character = u32::try_from(magnitude).ok().filter(|_| !negative).and_then(char::from_u32);
            return text::character(out, character.unwrap_or(char::REPLACEMENT_CHARACTER), spec, Dialect::Fmt);
        }
        Kind::LowerFixed | Kind::UpperFixed | Kind::LowerExp | Kind::UpperExp | Kind::LowerGeneral | Kind::UpperGeneral => {
            let number = if negative { -(magnitude as f64) } else { magnitude as f64 };
            return fmt_float::show(out, fmt_float::Number::from(number), spec);
        }
        _ => (Base::Decimal, ""),
    };
    let zero = spec.zero && spec.align.is_none();
    put(out, sign(negative, spec.sign), if spec.alternate { prefix } else { "" }, magnitude, base, spec, zero);
}

fn sign(negative: bool, sign: Sign) -> &'static str {
    match (negative, sign) {
        (true, _) => "-",
        (false, Sign::None) => "",
        (false, Sign::Plus) => "+",
        (false, Sign::Space) => " ",
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Decimal,
    LowerHex,
    UpperHex,
    Octal,
    Binary,
}

fn put(out: &mut String, sign: &str, prefix: &str, number: u128, base: Base, spec: &Spec, zero: bool) {
    if let (Base::Decimal, Ok(number)) = (base, u64::try_from(number))
        && decimal(out, sign, number, spec, zero)
    {
        return;
    }
    let start = out.len();
    out.push_str(sign);
    out.push_str(prefix);
    let first_digit = out.len();
    // Writing to a String does not fail.
    let _ = match (base, u64::try_from(number)) {
        (Base::Decimal, Ok(number)) => {
            digits::push(out, number);
            Ok(())
        }
        (Base::Decimal, Err(_)) => write!(out, "{number}"),
        (Base::LowerHex, _) => write!(out, "{number:x}"),
        (Base::UpperHex, _) => write!(out, "{number:X}"),
        (Base::Octal, _) => write!(out, "{number:o}"),
        (Base::Binary, _) => write!(out, "{number:b}"),
    };
    if zero {
        pad::fill_zeros(out, start, first_digit, spec);
    } else {
        pad::fill(out, start, spec, Align::Right);
    }
}

/// Appends a decimal number that is right-aligned or padded with zeros, as nearly all are. Its number of digits is
/// known before they are written, so nothing has to be moved. Returns `false`, and does nothing, for others.
fn decimal(out: &mut String, sign: &str, number: u64, spec: &Spec, zero: bool) -> bool {
    const ZEROS: &str = "0000000000000000";
    const SPACES: &str = "                ";
    let digits_len = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    let missing = usize::from(spec.width.unwrap_or(0)).saturating_sub(sign.len() + digits_len);
    let stands_right = spec.fill == ' ' && spec.align.unwrap_or(Align::Right) == Align::Right;
    match missing {
        0 => out.push_str(sign),
        1..=16 if zero => {
            out.push_str(sign);
            out.push_str(&ZEROS[..missing]);
        }
        1..=16 if stands_right => {
            out.push_str(&SPACES[..missing]);
            out.push_str(sign);
        }
        _ => return false,
    }
    digits::push(out, number);
    true
}
