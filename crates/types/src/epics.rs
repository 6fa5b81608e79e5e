//! Lines of EPICS's error log, as an IOC's log client sends them. The contract is `spec/wire/epics-log.md`.
//!
//! ```text
//! [iocLogPrefix ]sevr=major text                         an IOC, through its log client
//! host:port Www Mmm dd hh:mm:ss yyyy [prefix ]text       the same as iocLogServer writes it into its file
//! ```
//! There is no grammar: a line is text, and only an error has a severity. The text before `sevr=` is the prefix that
//! the site has given its IOC. Without a severity, prefix and text cannot be separated, and both stay in the message.
//! As with syslog, every line becomes a record.

use crate::{
    level::Level,
    record::{Datum, LogRecord},
    syslog::guess,
    time::Time,
};

/// Bytes at the start of a line in which a severity is looked for: prefixes are short, and texts may quote one.
const PREFIX: usize = 256;

/// Names that sites put into prefixes as `name=value`, and that need not stay in the text.
const TAGS: [&str; 6] = ["fac", "proc", "ioc", "host", "user", "code"];

/// Reads one line that was received at this time. Bytes of invalid UTF-8 are shown as U+FFFD, and colours of a terminal
/// are removed.
pub fn parse(line: &[u8], received: Time) -> LogRecord {
    let text = without_colours(&String::from_utf8_lossy(line));
    let mut record = LogRecord::new(Level::Info, String::new());
    record.time = received;
    let text = server_prefix(&text, received, &mut record).unwrap_or(&text);
    let text = match severity(text) {
        Some((prefix, level, word, rest)) => {
            record.level = level;
            if !prefix.is_empty() {
                record.data.push(Datum::new("prefix", prefix));
            }
            record.data.push(Datum::new("severity", word));
            tags(prefix, &mut record);
            if record.process.is_empty() && !prefix.contains([' ', '=']) {
                record.process = prefix.to_owned();
            }
            rest
        }
        None => {
            let rest = tags(text, &mut record);
            if let Some(level) = word_of(rest) {
                record.level = level;
            }
            rest
        }
    };
    record.message = text.trim_end().to_owned();
    record
}

/// `host:port Www Mmm dd hh:mm:ss yyyy `, which iocLogServer puts before a line.
fn server_prefix<'a>(text: &'a str, received: Time, record: &mut LogRecord) -> Option<&'a str> {
    let mut rest = text;
    let mut next = || {
        let (word, after) = rest.trim_start_matches(' ').split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (place, _weekday, month, day, clock, year) = (next()?, next()?, next()?, next()?, next()?, next()?);
    let (host, port) = place.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let year = (year.len() == 4).then(|| year.parse().ok())??;
    let guessed = guess::time(Some(year), month, day, clock, received)?;
    record.time = guessed.time;
    record.host = host.to_owned();
    record.data.push(Datum::new("time_guessed", guessed.description()));
    Some(rest)
}

/// Splits a line into the text before `sevr=word `, the level of that word, the word, and the text behind it.
fn severity(text: &str) -> Option<(&str, Level, &str, &str)> {
    let at = text.find("sevr=").filter(|at| *at <= PREFIX)?;
    let (prefix, rest) = text.split_at(at);
    if !prefix.is_empty() && !prefix.ends_with(' ') {
        return None;
    }
    let rest = &rest["sevr=".len()..];
    let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let level = match word {
        "info" => Level::Info,
        "minor" => Level::Warning,
        "major" => Level::Error,
        "fatal" => Level::Critical,
        _ => return None,
    };
    Some((prefix.trim_end(), level, word, rest))
}

/// Removes known `name=value` from the beginning of a text; returns the rest.
fn tags<'a>(text: &'a str, record: &mut LogRecord) -> &'a str {
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=')
        && TAGS.contains(&name)
    {
        let (value, after) = after.split_once(' ').unwrap_or((after, ""));
        match name {
            "proc" | "ioc" => record.process = value.to_owned(),
            "fac" => record.logger = value.to_owned(),
            "host" => record.host = value.to_owned(),
            _ => record.data.push(Datum::new(name, value)),
        }
        rest = after;
    }
    rest
}

/// Returns the level of a word at the beginning of EPICS 7's own messages.
fn word_of(text: &str) -> Option<Level> {
    let word = text.split([' ', ':']).next()?;
    match word {
        "ERROR" => Some(Level::Error),
        "WARNING" => Some(Level::Warning),
        _ => None,
    }
}

/// Leaves out `ESC [ ... letter`, which recent releases colour words with.
fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        out.push_str(&rest[..at]);
        let sequence = &rest[at + 2..];
        match sequence.find(|character: char| !character.is_ascii_digit() && character != ';') {
            Some(end) if sequence.as_bytes()[end].is_ascii_alphabetic() => rest = &sequence[end + 1..],
            // Not a colour: the sequence stays, and the display makes it harmless.
            _ => {
                out.push_str("\u{1b}[");
                rest = sequence;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn received() -> Time {
        "2024-05-12T07:26:50".parse().unwrap()
    }

    fn read(line: &str) -> LogRecord {
        parse(line.as_bytes(), received())
    }

    #[test]
    fn severities_are_levels_wherever_the_prefix_ends() {
        for (word, level) in
            [("info", Level::Info), ("minor", Level::Warning), ("major", Level::Error), ("fatal", Level::Critical)]
        {
            let record = read(&format!("sevr={word} no link"));
            assert_eq!((record.level, record.message.as_str(), record.process.as_str()), (level, "no link", ""));
            let record = read(&format!("mount-ioc sevr={word} no link"));
            assert_eq!((record.level, record.message.as_str(), record.process.as_str()), (level, "no link", "mount-ioc"));
        }
        let record = read("fac=CRYO proc=sioc-cryo-1 sevr=major pump tripped");
        assert_eq!((record.logger.as_str(), record.process.as_str()), ("CRYO", "sioc-cryo-1"));
        assert_eq!(record.data[0], Datum::new("prefix", "fac=CRYO proc=sioc-cryo-1"));
        assert_eq!(record.message, "pump tripped");
        for none in ["sevr=loud text", "textsevr=major x", &format!("{} sevr=major", "x".repeat(300)), "no severity"] {
            let record = read(none);
            assert_eq!((record.level, record.message.as_str()), (Level::Info, none));
        }
    }

    #[test]
    fn what_the_log_server_adds_is_read_too() {
        let record = read("localhost:55142 Sun May 12 15:26:47 2024 iocexample iocPause: IOC suspended");
        assert_eq!((record.host.as_str(), record.message.as_str()), ("localhost", "iocexample iocPause: IOC suspended"));
        assert_eq!(record.time, "2024-05-12T07:26:47".parse().unwrap());
        assert_eq!(record.data, [Datum::new("time_guessed", "year 2024, zone +08:00")]);
        for none in ["a:b Sun May 12 15:26:47 2024 x", "a:1 Sun May 12 15:26:47 x", "a:1 Sun Foo 12 15:26:47 2024 x"] {
            assert_eq!(read(none).message, none);
        }
    }

    #[test]
    fn colours_are_left_out_and_words_of_epics_7_are_levels() {
        let record = read("\u{1b}[31;1mERROR\u{1b}[0m: bad macro");
        assert_eq!((record.level, record.message.as_str()), (Level::Error, "ERROR: bad macro"));
        assert_eq!(read("\u{1b}[").message, "\u{1b}[");
        assert_eq!(parse(b"\xffx", received()).message, "\u{fffd}x");
    }

    proptest! {
        #[test]
        fn any_bytes_make_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..200), received in any::<i64>()) {
            parse(&bytes, Time(received));
        }

        #[test]
        fn anything_like_a_line_makes_a_record(
            text in "([a-z]{1,4}:[0-9]{1,5} Sun May [0-9]{1,2} [0-9:]{8} [0-9]{4} )?(fac=[^ ]{0,3} )?(sevr=(major|é) )?(\u{1b}\\[[0-9;é]{0,3}m?)?\\PC{0,9}",
        ) {
            parse(text.as_bytes(), received());
        }
    }
}
