//! systemd's journal, in the form that `journalctl --output json` prints.
//!
//! A child process reads it, rather than the journal's library or its files. Its JSON is a stable interface and needs
//! nothing linked, and journalctl decides about the permissions of the reader.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, TryRecvError, sync_channel},
};

use serde_json::Value;
use tampu_types::{Datum, LogRecord, RecordId, Time, syslog};

use super::{
    sending::Sending,
    state::{Place, State},
};
use crate::{failure::Failure, interrupt::Interrupt};

/// Lines that wait between the child and this process; beyond them the child waits.
const WAITING: usize = 1000;
/// Lines that are committed together.
const TOGETHER: usize = 2000;

pub(super) struct Journal {
    child: Child,
    lines: Receiver<String>,
    place: Place,
    ended: bool,
}

impl Journal {
    /// Starts at the position of the state, or at the journal's beginning.
    pub fn start(place: Option<Place>, once: bool) -> Result<Journal, Failure> {
        let failed = |error: std::io::Error| Failure::failed("journalctl", error);
        let place = place.unwrap_or_else(|| Place { life: tampu_bus::host::incarnation(), ..Place::default() });
        let mut command = Command::new("journalctl");
        command.args(["--output", "json", "--all", "--no-pager", "--quiet"]);
        if place.cursor.is_empty() {
            command.args(["--lines", "all"]);
        } else {
            command.arg(format!("--after-cursor={}", place.cursor));
        }
        if !once {
            command.arg("--follow");
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let output = child.stdout.take().ok_or_else(|| Failure::failed("journalctl", "it has no output"))?;
        let (told, lines) = sync_channel(WAITING);
        let read = move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("journal".to_owned()).spawn(read).map_err(failed)?;
        Ok(Journal { child, lines, place, ended: false })
    }

    /// Returns true at the end of the journal.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Sends the new lines, and waits until they are committed; returns whether there were any.
    pub fn step(&mut self, state: &mut State, sending: &mut Sending, interrupt: &Interrupt) -> Result<bool, Failure> {
        let mut place = self.place.clone();
        for count in 0..TOGETHER {
            let line = match self.lines.try_recv() {
                Ok(line) => line,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.end()?;
                    break;
                }
            };
            if count == 0 && place.number == 0 {
                // The state is stored before sending, so that a repeated record has the same id.
                state.keep_journal(&place)?;
            }
            let (mut record, cursor) = match entry(&line) {
                Ok(read) => read,
                Err(why) => {
                    eprintln!("tampu: journalctl: no entry can be read: {why}");
                    continue;
                }
            };
            record.id = Some(RecordId { incarnation: place.life, ring: 0, number: place.number });
            place.number += 1;
            place.cursor = cursor;
            sending.send(&record)?;
        }
        if place == self.place {
            return Ok(false);
        }
        if sending.confirm(interrupt)? {
            state.keep_journal(&place)?;
            self.place = place;
        }
        Ok(true)
    }

    fn end(&mut self) -> Result<(), Failure> {
        if !self.ended {
            self.ended = true;
            let status = self.child.wait().map_err(|error| Failure::failed("journalctl", error))?;
            if !status.success() {
                return Err(Failure::failed("journalctl", status));
            }
        }
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One entry, and where it stands.
fn entry(line: &str) -> Result<(LogRecord, String), serde_json::Error> {
    let fields: serde_json::Map<String, Value> = serde_json::from_str(line)?;
    let text = |name: &str| fields.get(name).map(said).unwrap_or_default();
    let severity = text("PRIORITY").parse().ok().filter(|severity: &u8| *severity < 8).unwrap_or(6);
    let mut record = LogRecord::new(syslog::level_of(severity), text("MESSAGE"));
    let micros = |name: &str| text(name).parse::<i64>().ok();
    let time = micros("_SOURCE_REALTIME_TIMESTAMP").or_else(|| micros("__REALTIME_TIMESTAMP")).unwrap_or(0);
    record.time = Time(time.saturating_mul(1000));
    record.host = text("_HOSTNAME");
    record.process = [text("SYSLOG_IDENTIFIER"), text("_COMM")].into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    record.logger.clone_from(&record.process);
    record.thread = "-".to_owned();
    record.file = text("CODE_FILE");
    record.line = text("CODE_LINE").parse().ok();
    record.routine = text("CODE_FUNC");
    for (name, field) in [
        ("facility", "SYSLOG_FACILITY"),
        ("pid", "_PID"),
        ("unit", "_SYSTEMD_UNIT"),
        ("user_unit", "_SYSTEMD_USER_UNIT"),
        ("transport", "_TRANSPORT"),
        ("message_id", "MESSAGE_ID"),
        ("boot", "_BOOT_ID"),
    ] {
        let mut value = text(field);
        if name == "facility" {
            let number = value.parse::<usize>().ok().and_then(|number| syslog::FACILITIES.get(number));
            value = number.map_or(value, |name| (*name).to_owned());
        }
        if !value.is_empty() {
            record.data.push(Datum::new(name, value));
        }
    }
    Ok((record, text("__CURSOR")))
}

/// A field's text: numbers of bytes where it is no UTF-8, several texts where it was given several times.
fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let bytes: Option<Vec<u8>> = parts.iter().map(|part| part.as_u64().and_then(|byte| byte.try_into().ok())).collect();
            match bytes {
                Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                None => parts.iter().map(said).collect::<Vec<_>>().join("\n"),
            }
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::Level;

    use super::*;

    #[test]
    fn entries_are_records() {
        let line = r#"{"__CURSOR":"s=a;i=1","__REALTIME_TIMESTAMP":"1795248930123456","PRIORITY":"4","SYSLOG_FACILITY":"3",
            "SYSLOG_IDENTIFIER":"systemd","_PID":"1","_HOSTNAME":"box","_SYSTEMD_UNIT":"init.scope","CODE_FILE":"src/unit.c",
            "CODE_LINE":"123","CODE_FUNC":"job","MESSAGE":"hot"}"#
            .replace('\n', " ");
        let (record, cursor) = entry(&line).unwrap();
        assert_eq!((cursor.as_str(), record.level, record.message.as_str()), ("s=a;i=1", Level::Warning, "hot"));
        assert_eq!(record.time, "2026-11-21T08:15:30.123456".parse().unwrap());
        assert_eq!((record.host.as_str(), record.process.as_str(), record.line), ("box", "systemd", Some(123)));
        assert_eq!(record.data[0], Datum::new("facility", "daemon"));
        assert_eq!(record.data[2], Datum::new("unit", "init.scope"));
        // Bytes that are not text, a text too long to be shown, repeated fields, and an empty message.
        for (field, message) in [("[104,255]", "h\u{fffd}"), ("null", ""), (r#"["a","b"]"#, "a\nb"), ("12", "12")] {
            assert_eq!(entry(&format!(r#"{{"MESSAGE":{field}}}"#)).unwrap().0.message, message);
        }
        assert_eq!(entry(r#"{"_COMM":"x","PRIORITY":"9"}"#).unwrap().0.level, Level::Info);
        assert!(entry("nothing").is_err() && entry("[]").is_err());
    }
}
