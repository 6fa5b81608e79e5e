//! Floats as Rust shows them, and other values with an exponent.

use std::fmt::{self, Write};

use crate::{
    render::pad,
    spec::{Align, Kind, Sign, Spec},
};

/// Numbers that `core::fmt` formats.
pub trait Number: Copy {
    /// Writes with the sign, the zeros and the precision of the spec, and the width only where zeros fill it.
    fn write(self, out: &mut String, spec: &Spec) -> fmt::Result;
}

/// Most digits behind the point of a float with an exponent: `core::fmt` counts the digit before the point in 16 bits as
/// well, and panics beyond.
pub const MAX_EXPONENT_DIGITS: u16 = u16::MAX - 1;

/// Returns the precision that `core::fmt` can write.
fn precision(spec: &Spec) -> Option<u16> {
    match spec.kind {
        Kind::LowerExp | Kind::UpperExp => spec.precision.map(|digits| digits.min(MAX_EXPONENT_DIGITS)),
        _ => spec.precision,
    }
}

/// The combinations of a format text's flags, which must be literals.
macro_rules! write_as {
    ($out:ident, $value:ident, $spec:ident, $kind:literal) => {{
        let width = usize::from($spec.width.unwrap_or(0));
        match ($spec.sign == Sign::Plus, $spec.zero, precision($spec).map(usize::from)) {
            (false, false, None) => write!($out, concat!("{0:", $kind, "}"), $value),
            (true, false, None) => write!($out, concat!("{0:+", $kind, "}"), $value),
            (false, true, None) => write!($out, concat!("{0:01$", $kind, "}"), $value, width),
            (true, true, None) => write!($out, concat!("{0:+01$", $kind, "}"), $value, width),
            (false, false, Some(digits)) => write!($out, concat!("{0:.1$", $kind, "}"), $value, digits),
            (true, false, Some(digits)) => write!($out, concat!("{0:+.1$", $kind, "}"), $value, digits),
            (false, true, Some(digits)) => write!($out, concat!("{0:01$.2$", $kind, "}"), $value, width, digits),
            (true, true, Some(digits)) => write!($out, concat!("{0:+01$.2$", $kind, "}"), $value, width, digits),
        }
    }};
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn write(self, out: &mut String, spec: &Spec) -> fmt::Result {
                match spec.kind {
                    Kind::LowerExp => write_as!(out, self, spec, "e"),
                    Kind::UpperExp => write_as!(out, self, spec, "E"),
                    Kind::Debug | Kind::DebugLowerHex | Kind::DebugUpperHex => write_as!(out, self, spec, "?"),
                    _ => write_as!(out, self, spec, ""),
                }
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn write(self, out: &mut String, spec: &Spec) -> fmt::Result {
                match spec.kind {
                    Kind::UpperExp => write_as!(out, self, spec, "E"),
                    _ => write_as!(out, self, spec, "e"),
                }
            }
        }
    )*};
}

floats!(f32, f64);
integers!(u128, i128);

/// Appends a number.
pub fn show(out: &mut String, number: impl Number, spec: &Spec) {
    let start = out.len();
    // Writing to a String does not fail.
    let _ = number.write(out, spec);
    if !spec.zero {
        pad::fill(out, start, spec, Align::Right);
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
                show(&mut out, value, &spec);
                assert!(!out.is_empty(), "{spec:?}");
            }
        }
    }
}
