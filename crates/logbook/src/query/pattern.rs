//! A regular expression that can be stopped.
//!
//! The library's search takes time in the length of a text by that of the expression and cannot be ended from outside: a text of some MiB and an
//! expression made for it take minutes, whatever a search's time limit says. So where the product is large the expression's automaton is gone
//! through here, with a look at [`Stop`] every so many steps. It finds the same; where the product is small the library is quicker.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use regex_automata::{
    nfa::thompson::{Compiler, Config, NFA, State, WhichCaptures},
    util::{primitives::StateID, syntax},
};

use crate::search::Stop;

/// Bytes a compiled regular expression may take.
const MAX_REGEX: usize = 1 << 20;
/// Groups inside one another.
const MAX_NEST: u32 = 50;
/// Bytes of a text by states of an expression that the library is given.
const AT_ONCE: usize = 1 << 24;
/// The same of all that is looked through for marks.
const FOR_MARKS: usize = 1 << 27;
/// Steps between two looks at whether it is to end.
const STEPS: usize = 1 << 16;

/// A regular expression, as a query has it: in lines.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    nfa: NFA,
}

/// States that have been reached at a place.
struct Reached {
    /// Those that wait for a byte.
    waiting: Vec<StateID>,
    /// In which round each state was seen last.
    seen: Vec<usize>,
    round: usize,
}

impl Reached {
    fn new(states: usize) -> Reached {
        Reached { waiting: Vec::new(), seen: vec![0; states], round: 1 }
    }

    fn clear(&mut self) {
        self.waiting.clear();
        self.round += 1;
    }

    fn is_new(&mut self, state: StateID) -> bool {
        let round = self.round;
        std::mem::replace(&mut self.seen[state.as_usize()], round) != round
    }
}

impl Pattern {
    /// Reads one; `case` counts if it is said so. Else why it is none, in a line.
    pub fn new(pattern: &str, case: bool) -> Result<Pattern, String> {
        let line = |error: &dyn std::fmt::Display| error.to_string().lines().last().unwrap_or_default().to_owned();
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(!case)
            .multi_line(true)
            .size_limit(MAX_REGEX)
            .dfa_size_limit(MAX_REGEX)
            .nest_limit(MAX_NEST)
            .build()
            .map_err(|error| line(&error))?;
        let read = syntax::Config::new().case_insensitive(!case).multi_line(true).nest_limit(MAX_NEST);
        let hir = syntax::parse_with(pattern, &read).map_err(|error| line(&error))?;
        // Its states are those the library has gone through.
        let config = Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(MAX_REGEX));
        let nfa = Compiler::new().configure(config).build_from_hir(&hir).map_err(|error| line(&error))?;
        Ok(Pattern { regex, nfa })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    /// Whether a text has it. Where it was stopped, that is not known, and no is said.
    pub fn is_match(&self, text: &str, stop: &Stop) -> bool {
        if text.len().saturating_mul(self.nfa.states().len()) <= AT_ONCE {
            return self.regex.is_match(text);
        }
        self.step_through(text, stop)
    }

    fn step_through(&self, text: &str, stop: &Stop) -> bool {
        let bytes = text.as_bytes();
        let states = self.nfa.states().len();
        let (mut here, mut next) = (Reached::new(states), Reached::new(states));
        let mut steps = 0;
        for at in 0..=bytes.len() {
            steps += 1 + here.waiting.len();
            if steps >= STEPS {
                steps = 0;
                if stop.why().is_some() {
                    return false;
                }
            }
            // A match can begin at every character.
            if text.is_char_boundary(at) && self.reach(&mut here, self.nfa.start_anchored(), bytes, at) {
                return true;
            }
            next.clear();
            for state in here.waiting.iter().filter(|_| at < bytes.len()) {
                let to = match self.nfa.state(*state) {
                    State::ByteRange { trans } => trans.matches(bytes, at).then_some(trans.next),
                    State::Sparse(trans) => trans.matches(bytes, at),
                    State::Dense(trans) => trans.matches(bytes, at),
                    _ => None,
                };
                if to.is_some_and(|to| self.reach(&mut next, to, bytes, at + 1)) {
                    return true;
                }
            }
            std::mem::swap(&mut here, &mut next);
        }
        false
    }

    /// Reaches a state and all that are reached from it without a byte; whether the end is among them.
    fn reach(&self, reached: &mut Reached, state: StateID, bytes: &[u8], at: usize) -> bool {
        let mut left = vec![state];
        while let Some(state) = left.pop() {
            if !reached.is_new(state) {
                continue;
            }
            match self.nfa.state(state) {
                State::Match { .. } => return true,
                State::Look { look, next } if self.nfa.look_matcher().matches(*look, bytes, at) => left.push(*next),
                State::Look { .. } | State::Fail => {}
                State::Union { alternates } => left.extend(alternates),
                State::BinaryUnion { alt1, alt2 } => left.extend([alt1, alt2]),
                State::Capture { next, .. } => left.push(*next),
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => reached.waiting.push(state),
            }
        }
        false
    }

    /// Where it stands in a text, at most so often. Of a long text and a long expression only the beginning is looked at, and in all only
    /// so much: these are marks for the eye.
    pub fn marks(&self, text: &str, most: usize) -> Vec<Range<usize>> {
        let states = self.nfa.states().len().max(1);
        let mut end = text.len().min(AT_ONCE / states);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (text, mut left) = (&text[..end], FOR_MARKS / states);
        let mut found = Vec::new();
        let mut ranges = self.regex.find_iter(text).map(|one| one.range());
        let mut at = 0;
        while found.len() < most {
            // What one costs at most.
            let Some(rest) = left.checked_sub(text.len() - at) else { break };
            left = rest;
            let Some(range) = ranges.next() else { break };
            at = range.end;
            if !range.is_empty() {
                found.push(range);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_ways_find_the_same() {
        let texts =
            ["", "a", "RICH1 HV tripped\nat 08:15", "hlt0007 is é", "Zoë, über\r\nÄ\tb", "aaaa\n\nbbbb", "x\u{2028}y €", "ab ab"];
        for pattern in [
            "",
            "a",
            "^$",
            "^b",
            "d$",
            r"\bHV\b",
            r"\Btr",
            r"hlt0*7\s+is",
            "(?-u:\\b)is",
            "zoë",
            "[^a]b",
            "a{2,4}$",
            r"\d{2}:\d{2}",
            "é$",
            r"\w+\s\w+\s",
            "(?s)HV.*15",
            r"\Aab\z",
            r"\Aab",
            "b$",
            "(a|ab)(c|bcd)?$",
            r"[\s]\p{Lu}",
            ".",
            r"\W\W",
            "x|€",
            r"\b{start}ab",
        ] {
            for case in [false, true] {
                let read = Pattern::new(pattern, case).unwrap();
                for text in texts {
                    let known = read.regex.is_match(text);
                    assert_eq!(read.step_through(text, &Stop::default()), known, "{pattern:?} in {text:?}, case {case}");
                }
            }
        }
    }

    #[test]
    fn what_takes_for_ever_is_ended() {
        // The library goes through all states of it for each byte: the words of other alphabets leave it no quicker way.
        let (pattern, text) = (Pattern::new(r"\b(a?){900}\bq", false).unwrap(), "aé ".repeat(1 << 20));
        let stop = Stop::default();
        stop.stop();
        assert!(!pattern.is_match(&text, &stop));
        assert!(!pattern.is_match(&text, &Stop::default().within(Duration::from_millis(1))));
        assert!(pattern.marks(&text, 1000).is_empty());
        let marks = Pattern::new("a.", false).unwrap().marks(&"ab ".repeat(400), 1000);
        assert_eq!((marks.len(), &marks[399]), (400, &(1197..1199)));
    }
}
