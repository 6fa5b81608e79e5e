//! Conversion of a file's bytes to records: their bounds, their levels and their times.

use regex::Regex;
use tampu_types::{Level, LogRecord, SourceName, Time};

/// Bytes of a record; a longer one is continued in the next.
pub(super) const LONGEST: usize = 1 << 20;

/// Rules for reading records from text.
pub(super) struct Reading {
    /// Expression at the first line of a record; without it each line is a record.
    pub start: Option<Regex>,
    /// Expression that finds the level.
    pub level: Option<Regex>,
    /// The level of a line without a level.
    pub otherwise: Level,
    /// Process of the records.
    pub source: SourceName,
}

/// State of the end of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// More bytes may follow at any moment.
    Open,
    /// A while without bytes: a record of several lines is complete, a line without its end is not.
    Pause,
    /// The end of the input.
    Final,
}

impl Reading {
    /// Returns the number of bytes of the first complete record in these bytes.
    pub fn first(&self, bytes: &[u8], end: End) -> Option<usize> {
        let line = |from: usize| memchr(bytes, from).map(|at| at + 1);
        let all = (end == End::Final && !bytes.is_empty()).then_some(bytes.len());
        let too_long = (bytes.len() >= LONGEST).then_some(LONGEST);
        let Some(first) = line(0) else { return all.or(too_long) };
        let Some(start) = &self.start else { return Some(first.min(LONGEST)) };
        let mut at = first;
        while let Some(next) = line(at) {
            if start.is_match(&String::from_utf8_lossy(&bytes[at..next])) {
                return Some(at.min(LONGEST));
            }
            at = next;
        }
        match end {
            End::Open => too_long,
            End::Pause => Some(at.min(LONGEST)),
            End::Final => Some(bytes.len().min(LONGEST)),
        }
    }

    /// A record of this text; `None` of an empty one.
    pub fn record(&self, bytes: &[u8], now: Time) -> Option<LogRecord> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            return None;
        }
        let mut record = LogRecord::new(self.level_of(text), text);
        let first = text.split([' ', '\n']).next().unwrap_or_default();
        record.time = Time::from_rfc3339(first).unwrap_or(now);
        record.process = self.source.to_string();
        record.logger = self.source.to_string();
        Some(record)
    }

    fn level_of(&self, text: &str) -> Level {
        let found = match &self.level {
            Some(regex) => regex.captures(text).and_then(|found| found.get(1).or_else(|| found.get(0))).and_then(|found| {
                let word = found.as_str();
                word.parse().ok().or_else(|| level_word(word))
            }),
            // Ordinary words do not count: a level is in capitals or in brackets.
            None => text.lines().next().unwrap_or_default().split_whitespace().take(8).find_map(|word| {
                let bare = word.trim_matches(|character: char| !character.is_ascii_alphabetic());
                let large = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_uppercase());
                (large || word.starts_with(['[', '<', '('])).then(|| level_word(bare)).flatten()
            }),
        };
        found.unwrap_or(self.otherwise)
    }
}

fn memchr(bytes: &[u8], from: usize) -> Option<usize> {
    bytes[from..].iter().position(|byte| *byte == b'\n').map(|at| from + at)
}

/// Levels as programs spell them.
fn level_word(word: &str) -> Option<Level> {
    Some(match word.to_ascii_lowercase().as_str() {
        "trace" => Level::Trace,
        "delouse" | "verbose" => Level::Delouse,
        "debug" | "dbg" => Level::Debug,
        "info" | "information" => Level::Info,
        "notice" => Level::Notice,
        "warn" | "warning" => Level::Warning,
        "err" | "error" => Level::Error,
        "crit" | "critical" | "fatal" | "severe" => Level::Critical,
        "alert" => Level::Alert,
        "emerg" | "emergency" | "panic" => Level::Emergency,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(start: Option<&str>, level: Option<&str>) -> Reading {
        let regex = |text: &str| Regex::new(text).unwrap();
        Reading {
            start: start.map(regex),
            level: level.map(regex),
            otherwise: Level::Info,
            source: SourceName::new("x").unwrap(),
        }
    }

    #[test]
    fn lines_are_records_when_they_are_whole() {
        let lines = reading(None, None);
        assert_eq!(lines.first(b"one\ntwo", End::Open), Some(4));
        assert_eq!(lines.first(b"two", End::Open), None);
        assert_eq!(lines.first(b"two", End::Pause), None);
        assert_eq!(lines.first(b"two", End::Final), Some(3));
        assert_eq!(lines.first(b"", End::Final), None);
        assert_eq!(lines.first(&vec![b'x'; LONGEST + 5], End::Open), Some(LONGEST));
        assert_eq!(lines.record(b"\r\n", Time(0)), None);
    }

    #[test]
    fn records_of_several_lines_end_where_the_next_begins() {
        let several = reading(Some(r"^\d"), None);
        assert_eq!(several.first(b"1 a\n at b\n2 c\n", End::Open), Some(10));
        assert_eq!(several.first(b"2 c\n at d\n", End::Open), None);
        assert_eq!(several.first(b"2 c\n at d\n at", End::Pause), Some(10));
        assert_eq!(several.first(b"2 c\n at d\n at", End::Final), Some(13));
        assert_eq!(several.record(b"2 c\n at d\n", Time(7)).unwrap().message, "2 c\n at d");
    }

    #[test]
    fn levels_and_times_are_read() {
        let words = reading(None, None);
        for (text, level) in [
            ("2026-11-22T03:00:00Z ERROR no lock", Level::Error),
            ("[warn] hot", Level::Warning),
            ("no error at all", Level::Info),
            ("WARNING: hot", Level::Warning),
            ("<crit> x", Level::Critical),
        ] {
            assert_eq!(words.record(text.as_bytes(), Time(1)).unwrap().level, level, "{text}");
        }
        let regex = reading(None, Some(r"level=(\w+)"));
        assert_eq!(regex.record(b"ERROR level=debug", Time(1)).unwrap().level, Level::Debug);
        assert_eq!(regex.record(b"ERROR", Time(1)).unwrap().level, Level::Info);
        let timed = words.record(b"2026-11-22T03:00:00.5+01:00 x", Time(1)).unwrap();
        assert_eq!(timed.time, "2026-11-22T02:00:00.5".parse().unwrap());
        assert_eq!(words.record(b"2026-11-22 03:00:00 x", Time(1)).unwrap().time, Time(1));
    }
}
