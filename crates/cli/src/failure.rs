//! Failures of commands: the text that `main` prints once, and the exit code.

use std::{fmt::Display, io, process::ExitCode};

use tampu_types::terminal::harmless;

/// A reason for the early end of a command.
#[derive(Debug)]
pub enum Failure {
    /// The attempt failed. Exit code 1.
    Failed(String),
    /// The request was wrong. Exit code 2, as clap's.
    Usage(String),
    /// No hub, node or peer could be reached. Exit code 3.
    Unreachable(String),
    /// The answer is no, and standard output has it. Exit code 1.
    Said,
    /// The reader of standard output has closed it. This is no error, and nothing is printed.
    Closed,
}

/// The result of a command.
pub type Outcome = Result<(), Failure>;

impl Failure {
    /// The exit code scripts go by.
    pub fn code(&self) -> ExitCode {
        match self {
            Failure::Closed => ExitCode::SUCCESS,
            Failure::Failed(_) | Failure::Said => ExitCode::from(1),
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Unreachable(_) => ExitCode::from(3),
        }
    }

    /// Returns the text for standard error.
    pub fn text(&self) -> Option<&str> {
        match self {
            Failure::Closed | Failure::Said => None,
            Failure::Failed(text) | Failure::Usage(text) | Failure::Unreachable(text) => Some(text),
        }
    }

    /// Returns the text for standard error, without the parts that only programmers of a library understand. Names from outside
    /// that stand in it cannot drive the terminal.
    pub fn message(&self) -> Option<String> {
        self.text().map(|text| harmless(&plain(text), true))
    }

    /// A failure of something named, with its place.
    pub fn failed(what: impl Display, why: impl Display) -> Failure {
        Failure::Failed(format!("{what}: {why}"))
    }
}

/// Removes additions of other libraries from a text: numbers of system errors, and places in their source files.
pub fn plain(text: &str) -> String {
    let mut out = text.to_owned();
    while let Some(from) = out.find(" (os error ") {
        let Some(to) = out[from..].find(')') else { break };
        out.replace_range(from..=from + to, "");
    }
    while let Some(end) = out.find(".rs:") {
        let Some(from) = out[..end].rfind(" at ") else { break };
        let digits = out[end + 4..].bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        out.replace_range(from..end + 4 + digits, "");
    }
    for (jargon, meaning) in JARGON {
        out = out.replace(jargon, meaning);
    }
    out
}

/// Errors of Rust's number parsers, and plain words for them.
const JARGON: [(&str, &str); 5] = [
    ("invalid digit found in string", "write a whole number"),
    ("cannot parse integer from empty string", "write a whole number"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
    ("invalid float literal", "write a number"),
];

/// Converts errors of standard output: `head` closes the pipe when it has enough.
pub fn written<T>(result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::failed("standard output", error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_message_cannot_drive_the_terminal() {
        let failure = Failure::Failed("no logger '\u{1b}[2J'\nprocess \u{202e}7".to_owned());
        assert_eq!(failure.message().as_deref(), Some("no logger '\\u{1b}[2J'\nprocess \\u{202e}7"));
    }

    #[test]
    fn words_of_libraries_are_left_out() {
        assert_eq!(
            plain("a.xml: No such file or directory (os error 2); and more"),
            "a.xml: No such file or directory; and more"
        );
        let text = "unable to connect! at /home/me/.cargo/registry/src/x/orchestrator.rs:447.; is it there?";
        assert_eq!(plain(text), "unable to connect!; is it there?");
        assert_eq!(plain("invalid value 'abc': invalid digit found in string"), "invalid value 'abc': write a whole number");
    }
}
