//! The header of RFC 3164: the format of devices and old daemons, which that RFC observed rather than specified.

use super::guess;
use crate::{
    record::{Datum, LogRecord},
    time::Time,
};

/// Sets the fields that a message has after its priority. Without a time there is no header, and all is text.
pub(super) fn read(rest: &str, received: Time, record: &mut LogRecord) {
    let Some(after) = time_of(rest, received, record) else {
        record.message = rest.to_owned();
        return;
    };
    let mut text = after;
    // A sender on its own host omits the host; then the tag follows at once.
    if let Some((host, after)) = text.split_once(' ')
        && !host.is_empty()
        && !host.ends_with(':')
        && !host.contains('[')
    {
        record.host = host.to_owned();
        text = after;
    }
    let end = text.find([' ', ':', '[']).unwrap_or(text.len());
    let (tag, after) = text.split_at(end);
    let (procid, after) = match after.strip_prefix('[').and_then(|after| after.split_once(']')) {
        Some((procid, after)) => (procid, after),
        None => ("", after),
    };
    match after.strip_prefix(':') {
        Some(message) if !tag.is_empty() => {
            record.process = tag.to_owned();
            record.logger = tag.to_owned();
            if !procid.is_empty() {
                record.data.push(Datum::new("procid", procid));
            }
            record.message = message.strip_prefix(' ').unwrap_or(message).to_owned();
        }
        _ => record.message = text.to_owned(),
    }
}

/// Removes the time, in one of its known forms, and its blank; returns the rest.
fn time_of<'a>(text: &'a str, received: Time, record: &mut LogRecord) -> Option<&'a str> {
    let (first, after) = text.split_once(' ')?;
    if let Ok(time) = Time::from_rfc3339(first) {
        record.time = time;
        return Some(after);
    }
    // `Oct 11 22:14:15`, a day below 10 with a second blank before it, and with a year after the day where a device was set so.
    let mut words = after.trim_start_matches(' ').splitn(3, ' ');
    let (day, mut clock, mut rest) = (words.next()?, words.next()?, words.next().unwrap_or(""));
    let year = (clock.len() == 4).then(|| clock.parse::<i64>().ok()).flatten();
    if year.is_some() {
        (clock, rest) = rest.split_once(' ')?;
    }
    let clock = clock.strip_suffix(':').unwrap_or(clock);
    let guessed = guess::time(year, first, day, clock, received)?;
    record.time = guessed.time;
    record.data.push(Datum::new("time_guessed", guessed.description()));
    Some(rest)
}
