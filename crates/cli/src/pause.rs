//! A pause without silent losses: arriving records are kept up to a bound, then the oldest are dropped and counted.

use std::collections::VecDeque;

use tampu_types::LogRecord;

/// A pause of the output, and the records that wait.
#[derive(Debug, Default)]
pub struct Pause {
    paused: bool,
    waiting: VecDeque<LogRecord>,
    bound: usize,
    dropped: u64,
}

impl Pause {
    /// Makes a pause that keeps at most so many records.
    pub fn new(bound: usize) -> Pause {
        Pause { bound, ..Pause::default() }
    }

    /// Returns true during a pause.
    pub fn is_on(&self) -> bool {
        self.paused
    }

    /// Begins to wait.
    pub fn begin(&mut self) {
        self.paused = true;
    }

    /// Keeps a record; drops the oldest one if there is no room.
    pub fn keep(&mut self, record: LogRecord) {
        self.waiting.push_back(record);
        if self.waiting.len() > self.bound {
            self.waiting.pop_front();
            self.dropped += 1;
        }
    }

    /// Ends the pause; returns the waiting records, and the number of dropped ones.
    pub fn end(&mut self) -> (VecDeque<LogRecord>, u64) {
        self.paused = false;
        (std::mem::take(&mut self.waiting), std::mem::take(&mut self.dropped))
    }

    /// Returns the status line of a pause.
    pub fn status(&self) -> String {
        let dropped = match self.dropped {
            0 => String::new(),
            dropped => format!(", {dropped} older ones dropped beyond {}", self.bound),
        };
        format!("paused, {} waiting{dropped}", self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::Level;

    use super::*;

    #[test]
    fn beyond_the_bound_the_oldest_goes_and_is_counted() {
        let mut pause = Pause::new(2);
        pause.begin();
        for text in ["one", "two", "three"] {
            pause.keep(LogRecord::new(Level::Info, text));
        }
        assert!(pause.is_on());
        assert_eq!(pause.status(), "paused, 2 waiting, 1 older ones dropped beyond 2");
        let (waiting, dropped) = pause.end();
        let texts: Vec<&str> = waiting.iter().map(|record| record.message.as_str()).collect();
        assert_eq!((texts, dropped, pause.is_on()), (vec!["two", "three"], 1, false));
        assert_eq!(pause.status(), "paused, 0 waiting");
    }
}
