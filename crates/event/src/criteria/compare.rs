//! Comparison of two values by thresholds.
//!
//! Integers are compared exactly: a difference of 64-bit numbers fits 128 bits, and a threshold is a whole number times
//! a power of two. So "at or beyond" needs no division and no rounding. A comparison in floating point decides the
//! clear cases first, which are nearly all.

use std::cmp::Ordering;

use tampu_types::event::{Band, Data, Thresholds};

/// Share by which absolute thresholds of floating point are lowered.
const TOLERANCE: f64 = 1e-10;
/// Relative distance to a threshold within which floating point does not decide for integers.
const CLOSE: f64 = 1e-9;

/// Returns whether any element is at or beyond a threshold. Elements that are not numbers differ if they are unequal.
pub fn differ(before: Data<'_>, now: Data<'_>, thresholds: &Thresholds) -> bool {
    match (before, now) {
        (Data::UChar(before), Data::UChar(now)) => any_integer(before, now, thresholds),
        (Data::Short(before), Data::Short(now)) => any_integer(before, now, thresholds),
        (Data::UShort(before), Data::UShort(now)) => any_integer(before, now, thresholds),
        (Data::Long(before), Data::Long(now)) => any_integer(before, now, thresholds),
        (Data::ULong(before), Data::ULong(now)) => any_integer(before, now, thresholds),
        (Data::Long64(before), Data::Long64(now)) => any_integer(before, now, thresholds),
        (Data::ULong64(before), Data::ULong64(now)) => any_integer(before, now, thresholds),
        (Data::Float(before), Data::Float(now)) => any_float(before, now, thresholds),
        (Data::Double(before), Data::Double(now)) => any_float(before, now, thresholds),
        _ => before != now,
    }
}

fn any_integer<T: Copy + Into<i128>>(before: &[T], now: &[T], thresholds: &Thresholds) -> bool {
    before.len() != now.len()
        || !thresholds.is_empty()
            && before.iter().zip(now).any(|(&before, &now)| integer_differs(before.into(), now.into(), thresholds))
}

fn any_float<T: Copy + Into<f64>>(before: &[T], now: &[T], thresholds: &Thresholds) -> bool {
    before.len() != now.len()
        || !thresholds.is_empty()
            && before.iter().zip(now).any(|(&before, &now)| float_differs(before.into(), now.into(), thresholds))
}

/// Returns whether two integers of at most 64 bits differ by a threshold.
fn integer_differs(before: i128, now: i128, thresholds: &Thresholds) -> bool {
    let change = now - before;
    let relative = |band: Band| match before {
        0 if change == 0 => outside(0.0, band),
        0 => outside(100.0, band),
        _ => integer_outside(change * 100, before, band),
    };
    thresholds.rel.is_some_and(relative) || thresholds.abs.is_some_and(|band| integer_outside(change, 1, band))
}

/// Returns whether `dividend / divisor` is at or beyond an end of the band.
fn integer_outside(dividend: i128, divisor: i128, band: Band) -> bool {
    let about = dividend as f64 / divisor as f64;
    let clear = |end: f64| (about - end).abs() > CLOSE * end.abs().max(f64::MIN_POSITIVE);
    if clear(band.low()) && clear(band.high()) {
        return outside(about, band);
    }
    // Multiplied by the divisor; where that is negative the order turns.
    let turn = |order: Ordering| if divisor < 0 { order.reverse() } else { order };
    turn(compare_product(dividend, band.low(), divisor)).is_le() || turn(compare_product(dividend, band.high(), divisor)).is_ge()
}

/// Compares `a` with `x * b`, exactly. `x` is finite; `a` has at most 72 bits, `b` at most 64.
fn compare_product(a: i128, x: f64, b: i128) -> Ordering {
    let (whole, exponent) = parts(x);
    let product = whole * b;
    if exponent >= 0 {
        shifted(product, exponent.unsigned_abs()).map_or_else(|| 0.cmp(&product), |product| a.cmp(&product))
    } else {
        shifted(a, exponent.unsigned_abs()).map_or_else(|| a.cmp(&0), |a| a.cmp(&product))
    }
}

/// Splits a finite number into a whole number and a power of two.
fn parts(x: f64) -> (i128, i32) {
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, (bits & ((1 << 52) - 1)) as i128);
    let (whole, exponent) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    (if x < 0.0 { -whole } else { whole }, exponent)
}

/// Multiplies `a` by a power of two; returns `None` if the result has more than 126 bits, which exceeds every value it
/// is compared with.
fn shifted(a: i128, by: u32) -> Option<i128> {
    match a {
        0 => Some(0),
        _ if a.unsigned_abs().leading_zeros() > by + 1 => Some(a << by),
        _ => None,
    }
}

fn float_differs(before: f64, now: f64, thresholds: &Thresholds) -> bool {
    if before.is_nan() || now.is_nan() {
        return before.is_nan() != now.is_nan();
    }
    if (before.is_infinite() || now.is_infinite()) && before != now {
        return true;
    }
    let change = if before == now { 0.0 } else { now - before };
    let relative = |band: Band| outside(relative_change(before, now, change), band);
    let absolute = |band: Band| {
        let (low, high) = (band.low() * (1.0 - TOLERANCE), band.high() * (1.0 - TOLERANCE));
        change <= low || change >= high
    };
    thresholds.rel.is_some_and(relative) || thresholds.abs.is_some_and(absolute)
}

/// Returns the difference in percent of the earlier value. Both values are finite, or equal.
fn relative_change(before: f64, now: f64, change: f64) -> f64 {
    if change == 0.0 {
        return 0.0;
    }
    if before == 0.0 {
        return 100.0;
    }
    let product = change * 100.0;
    if product.is_finite() { product / before } else { (now / before - 1.0) * 100.0 }
}

fn outside(change: f64, band: Band) -> bool {
    change <= band.low() || change >= band.high()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn products_are_compared_exactly() {
        assert_eq!(compare_product(1, 0.1, 10), Ordering::Less, "0.1 is a little more than a tenth");
        assert_eq!(compare_product(1, 0.25, 4), Ordering::Equal);
        let most = i128::from(u64::MAX);
        assert_eq!(compare_product(most * 100, 100.0, most), Ordering::Equal);
        assert_eq!(compare_product(most * 100 - 1, 100.0, most), Ordering::Less);
        assert_eq!(compare_product(1, f64::MAX, 1), Ordering::Less);
        assert_eq!(compare_product(1, f64::MAX, -1), Ordering::Greater);
        assert_eq!(compare_product(1, 5e-324, most), Ordering::Greater);
        assert_eq!(compare_product(-1, 5e-324, most), Ordering::Less);
        assert_eq!(compare_product(0, 5e-324, 1), Ordering::Less);
        assert_eq!(compare_product(5, 0.0, 9), Ordering::Greater);
    }

    proptest! {
        /// Tests that the parts of a number make the number again.
        #[test]
        fn a_number_is_its_parts(x in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            let (whole, exponent) = parts(x);
            prop_assert_eq!(whole as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2), x);
        }
    }
}
