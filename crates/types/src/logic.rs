//! Tests joined by `and`, `or`, `not` and parentheses: the frame that the languages for conditions share.
//!
//! ```text
//! condition = all { "or" all }
//! all       = term { "and" term }
//! term      = { "not" } ( "(" condition ")" | test )
//! ```
//! A language brings its own tests, tokens and errors as [`Tests`].

/// Deepest parentheses within each other.
pub const DEEPEST: usize = 32;

/// Tests joined by `and`, `or` and `not`.
#[derive(Debug, Clone, PartialEq)]
pub enum Logic<T> {
    /// One of them must hold.
    Any(Vec<Logic<T>>),
    /// Each must hold.
    All(Vec<Logic<T>>),
    /// It must not hold.
    Not(Box<Logic<T>>),
    /// A single test.
    Test(T),
}

impl<T> Logic<T> {
    /// Returns whether the whole holds, by the results of its tests. Tests that cannot change it any more are not made.
    pub fn holds(&self, test: &impl Fn(&T) -> bool) -> bool {
        match self {
            Logic::Any(several) => several.iter().any(|one| one.holds(test)),
            Logic::All(several) => several.iter().all(|one| one.holds(test)),
            Logic::Not(one) => !one.holds(test),
            Logic::Test(one) => test(one),
        }
    }
}

/// A fault of the frame itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFault {
    /// A parenthesis is not closed.
    Open,
    /// Parentheses are deeper than [`DEEPEST`].
    TooDeep,
}

/// The text of a condition as it is read: its tokens and tests.
pub trait Tests {
    /// A single test.
    type Test;
    /// Error of a text that is no condition.
    type Error;

    /// Takes this word or sign if it comes next.
    fn takes(&mut self, token: &str) -> Result<bool, Self::Error>;
    /// Reads a test.
    fn test(&mut self) -> Result<Self::Test, Self::Error>;
    /// Makes the error for a fault at this place.
    fn fault(&self, fault: FrameFault) -> Self::Error;
}

/// Reads a condition, up to what is not part of it.
pub fn condition<R: Tests>(reader: &mut R) -> Result<Logic<R::Test>, R::Error> {
    any(reader, 0)
}

fn any<R: Tests>(reader: &mut R, depth: usize) -> Result<Logic<R::Test>, R::Error> {
    let mut several = vec![all(reader, depth)?];
    while reader.takes("or")? {
        several.push(all(reader, depth)?);
    }
    Ok(one_or(several, Logic::Any))
}

fn all<R: Tests>(reader: &mut R, depth: usize) -> Result<Logic<R::Test>, R::Error> {
    let mut several = vec![term(reader, depth)?];
    while reader.takes("and")? {
        several.push(term(reader, depth)?);
    }
    Ok(one_or(several, Logic::All))
}

fn term<R: Tests>(reader: &mut R, depth: usize) -> Result<Logic<R::Test>, R::Error> {
    let mut is_negated = false;
    while reader.takes("not")? {
        is_negated = !is_negated;
    }
    let term = if reader.takes("(")? {
        if depth == DEEPEST {
            return Err(reader.fault(FrameFault::TooDeep));
        }
        let inner = any(reader, depth + 1)?;
        if !reader.takes(")")? {
            return Err(reader.fault(FrameFault::Open));
        }
        inner
    } else {
        Logic::Test(reader.test()?)
    };
    Ok(if is_negated { Logic::Not(Box::new(term)) } else { term })
}

/// Returns the only one, or all of them joined.
fn one_or<T>(mut several: Vec<Logic<T>>, join: fn(Vec<Logic<T>>) -> Logic<T>) -> Logic<T> {
    match several.pop() {
        Some(one) if several.is_empty() => one,
        last => {
            several.extend(last);
            join(several)
        }
    }
}
