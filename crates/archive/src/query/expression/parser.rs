//! Reads the comparisons of an expression; [`tampu_types::logic`] joins them.

use tampu_types::{
    Level,
    glob::Glob,
    logic::{DEEPEST, FrameFault, Tests},
};

use super::{
    super::{Field, regular_expression},
    comparison::{Comparison, Order, Subject, Test, number_of},
};

/// Longest expression, bytes.
pub const MAX_EXPRESSION: usize = 4096;
/// Most comparisons of an expression.
pub const MAX_COMPARISONS: usize = 256;

/// Characters of an expression that an error repeats.
const SHOWN: usize = 80;
/// Signs that end a word.
const SIGNS: [char; 7] = ['(', ')', '=', '<', '>', '!', '~'];

/// Error of a text that is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the expression '{text}': character {at}: {why}")]
pub struct BadExpression {
    /// The text; its beginning if it is too long.
    pub text: String,
    /// Place of the fault, in characters from 1 on.
    pub at: usize,
    /// The fault, and the way out.
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    /// A sign of comparison.
    Sign(&'static str),
    /// A word, and whether it was quoted.
    Word(String, bool),
    End,
}

impl Token {
    /// Returns whether this is a word of the language.
    fn is(&self, keyword: &str) -> bool {
        matches!(self, Token::Word(word, false) if word.eq_ignore_ascii_case(keyword))
    }
}

pub(super) struct Parser<'t> {
    text: &'t str,
    /// The characters from the next token's end on.
    rest: &'t str,
    /// The next token, and where it begins.
    next: Token,
    next_at: usize,
    comparisons: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Result<Parser<'t>, BadExpression> {
        let mut parser = Parser { text, rest: text, next: Token::End, next_at: 0, comparisons: 0 };
        if text.len() > MAX_EXPRESSION {
            return Err(parser.fault_at(0, format!("it has {} bytes, {MAX_EXPRESSION} are allowed", text.len())));
        }
        parser.advance()?;
        Ok(parser)
    }

    fn fault_at(&self, at: usize, why: impl Into<String>) -> BadExpression {
        let characters = self.text.get(..at).unwrap_or_default().chars().count();
        BadExpression { text: self.text.chars().take(SHOWN).collect(), at: characters + 1, why: why.into() }
    }

    /// Takes the next token, and reads the one after it.
    fn advance(&mut self) -> Result<(Token, usize), BadExpression> {
        let begun = self.rest.trim_start();
        let at = self.text.len() - begun.len();
        let (token, length) = match begun.chars().next() {
            None => (Token::End, 0),
            Some('(') => (Token::Open, 1),
            Some(')') => (Token::Close, 1),
            Some(quote @ ('"' | '\'')) => self.quoted(begun, quote, at)?,
            Some(first) if SIGNS.contains(&first) => {
                let sign = ["!=", "<=", ">=", "==", "=", "<", ">", "~"].into_iter().find(|sign| begun.starts_with(sign));
                let sign =
                    sign.ok_or_else(|| self.fault_at(at, format!("'{first}' means nothing here; signs are = != < <= > >= ~")))?;
                (Token::Sign(sign), sign.len())
            }
            Some(_) => {
                let length = begun.find(|c: char| c.is_whitespace() || SIGNS.contains(&c)).unwrap_or(begun.len());
                (Token::Word(begun[..length].to_owned(), false), length)
            }
        };
        self.rest = &begun[length..];
        let taken = (std::mem::replace(&mut self.next, token), self.next_at);
        self.next_at = at;
        Ok(taken)
    }

    /// Reads a quoted word: a backslash keeps the quote or the backslash after it.
    fn quoted(&self, begun: &str, quote: char, at: usize) -> Result<(Token, usize), BadExpression> {
        let (mut word, mut characters) = (String::new(), begun.char_indices().skip(1).peekable());
        while let Some((place, character)) = characters.next() {
            match character {
                '\\' => match characters.next_if(|(_, next)| *next == quote || *next == '\\') {
                    Some((_, kept)) => word.push(kept),
                    None => word.push('\\'),
                },
                _ if character == quote => return Ok((Token::Word(word, true), place + 1)),
                _ => word.push(character),
            }
        }
        Err(self.fault_at(at, format!("the closing {quote} is missing")))
    }

    /// Returns an error if the text goes on.
    pub(super) fn end(&self) -> Result<(), BadExpression> {
        match self.next {
            Token::End => Ok(()),
            _ => Err(self.fault_at(self.next_at, "'and' or 'or' is expected here; a value with spaces or signs is quoted")),
        }
    }

    fn comparison(&mut self) -> Result<Test, BadExpression> {
        let (name, at) = self.advance()?;
        let Token::Word(name, is_quoted) = name else {
            return Err(self.fault_at(at, "a name is expected here, as in scan = 7"));
        };
        let is_keyword = !is_quoted && ["and", "or", "not"].iter().any(|word| name.eq_ignore_ascii_case(word));
        if is_keyword || name.is_empty() {
            return Err(self.fault_at(at, "a name is expected here, as in scan = 7"));
        }
        self.comparisons += 1;
        if self.comparisons > MAX_COMPARISONS {
            return Err(self.fault_at(at, format!("more than {MAX_COMPARISONS} comparisons")));
        }
        let subject = subject(name, is_quoted).ok_or_else(|| self.fault_at(at, "the name after 'data.' is missing"))?;
        let Token::Sign(sign) = self.next else {
            return Ok(Test { subject, comparison: Comparison::Exists, is_negated: false });
        };
        self.advance()?;
        let (value, at) = self.advance()?;
        let Token::Word(value, _) = value else {
            return Err(self.fault_at(at, "a value is expected here, as in scan = 7"));
        };
        let is_equal = matches!(sign, "=" | "==" | "!=");
        let comparison = if is_equal { equals(&value) } else { self.ordered(&subject, sign, &value, at)? };
        Ok(Test { subject, comparison, is_negated: sign == "!=" })
    }

    fn ordered(&self, subject: &Subject, sign: &str, value: &str, at: usize) -> Result<Comparison, BadExpression> {
        let order = match sign {
            "~" => {
                let expression = regular_expression(value, false);
                return expression.map(Comparison::Matches).map_err(|error| self.fault_at(at, error.to_string()));
            }
            "<" => Order::Less,
            "<=" => Order::AtMost,
            ">" => Order::Greater,
            _ => Order::AtLeast,
        };
        if *subject == Subject::Level {
            let level: Result<Level, _> = value.parse();
            let level = level.map_err(|_| self.fault_at(at, format!("'{value}' is not a level")))?;
            return Ok(Comparison::Level(order, level));
        }
        let number = number_of(value);
        number.map(|limit| Comparison::Number(order, limit)).ok_or_else(|| {
            self.fault_at(
                at,
                format!("'{value}' is not a number; texts are compared with = and != (* and ? are wildcards), or with ~"),
            )
        })
    }
}

impl Tests for Parser<'_> {
    type Test = Test;
    type Error = BadExpression;

    fn takes(&mut self, token: &str) -> Result<bool, BadExpression> {
        let comes = match &self.next {
            Token::Open => token == "(",
            Token::Close => token == ")",
            next => next.is(token),
        };
        if comes {
            self.advance()?;
        }
        Ok(comes)
    }

    fn test(&mut self) -> Result<Test, BadExpression> {
        self.comparison()
    }

    fn fault(&self, fault: FrameFault) -> BadExpression {
        match fault {
            FrameFault::Open => self.fault_at(self.next_at, "')' is missing"),
            FrameFault::TooDeep => self.fault_at(self.next_at, format!("more than {DEEPEST} parentheses within each other")),
        }
    }
}

fn equals(value: &str) -> Comparison {
    match number_of(value) {
        Some(number) => Comparison::Equals(number, Glob::ignoring_case(value)),
        None => Comparison::Like(Glob::ignoring_case(value)),
    }
}

/// Returns the subject of this name: a quoted one and one after `data.` are named data, others may be fields.
fn subject(name: String, is_quoted: bool) -> Option<Subject> {
    if is_quoted {
        return Some(Subject::Data(name));
    }
    if let Some(data) = name.strip_prefix("data.") {
        return (!data.is_empty()).then(|| Subject::Data(data.to_owned()));
    }
    let lower = name.to_ascii_lowercase();
    Some(match lower.as_str() {
        "level" => Subject::Level,
        "source" => Subject::Source,
        "message" => Subject::Message,
        "audience" => Subject::Audience,
        "trace_id" => Subject::TraceId,
        "span_id" => Subject::SpanId,
        "line" => Subject::Line,
        _ => Field::from_name(&lower).map_or(Subject::Data(name), Subject::Field),
    })
}
