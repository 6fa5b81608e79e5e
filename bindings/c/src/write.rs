//! A record of one text, which the caller has made.

use std::{ffi::c_char, slice};

use tampu_log::Logger;
use tampu_text::{TEXT_MAX, tag::Tag};
use tampu_types::LogRecord;

use crate::{
    failure::{Failure, guarded},
    handle::{Handle, logger},
    level::level,
    place::{PLACES, Place},
    string,
};

/// Before the text: the word of tags, and the text's length.
const HEAD: usize = 12;

/// Logs a text.
///
/// # Safety
/// `handle` is NULL or open; the strings are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_write(
    handle: *const Handle,
    level: i32,
    file: *const c_char,
    line: u32,
    routine: *const c_char,
    text: *const c_char,
) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || unsafe { write(handle, level, file, line, routine, string::bytes(text)) })
}

/// Logs a text of so many bytes.
///
/// # Safety
/// As above; `text` is NULL where `length` is 0, or `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_write_bytes(
    handle: *const Handle,
    level: i32,
    file: *const c_char,
    line: u32,
    routine: *const c_char,
    text: *const c_char,
    length: usize,
) -> i32 {
    guarded(-1, || {
        let text = match (text.is_null(), length) {
            (_, 0) => &[],
            (true, _) => return Err(Failure::Null("the text")),
            // SAFETY: by the caller.
            (false, _) => unsafe { slice::from_raw_parts(text.cast::<u8>(), length) },
        };
        // SAFETY: by the caller.
        unsafe { write(handle, level, file, line, routine, text) }
    })
}

/// # Safety
/// As for [`tampu_log_write`].
unsafe fn write(
    handle: *const Handle,
    number: i32,
    file: *const c_char,
    line: u32,
    routine: *const c_char,
    text: &[u8],
) -> Result<i32, Failure> {
    // SAFETY: by the caller.
    let (logger, file, routine) = unsafe { (logger(handle)?, string::bytes(file), string::bytes(routine)) };
    let level = level(number)?;
    if logger.enabled(level) {
        record(logger, Place { level: level.number(), line, file, routine }, level, text);
    }
    Ok(0)
}

fn record(logger: &Logger, place: Place, level: tampu_log::Level, text: &[u8]) {
    let Some(statement) = PLACES.statement(place) else { return record_by_hand(logger, place, level, text) };
    let kept = &text[..text.len().min(TEXT_MAX)];
    let Some(mut claim) = logger.claim(statement, HEAD + kept.len()) else { return };
    let (head, tail) = claim.bytes().split_at_mut(HEAD);
    head[..8].copy_from_slice(&[Tag::Str as u8, 0, 0, 0, 0, 0, 0, 0]);
    head[8..].copy_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    tail.copy_from_slice(kept);
    claim.commit();
}

#[cold]
fn record_by_hand(logger: &Logger, place: Place, level: tampu_log::Level, text: &[u8]) {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut record = LogRecord::new(level, lossy(text));
    record.file = lossy(place.file);
    record.line = (place.line != 0).then_some(place.line);
    record.routine = lossy(place.routine);
    logger.record(record);
}
