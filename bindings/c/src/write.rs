//! Records of one text that the caller has formatted.

use std::{ffi::c_char, slice};

use tampu_log::Logger;
use tampu_text::{
    TEXT_MAX,
    place::{PLACES, SourcePlace},
    tag::Tag,
};
use tampu_types::LogRecord;

use crate::{
    failure::{Failure, guarded},
    handle::{Handle, logger},
    level::level,
    string,
};

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
    guarded(-1, || unsafe { write(handle, level, (file, line, routine), string::bytes(text), &[]) })
}

/// Logs a text of `length` bytes.
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
        // SAFETY: by the caller.
        unsafe { write(handle, level, (file, line, routine), string::counted(text.cast(), length, "the text")?, &[]) }
    })
}

/// `tampu_log_datum`: a value beside a text.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct DatumOfC {
    pub name: *const c_char,
    pub value: *const c_char,
}

/// Writes a record of one text with values beside it.
///
/// # Safety
/// As above; `data` is NULL where `count` is 0, or points to as many, whose strings are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_write_data(
    handle: *const Handle,
    level: i32,
    file: *const c_char,
    line: u32,
    routine: *const c_char,
    text: *const c_char,
    length: usize,
    data: *const DatumOfC,
    count: usize,
) -> i32 {
    guarded(-1, || {
        let data = match (data.is_null(), count) {
            (_, 0) => &[],
            (true, _) => return Err(Failure::Null("the list of data")),
            _ if count > isize::MAX as usize / size_of::<DatumOfC>() => return Err(Failure::Length(count)),
            // SAFETY: by the caller; the length of the slice in bytes is an `isize`.
            (false, _) => unsafe { slice::from_raw_parts(data, count) },
        };
        // SAFETY: by the caller.
        let data: Vec<Datum> =
            unsafe { data.iter().map(|datum| (string::bytes(datum.name), string::bytes(datum.value))).collect() };
        // SAFETY: by the caller.
        unsafe { write(handle, level, (file, line, routine), string::counted(text.cast(), length, "the text")?, &data) }
    })
}

/// A name and its value.
type Datum<'a> = (&'a [u8], &'a [u8]);

/// # Safety
/// As for [`tampu_log_write`].
unsafe fn write(
    handle: *const Handle,
    number: i32,
    (file, line, routine): (*const c_char, u32, *const c_char),
    text: &[u8],
    data: &[Datum<'_>],
) -> Result<i32, Failure> {
    // SAFETY: by the caller.
    let (logger, file, routine) = unsafe { (logger(handle)?, string::bytes(file), string::bytes(routine)) };
    let level = level(number)?;
    if logger.enabled(level) {
        let names: Vec<&[u8]> = data.iter().map(|(name, _)| *name).collect();
        record(logger, SourcePlace { level: level.number(), line, file, routine, names: &names }, level, text, data);
    }
    Ok(0)
}

fn record(logger: &Logger, place: SourcePlace, level: tampu_log::Level, text: &[u8], data: &[Datum<'_>]) {
    let Some(statement) = PLACES.statement(place) else { return record_by_hand(logger, place, level, text, data) };
    let texts = || std::iter::once(text).chain(data.iter().map(|(_, value)| *value));
    let kept = |text: &[u8]| text.len().min(TEXT_MAX);
    let head = (1 + data.len()).next_multiple_of(8);
    let Some(mut claim) = logger.claim(statement, head + texts().map(|text| 4 + kept(text)).sum::<usize>()) else { return };
    let (tags, mut rest) = claim.bytes().split_at_mut(head);
    tags.fill(0);
    tags[..1 + data.len()].fill(Tag::Str as u8);
    for text in texts() {
        let (told, after) = rest.split_at_mut(4);
        told.copy_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        let (place, after) = after.split_at_mut(kept(text));
        place.copy_from_slice(&text[..kept(text)]);
        rest = after;
    }
    claim.commit();
}

#[cold]
fn record_by_hand(logger: &Logger, place: SourcePlace, level: tampu_log::Level, text: &[u8], data: &[Datum<'_>]) {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut record = LogRecord::new(level, lossy(text));
    record.data = data.iter().map(|(name, value)| tampu_types::Datum::new(lossy(name), lossy(value))).collect();
    record.file = lossy(place.file);
    record.line = (place.line != 0).then_some(place.line);
    record.routine = lossy(place.routine);
    logger.record(record);
}
