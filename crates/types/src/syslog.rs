//! Syslog messages: reading of RFC 5424 and RFC 3164, writing of RFC 5424. The contract is `spec/wire/syslog.md`.
//!
//! ```text
//! <165>1 2003-10-11T22:14:15.003Z host evntslog 812 ID47 [ex@32473 iut="3"] text      RFC 5424
//!  PRI V TIME                     HOST APP     PID MSGID STRUCTURED DATA     MSG
//! <34>Oct 11 22:14:15 host su[812]: text                                              RFC 3164
//!  PRI TIME           HOST TAG     MSG
//! ```
//! Decision: reading never fails. A log message that breaks the rules still carries its sender's information. So
//! invalid parts are kept as text, with a value `syslog_fault` that gives the reason. Rejected: a strict reader and an
//! optional lenient one. The senders that break the rules are switches and power supplies that nobody can repair.
//!
//! | subject | module |
//! |-|-|
//! | the header of RFC 5424 and its structured data | `rfc5424` |
//! | the header of RFC 3164 | `rfc3164` |
//! | year and zone of a time without them | [`guess`] |
//! | a record as a message | `write` |
//! | messages in a byte stream | [`frames`](crate::frames) |

use crate::{
    level::Level,
    record::{Datum, LogRecord},
    time::Time,
};

pub mod guess;
mod rfc3164;
mod rfc5424;
mod write;

pub use write::{encode, facility_number};

/// The facilities' names, by number.
pub const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "ntp", "audit",
    "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];

/// Priority of a message without one: facility user, severity notice (RFC 3164, 4.3.3).
const NO_PRIORITY: u8 = 13;

/// A priority's severity as a level. All eight have one of the same meaning.
pub fn level_of(severity: u8) -> Level {
    match severity & 7 {
        0 => Level::Emergency,
        1 => Level::Alert,
        2 => Level::Critical,
        3 => Level::Error,
        4 => Level::Warning,
        5 => Level::Notice,
        6 => Level::Info,
        _ => Level::Debug,
    }
}

/// A level as a severity; Trace and Delouse have none of their own and are debug.
pub fn severity_of(level: Level) -> u8 {
    match level {
        Level::Emergency => 0,
        Level::Alert => 1,
        Level::Critical => 2,
        Level::Error => 3,
        Level::Warning => 4,
        Level::Notice => 5,
        Level::Info => 6,
        Level::Debug | Level::Delouse | Level::Trace => 7,
    }
}

/// Reads one message that was received at this time. Bytes of invalid UTF-8 are shown as U+FFFD.
///
/// Absent fields stay empty; an absent time is that of the receipt.
pub fn parse(message: &[u8], received: Time) -> LogRecord {
    let text = String::from_utf8_lossy(message);
    let (priority, rest) = priority(&text).unwrap_or((NO_PRIORITY, &text));
    let mut record = LogRecord::new(level_of(priority), String::new());
    record.time = received;
    record.data.push(Datum::new("facility", FACILITIES[usize::from(priority >> 3)]));
    if rfc5424::is_meant(rest) {
        match rfc5424::read(rest, &mut record) {
            Ok(()) => return record,
            // Fields that were set before the error are not reliable.
            Err(why) => {
                record.data.truncate(1);
                record.data.push(Datum::new("syslog_fault", why));
                (record.time, record.host, record.process) = (received, String::new(), String::new());
            }
        }
    }
    rfc3164::read(rest, received, &mut record);
    record
}

/// Reads `<0>` to `<191>`; returns the priority and the rest.
fn priority(text: &str) -> Option<(u8, &str)> {
    let (digits, rest) = text.strip_prefix('<')?.split_once('>')?;
    let number = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let priority = number.then(|| digits.parse::<u8>().ok())?.filter(|priority| *priority < 192)?;
    Some((priority, rest))
}

#[cfg(test)]
mod tests;
