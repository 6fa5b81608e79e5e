//! A condition on the value of a reading, as a text: `value > 3 and value[0] != 7`.
//!
//! ```text
//! condition  = all { "or" all }
//! all        = term { "and" term }
//! term       = "not" term | "(" condition ")" | operand ("<" | "<=" | ">" | ">=" | "=" | "!=") operand
//! operand    = "value" [ "[" index "]" ] | "abs(value" [ "[" index "]" ] ")" | number | 'text'
//! ```
//! `value` alone stands for any element: the comparison holds if it does for one of them. A boolean is 0 or 1, a state
//! and a label of an enumeration are their numbers. A text is compared with texts only.

use std::{cmp::Ordering, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use tampu_types::{
    event::ValueView,
    logic::{self, FrameFault, Logic, Tests},
};

/// Longest condition in bytes.
const LONGEST: usize = 1000;

/// A condition on the value of a reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition(Arc<Parsed>);

#[derive(Debug, PartialEq)]
struct Parsed {
    text: String,
    logic: Logic<Comparing>,
}

/// Error of a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a condition: {expected} is expected at '{rest}'; an example is: value > 3 and value < 7")]
pub struct BadCondition {
    text: String,
    expected: &'static str,
    rest: String,
}

/// A comparison of two operands.
#[derive(Debug, Clone, PartialEq)]
struct Comparing {
    left: Operand,
    comparison: Comparison,
    right: Operand,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    /// The value: one element, or any; true for its magnitude.
    Value(Option<usize>, bool),
    Number(f64),
    Text(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Unequal,
}

impl Comparison {
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Comparison::More => order == Some(Ordering::Greater),
            Comparison::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::Unequal => order != Some(Ordering::Equal),
        }
    }
}

impl Condition {
    /// Returns whether a value fulfils it.
    pub fn holds(&self, value: &ValueView<'_>) -> bool {
        self.0.logic.holds(&|comparing: &Comparing| comparing.holds(value))
    }
}

impl Comparing {
    fn holds(&self, value: &ValueView<'_>) -> bool {
        let Comparing { left, comparison, right } = self;
        let every = |operand: &Operand| matches!(operand, Operand::Value(None, _));
        let elements = if every(left) || every(right) { value.len() } else { 1 };
        (0..elements).any(|element| match (left.text(value, element), right.text(value, element)) {
            (Some(left), Some(right)) => comparison.holds(Some(left.cmp(right))),
            _ => match (left.number(value, element), right.number(value, element)) {
                (Some(left), Some(right)) => comparison.holds(left.partial_cmp(&right)),
                // A missing element, or a text beside a number.
                _ => false,
            },
        })
    }
}

impl Operand {
    fn number(&self, value: &ValueView<'_>, element: usize) -> Option<f64> {
        match self {
            Operand::Value(index, magnitude) => {
                let number = number_of(value, index.unwrap_or(element))?;
                Some(if *magnitude { number.abs() } else { number })
            }
            Operand::Number(number) => Some(*number),
            Operand::Text(_) => None,
        }
    }

    fn text<'a>(&'a self, value: &ValueView<'a>, element: usize) -> Option<&'a str> {
        match (self, value) {
            (Operand::Value(index, false), ValueView::String(texts)) => texts.iter().nth(index.unwrap_or(element)),
            (Operand::Text(text), _) => Some(text),
            _ => None,
        }
    }
}

fn number_of(value: &ValueView<'_>, element: usize) -> Option<f64> {
    match value {
        ValueView::Boolean(all) => all.get(element).map(|&octet| f64::from(u8::from(octet != 0))),
        ValueView::State(all) => all.get(element).map(|&octet| f64::from(octet)),
        ValueView::Enum(all) => all.get(element).map(f64::from),
        other => other.number(element),
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn expected(&self, expected: &'static str) -> BadCondition {
        BadCondition { text: self.text.to_owned(), expected, rest: self.rest.chars().take(20).collect() }
    }

    fn takes(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        // A word ends where no letter follows.
        if token.ends_with(char::is_alphabetic) && rest.starts_with(|next: char| next.is_alphanumeric() || next == '_') {
            return false;
        }
        self.rest = rest;
        true
    }

    fn comparison(&mut self) -> Result<Comparison, BadCondition> {
        // The longer ones first.
        let all = [
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("!=", Comparison::Unequal),
            ("==", Comparison::Equal),
            ("<", Comparison::Less),
            (">", Comparison::More),
            ("=", Comparison::Equal),
        ];
        let found = all.into_iter().find_map(|(token, comparison)| self.takes(token).then_some(comparison));
        found.ok_or_else(|| self.expected("a comparison such as <"))
    }

    fn operand(&mut self) -> Result<Operand, BadCondition> {
        if self.takes("value") {
            return Ok(Operand::Value(self.index()?, false));
        }
        if self.takes("abs(") {
            if !self.takes("value") {
                return Err(self.expected("'value'"));
            }
            let index = self.index()?;
            return if self.takes(")") { Ok(Operand::Value(index, true)) } else { Err(self.expected("')'")) };
        }
        if self.takes("'") {
            let Some((text, rest)) = self.rest.split_once('\'') else { return Err(self.expected("a closing '")) };
            self.rest = rest;
            return Ok(Operand::Text(text.to_owned()));
        }
        let mut end = 0;
        for (at, next) in self.rest.char_indices() {
            let after_exponent = self.rest[..at].ends_with(['e', 'E']);
            let belongs =
                next.is_ascii_alphanumeric() || next == '.' || (next == '-' || next == '+') && (at == 0 || after_exponent);
            if !belongs {
                break;
            }
            end = at + next.len_utf8();
        }
        let number = self.rest[..end].parse().ok().filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| self.expected("'value', a number or a text between '"))?;
        self.rest = &self.rest[end..];
        Ok(Operand::Number(number))
    }

    fn index(&mut self) -> Result<Option<usize>, BadCondition> {
        if !self.takes("[") {
            return Ok(None);
        }
        let (index, rest) = self.rest.split_once(']').ok_or_else(|| self.expected("']'"))?;
        let index = index.trim().parse().map_err(|_| self.expected("an index"))?;
        self.rest = rest;
        Ok(Some(index))
    }
}

impl Tests for Parser<'_> {
    type Test = Comparing;
    type Error = BadCondition;

    fn takes(&mut self, token: &str) -> Result<bool, BadCondition> {
        Ok(Parser::takes(self, token))
    }

    fn test(&mut self) -> Result<Comparing, BadCondition> {
        let left = self.operand()?;
        let comparison = self.comparison()?;
        Ok(Comparing { left, comparison, right: self.operand()? })
    }

    fn fault(&self, fault: FrameFault) -> BadCondition {
        self.expected(match fault {
            FrameFault::Open => "')'",
            FrameFault::TooDeep => "less depth",
        })
    }
}

impl FromStr for Condition {
    type Err = BadCondition;

    fn from_str(text: &str) -> Result<Condition, BadCondition> {
        let mut parser = Parser { text, rest: text };
        if text.len() > LONGEST {
            return Err(parser.expected("at most 1000 bytes"));
        }
        let logic = logic::condition(&mut parser)?;
        if !parser.rest.trim().is_empty() {
            return Err(parser.expected("'and', 'or' or the end"));
        }
        Ok(Condition(Arc::new(Parsed { text: text.to_owned(), logic })))
    }
}

impl TryFrom<String> for Condition {
    type Error = BadCondition;

    fn try_from(text: String) -> Result<Condition, BadCondition> {
        text.parse()
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> String {
        condition.0.text.clone()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tampu_types::event::{DevState, EventSample, EventView, Value};

    use super::*;

    #[track_caller]
    fn holds(text: &str, value: Value<'_>) -> bool {
        let mut bytes = Vec::new();
        EventSample::of(0, value).encode(&mut bytes).unwrap();
        let condition: Condition = text.parse().unwrap();
        condition.holds(&EventView::parse(&bytes).unwrap().value.unwrap())
    }

    #[test]
    fn values_are_compared() {
        let four = Value::scalar(&4.0);
        for text in
            ["value > 3", "value>=4 and value <= 4", "not value < 4", "value = 4", "value != 5", "3<value", "value > -1e-3"]
        {
            assert!(holds(text, four), "{text}");
        }
        for text in ["value < 4", "value > 3 and value < 4", "not (value = 4 or value = 5)", "value = 'x'", "value[1] = 4"] {
            assert!(!holds(text, four), "{text}");
        }
        assert!(holds("value > 5 or value = 4 and value < 9", four), "'and' binds closer");
        assert!(holds("abs(value) > 3", Value::scalar(&-4i32)) && !holds("value > 3", Value::scalar(&-4i32)));
        let three = [1i64, -7, 3];
        let array = Value::spectrum(&three);
        assert!(holds("value < -5", array) && holds("value[2] = 3", array) && holds("abs(value[1]) = 7", array));
        assert!(!holds("value > 3", array) && !holds("value[3] = 3", array));
        assert!(
            holds("value = 'open'", Value::scalar(&"open".to_owned())) && !holds("value = 1", Value::scalar(&"1".to_owned()))
        );
        assert!(holds("value = 1", Value::scalar(&true)) && holds("value = 8", Value::scalar(&DevState::Fault)));
        assert!(!holds("value > 1", Value::scalar(&f64::NAN)) && holds("value != 1", Value::scalar(&f64::NAN)));
    }

    #[test]
    fn what_is_no_condition_is_refused_with_its_place() {
        for (text, rest) in [
            ("", ""),
            ("value", ""),
            ("value >", ""),
            ("value > x", "x"),
            ("value > 3 4", "4"),
            ("values > 3", "values > 3"),
            ("(value > 3", ""),
            ("value[x] > 3", "x] > 3"),
            ("value = 'a", "a"),
            ("value > 1e999", "1e999"),
        ] {
            let error = text.parse::<Condition>().unwrap_err();
            assert_eq!(error.rest, rest, "{error}");
        }
        assert!("(".repeat(500).parse::<Condition>().is_err());
        let deep = "(".repeat(32) + "value > 1" + &")".repeat(32);
        assert!(deep.parse::<Condition>().is_ok() && format!("({deep})").parse::<Condition>().is_err());
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "[value0-9 <>=!()\\[\\]'andornot.eE+-]{0,60}") {
            if let Ok(condition) = text.parse::<Condition>() {
                prop_assert_eq!(condition.to_string().parse::<Condition>(), Ok(condition));
            }
        }
    }
}
