//! Decimal digits of an integer: two at a time, from the end.

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
pub fn push(out: &mut String, number: u64) {
    out.reserve(DIGITS_MAX);
    // SAFETY: there is room for as many digits as a number can have, and digits are ASCII.
    unsafe {
        let bytes = out.as_mut_vec();
        let length = put(bytes.as_mut_ptr().add(bytes.len()), number);
        bytes.set_len(bytes.len() + length);
    }
}

/// Writes the digits and returns their number.
///
/// # Safety
/// [`DIGITS_MAX`] bytes from `to` on are writable.
#[inline]
unsafe fn put(to: *mut u8, mut number: u64) -> usize {
    let length = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    let mut at = length;
    // SAFETY: in all of it, `at` is the number of digits left, and never more than `length`.
    unsafe {
        while number >= 100 {
            at -= 2;
            pair(to.add(at), number % 100);
            number /= 100;
        }
        if number >= 10 { pair(to, number) } else { to.write(b'0' + number as u8) }
    }
    length
}

/// # Safety
/// Two bytes are writable; the number is below 100.
#[inline(always)]
unsafe fn pair(to: *mut u8, number: u64) {
    let at = number as usize * 2;
    // SAFETY: the caller guarantees the range; an array of bytes has no alignment.
    unsafe { to.cast::<[u8; 2]>().write([PAIRS[at], PAIRS[at + 1]]) };
}

/// Appends the number, with a sign if it is negative.
#[inline]
pub fn push_signed(out: &mut String, number: i64) {
    if number < 0 {
        out.push('-');
    }
    push(out, number.unsigned_abs());
}
