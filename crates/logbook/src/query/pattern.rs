//! A regular expression that can be stopped.
//!
//! The regex library takes time in proportion to the length of the text times that of the expression, and cannot be
//! interrupted. A text of some MiB and a malicious expression take minutes, despite the search's time limit. So if the
//! product is large, this module steps through the expression's automaton itself and checks [`Stop`] at intervals. The
//! matches are the same. If the product is small, the library is used, which is faster.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};
use regex_automata::{
    nfa::thompson::{Compiler, Config, NFA, State, WhichCaptures},
    util::{primitives::StateID, syntax},
};

use tampu_workers::Stop;

use super::{
    literals::literals,
    segments::{Segment, segments},
};

/// Bytes a compiled regular expression may take.
const MAX_REGEX: usize = 1 << 20;
/// Groups inside one another.
const MAX_NEST: u32 = 50;
/// Product of bytes of a text and states of an expression up to which the library is used.
const AT_ONCE: usize = 1 << 24;
/// The same limit for all texts that are searched for marks.
const FOR_MARKS: usize = 1 << 27;
/// Steps between two checks of the stop signal.
const STEPS: usize = 1 << 16;
/// Number of compiled expressions that are kept, for the next pages of their searches: compiling one costs as much as
/// checking some fifty entries.
const KEPT: usize = 4;
/// Bytes of the states of a kept expression.
const KEPT_BYTES: usize = 64 << 10;

/// The expressions compiled last, with whether case counts; the last used one comes first.
static RECENT: Mutex<Vec<(bool, Pattern)>> = Mutex::new(Vec::new());

/// A regular expression of a query, with the lines of a text as its units.
#[derive(Clone)]
pub struct Pattern {
    regex: Regex,
    case: bool,
    nfa: NFA,
    /// Made when an index is asked for the first time.
    parts: Arc<OnceLock<Option<Parts>>>,
}

/// The parts of an expression that an index can look up.
#[derive(Debug)]
pub struct Parts {
    /// A match contains one literal of each set.
    pub literals: Vec<Vec<String>>,
    /// A match contains a word of each segment.
    pub segments: Vec<Segment>,
}

/// States that have been reached at a position.
struct Reached {
    /// Those that wait for a byte.
    waiting: Vec<StateID>,
    /// The last round in which each state was seen.
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

/// The source, which names the expression in the text of a query, without the states that are made from it.
impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern").field("source", &self.as_str()).field("case", &self.case).finish()
    }
}

impl Pattern {
    /// Compiles an expression, with case if `case` is true. The error is one line.
    pub fn new(pattern: &str, case: bool) -> Result<Pattern, String> {
        let is_it = |known: &(bool, Pattern)| known.0 == case && known.1.as_str() == pattern;
        {
            let mut recent = RECENT.lock();
            if let Some(at) = recent.iter().position(is_it) {
                recent[..=at].rotate_right(1);
                return Ok(recent[0].1.clone());
            }
        }
        let made = Pattern::compile(pattern, case)?;
        if made.nfa.memory_usage() <= KEPT_BYTES {
            let mut recent = RECENT.lock();
            recent.truncate(KEPT - 1);
            recent.insert(0, (case, made.clone()));
        }
        Ok(made)
    }

    fn compile(pattern: &str, case: bool) -> Result<Pattern, String> {
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
        // The library goes through the states of this NFA.
        let config = Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(MAX_REGEX));
        let nfa = Compiler::new().configure(config).build_from_hir(&hir).map_err(|error| line(&error))?;
        Ok(Pattern { regex, case, nfa, parts: Arc::default() })
    }

    /// Returns the source of the expression.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    /// Returns the parts that an index can look up; `None` if they are unknown.
    pub fn parts(&self) -> Option<&Parts> {
        let parts = || {
            let hir = regex_syntax::parse(self.as_str()).ok()?;
            Some(Parts { literals: literals(&hir), segments: segments(&hir) })
        };
        self.parts.get_or_init(parts).as_ref()
    }

    /// Returns whether a text has a match. If `stop` ends the search, the result is unknown, and false is returned.
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
                if stop.is_stopped() {
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

    /// Reaches a state and all states that follow from it without a byte. Returns whether the end is among them.
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

    /// Returns at most `most` places of matches in a text. The work is bounded: only the beginning of a long text is
    /// searched, which is enough for marks on a screen.
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
            // The maximum cost of one match.
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
    fn a_kept_expression_is_the_one_that_was_asked_for() {
        for nth in 0..2 * KEPT {
            for case in [false, true] {
                let pattern = format!("A{nth}");
                let read = Pattern::new(&pattern, case).unwrap();
                assert_eq!(read.as_str(), pattern);
                assert_eq!(read.is_match(&format!("a{nth}"), &Stop::default()), !case, "{pattern}, case {case}");
            }
        }
        assert!(RECENT.lock().len() <= KEPT);
    }

    #[test]
    fn what_takes_for_ever_is_ended() {
        // The library visits all states for each byte: for words of other alphabets it has no faster way.
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
