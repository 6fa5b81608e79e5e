//! Decimal digits of an integer: two at a time, from the end.

use crate::append::append;

/// Digits of the largest `u64`.
const DIGITS_MAX: usize = 20;

static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[2 * number] = b'0' + (number / 10) as u8;
        pairs[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

/// Appends the number.
#[inline]
pub fn push(out: &mut String, mut number: u64) {
    let mut digits = [0u8; DIGITS_MAX];
    let mut at = DIGITS_MAX;
    while number >= 100 {
        let pair = (number % 100) as usize * 2;
        number /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if number >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[number as usize * 2..][..2]);
    } else {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    // SAFETY: from `at` on there are digits only, which are ASCII.
    append(out, unsafe { std::str::from_utf8_unchecked(&digits[at..]) });
}

/// Appends the number, with a sign if it is negative.
#[inline]
pub fn push_signed(out: &mut String, number: i64) {
    if number < 0 {
        out.push('-');
    }
    push(out, number.unsigned_abs());
}
