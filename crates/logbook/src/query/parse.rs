//! From what a person types to a [`Node`]. The grammar is in `spec/book-query.md`.
//!
//! It forgives what is unfinished, because it is asked at every key: a quotation or a parenthesis that is not closed ends with
//! the text, and `name:` that is no field is a word, as in `LHC:MAG-01/cur`.

use tampu_types::Time;

use super::{Comparison, Node, Scope, pattern::Pattern};
use crate::{
    book::{number, same_name},
    text::{fold, is_unspaced, word_list},
};

/// Bytes of a query.
pub const MAX_QUERY: usize = 4096;
/// Terms and parentheses of a query.
pub const MAX_NODES: usize = 200;
/// Parentheses inside one another.
pub const MAX_DEPTH: usize = 32;

/// Why a text is no query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the query cannot be understood at character {at}: {why}")]
pub struct BadQuery {
    /// Characters before the place.
    pub at: usize,
    /// What is wrong there.
    pub why: String,
}

/// Reads a query. `attributes` are the names that may stand before a colon, `now` is what `last:` counts from.
pub fn parse(text: &str, attributes: &[String], now: Time) -> Result<Node, BadQuery> {
    let mut parser = Parser { text, at: 0, attributes, now, nodes: 0, within: Within::default() };
    if text.len() > MAX_QUERY {
        return Err(parser.bad(0, format!("it has {} bytes; at most {MAX_QUERY}", text.len())));
    }
    let mut parts = Vec::new();
    loop {
        parts.extend(parser.either(0)?);
        parser.blanks();
        if parser.rest().is_empty() {
            return Ok(Node::all_of(parts));
        }
        // A closing parenthesis too many.
        parser.at += 1;
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    attributes: &'a [String],
    now: Time,
    nodes: usize,
    /// What words stand for that have no field of their own.
    within: Within,
}

/// The field before a parenthesis, which holds for all words in it.
#[derive(Debug, Clone)]
struct Within {
    scope: Scope,
    /// Whether each word or quotation is a whole value, as after `:=`.
    whole: bool,
}

impl Default for Within {
    fn default() -> Within {
        Within { scope: Scope::Anywhere, whole: false }
    }
}

/// What stands before a colon.
enum Field {
    Scope(Scope),
    Since,
    Until,
    On,
    Last,
    Has,
    Is,
    Id,
    Thread,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn bad(&self, at: usize, why: impl Into<String>) -> BadQuery {
        BadQuery { at: self.text[..at].chars().count(), why: why.into() }
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Takes an operator in capitals.
    fn operator(&mut self, name: &str) -> bool {
        self.blanks();
        let found = self.rest().strip_prefix(name).is_some_and(|after| after.is_empty() || after.starts_with([' ', '(', '\t']));
        if found {
            self.at += name.len();
        }
        found
    }

    /// `None` where nothing stands. What an `OR` has on one side alone is what it means: the other is not written yet.
    fn either(&mut self, depth: usize) -> Result<Option<Node>, BadQuery> {
        let mut parts = Vec::new();
        loop {
            parts.extend(self.both(depth)?);
            if !self.operator("OR") {
                break;
            }
        }
        if parts.len() > 1 {
            parts.retain(|part| !matches!(part, Node::All));
        }
        Ok(match parts.len() {
            0 => None,
            1 => Some(parts.remove(0)),
            _ => Some(Node::Or(parts)),
        })
    }

    fn both(&mut self, depth: usize) -> Result<Option<Node>, BadQuery> {
        let mut parts = Vec::new();
        loop {
            while self.operator("AND") {}
            let before = self.at;
            if self.rest().is_empty() || self.rest().starts_with(')') || self.operator("OR") {
                self.at = before;
                return Ok(if parts.is_empty() { None } else { Some(Node::all_of(parts)) });
            }
            parts.push(self.unary(depth)?);
        }
    }

    fn unary(&mut self, depth: usize) -> Result<Node, BadQuery> {
        self.one_more(depth)?;
        let minus = self.minus();
        if minus || self.operator("NOT") {
            self.blanks();
            if self.rest().is_empty() || self.rest().starts_with(')') {
                return Ok(Node::All);
            }
            return Ok(not(self.unary(depth + 1)?));
        }
        if self.rest().starts_with('(') {
            return self.group(depth);
        }
        self.term(depth)
    }

    /// One more term or parenthesis, at this depth.
    fn one_more(&mut self, depth: usize) -> Result<(), BadQuery> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(self.bad(self.at, format!("more than {MAX_NODES} terms, or {MAX_DEPTH} parentheses inside one another")));
        }
        Ok(())
    }

    /// Takes a minus that says "not": something follows it at once.
    fn minus(&mut self) -> bool {
        let found = self.rest().strip_prefix('-').is_some_and(|after| after.starts_with(|c: char| !c.is_whitespace()));
        self.at += usize::from(found);
        found
    }

    /// What is in parentheses.
    fn group(&mut self, depth: usize) -> Result<Node, BadQuery> {
        self.at += 1;
        let inner = self.either(depth + 1)?;
        self.blanks();
        self.at += usize::from(self.rest().starts_with(')'));
        Ok(inner.unwrap_or(Node::All))
    }

    fn term(&mut self, depth: usize) -> Result<Node, BadQuery> {
        let begin = self.at;
        if let Some((name, quoted, len)) = self.name()
            && let Some(field) = self.field(name, quoted)
        {
            self.at += len;
            return self.with_field(field, begin, depth);
        }
        self.at = begin;
        let Within { scope, whole } = self.within.clone();
        match scope {
            Scope::Attribute(name) if whole => Ok(self.whole_value(name)),
            scope => self.words(scope),
        }
    }

    /// What could be a field's name: quoted or bare, up to `:`, `<` or `>`. Its length without those.
    fn name(&self) -> Option<(&'a str, bool, usize)> {
        let rest = self.rest();
        let (name, quoted, len) = match rest.strip_prefix('"') {
            Some(inner) => {
                let end = inner.find('"')?;
                (&inner[..end], true, end + 2)
            }
            None => {
                let end = rest.find([':', '<', '>', ' ', '"', '(', ')'])?;
                (&rest[..end], false, end)
            }
        };
        rest[len..].starts_with([':', '<', '>']).then_some((name, quoted, len))
    }

    /// A keyword, or an attribute. In quotation marks it is always an attribute.
    fn field(&self, name: &str, quoted: bool) -> Option<Field> {
        let keyword = match name.to_ascii_lowercase().as_str() {
            _ if quoted => None,
            "text" => Some(Field::Scope(Scope::Text)),
            "by" => Some(Field::Scope(Scope::By)),
            "attachment" => Some(Field::Scope(Scope::Attachments)),
            "link" => Some(Field::Scope(Scope::Links)),
            "since" => Some(Field::Since),
            "until" => Some(Field::Until),
            "on" => Some(Field::On),
            "last" => Some(Field::Last),
            "has" => Some(Field::Has),
            "is" => Some(Field::Is),
            "id" => Some(Field::Id),
            "thread" => Some(Field::Thread),
            _ => None,
        };
        keyword.or_else(|| Some(Field::Scope(Scope::Attribute(self.attribute(name)?))))
    }

    fn attribute(&self, name: &str) -> Option<String> {
        self.attributes.iter().find(|known| same_name(known, name)).cloned()
    }

    fn with_field(&mut self, field: Field, begin: usize, depth: usize) -> Result<Node, BadQuery> {
        if let Field::Scope(scope) = field {
            return self.in_scope(scope, depth);
        }
        self.at += 1;
        let value = self.bare();
        let bad = |parser: &Parser<'_>, why: &str| Err(parser.bad(begin, format!("'{value}': {why}")));
        let ends = (Time(i64::MIN), Time(i64::MAX));
        Ok(match field {
            Field::Since | Field::Until | Field::On => match (span(value), field) {
                (None, _) => return bad(self, "write a year, 2026-11, 2026-11-22 or 2026-11-22T08:15 (UTC)"),
                (Some((from, _)), Field::Since) => Node::Date { from, to: ends.1 },
                (Some((from, to)), Field::Until) => Node::Date { from: ends.0, to: if value.contains('T') { from } else { to } },
                (Some((from, to)), _) => Node::Date { from, to },
            },
            Field::Last => match duration(value) {
                Some(ns) => Node::Date { from: whole(Time(self.now.0.saturating_sub(ns))), to: ends.1 },
                None => return bad(self, "write a number with h, d, w, m (months) or y, as last:7d"),
            },
            Field::Has => match value.to_ascii_lowercase().as_str() {
                "attachment" | "attachments" => Node::Has(Scope::Attachments),
                "link" | "links" => Node::Has(Scope::Links),
                _ => match self.attribute(value.trim_matches('"')) {
                    Some(name) => Node::Has(Scope::Attribute(name)),
                    None => return bad(self, "write has:attachment, has:link or has: and an attribute"),
                },
            },
            Field::Is if value.eq_ignore_ascii_case("reply") => Node::IsReply,
            Field::Is => return bad(self, "write is:reply"),
            Field::Id | Field::Thread => match (value.parse(), field) {
                (Err(_), _) => return bad(self, "write the number of an entry"),
                (Ok(id), Field::Id) => Node::Id(id),
                (Ok(id), _) => Node::Thread(id),
            },
            Field::Scope(_) => Node::All,
        })
    }

    /// After the name of something that holds words: `:`, `:=`, `<` and the like.
    fn in_scope(&mut self, scope: Scope, depth: usize) -> Result<Node, BadQuery> {
        let rest = self.rest();
        let comparisons =
            [("<=", Comparison::AtMost), (">=", Comparison::AtLeast), ("<", Comparison::Less), (">", Comparison::More)];
        for (sign, comparison) in comparisons {
            let Some(after) = rest.strip_prefix(sign) else { continue };
            let Scope::Attribute(name) = scope else { return Err(self.bad(self.at, "only attributes can be compared")) };
            self.at += sign.len();
            let digits = after.find(|c: char| c.is_whitespace() || c == ')').unwrap_or(after.len());
            self.at += digits;
            return match number(&after[..digits]) {
                Some(to) => Ok(Node::Number { name, comparison, to }),
                None => Err(self.bad(self.at, format!("'{}' is no number", &after[..digits]))),
            };
        }
        self.at += 1;
        if let (Some(after), Scope::Attribute(name)) = (self.rest().strip_prefix('='), &scope) {
            let name = name.clone();
            self.at += 1;
            if after.starts_with('(') {
                return self.in_group(Within { scope, whole: true }, depth);
            }
            return Ok(self.whole_value(name));
        }
        // A minus before a digit is a number's.
        let digit =
            self.rest()[usize::from(self.rest().starts_with('-'))..].starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if self.rest().strip_prefix('-').is_some_and(|after| after.is_empty() || after.starts_with([' ', ')'])) {
            // What is not to be there is not written yet.
            self.at += 1;
            return Ok(Node::All);
        }
        if !digit && self.minus() {
            self.one_more(depth)?;
            self.at -= 1;
            // Steps back onto the minus, which stands where the colon stood for what follows.
            return Ok(not(self.in_scope(scope, depth + 1)?));
        }
        if self.rest().starts_with('(') {
            return self.in_group(Within { scope, whole: false }, depth);
        }
        if let Some(after) = self.rest().strip_prefix('*')
            && !matches!(scope, Scope::Text | Scope::By)
            && (after.is_empty() || after.starts_with([' ', ')']))
        {
            self.at += 1;
            return Ok(Node::Has(scope));
        }
        self.words(scope)
    }

    /// Parentheses after a field: it holds for all words in them that have none of their own.
    fn in_group(&mut self, within: Within, depth: usize) -> Result<Node, BadQuery> {
        let outer = std::mem::replace(&mut self.within, within);
        let inner = self.group(depth + 1);
        self.within = outer;
        inner
    }

    /// A whole value, after `:=`.
    fn whole_value(&mut self, name: String) -> Node {
        let value = if self.rest().starts_with('"') { self.quoted() } else { self.bare() };
        Node::Is { name, words: word_list(value) }
    }

    /// A word, a phrase, a beginning, a part or a regular expression.
    fn words(&mut self, scope: Scope) -> Result<Node, BadQuery> {
        let rest = self.rest();
        if rest.starts_with('/')
            && let Some((pattern, case, len)) = regex_at(rest)
        {
            let at = self.at;
            self.at += len;
            let regex = Pattern::new(pattern, case).map_err(|why| self.bad(at, why))?;
            return Ok(Node::Matches { scope, regex });
        }
        let part = rest.starts_with('~');
        self.at += usize::from(part);
        let quoted = self.rest().starts_with('"');
        let value = if quoted { self.quoted() } else { self.bare() };
        let (begins, ends) = (!quoted && value.starts_with('*'), if quoted { self.star() } else { value.ends_with('*') });
        let value = if quoted { value } else { value.trim_matches('*') };
        let words = word_list(value);
        if part || begins || words.is_empty() || value.contains(is_unspaced) {
            let text = fold(value).into_owned();
            return Ok(if text.trim().is_empty() { Node::All } else { Node::Contains { scope, text } });
        }
        let prefix = ends && value.ends_with(|c: char| c.is_alphanumeric());
        Ok(Node::Words { scope, words, prefix })
    }

    fn star(&mut self) -> bool {
        let star = self.rest().starts_with('*');
        self.at += usize::from(star);
        star
    }

    /// What is in quotation marks; up to the end of the query if they are not closed.
    fn quoted(&mut self) -> &'a str {
        let inner = &self.rest()[1..];
        let end = inner.find('"');
        self.at += 1 + end.map_or(inner.len(), |end| end + 1);
        &inner[..end.unwrap_or(inner.len())]
    }

    /// Up to a blank, a quotation mark or a parenthesis.
    fn bare(&mut self) -> &'a str {
        let rest = self.rest();
        let mut end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')')).unwrap_or(rest.len());
        // A quotation right after the colon, as in has:"Run number".
        if end == 0 && rest.starts_with('"') {
            end = rest[1..].find('"').map_or(rest.len(), |end| end + 2);
        }
        self.at += end;
        &rest[..end]
    }
}

/// Not this; of what is not finished, nothing.
fn not(node: Node) -> Node {
    if matches!(node, Node::All) { Node::All } else { Node::Not(Box::new(node)) }
}

/// A regular expression between slashes, `c` behind it for one that minds case, and its length; it ends the term.
fn regex_at(text: &str) -> Option<(&str, bool, usize)> {
    let (mut escaped, mut class) = (false, false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '/' if !class => {
                let after = &text[at + 1..];
                let case = after.starts_with('c');
                let end = &after[usize::from(case)..];
                let ends = end.is_empty() || end.starts_with(|c: char| c.is_whitespace() || c == ')');
                return (ends && at > 1).then_some((&text[1..at], case, at + 1 + usize::from(case)));
            }
            _ => {}
        }
    }
    None
}

/// What a date means: from its first moment to the first after it. A time of day means a moment.
fn span(text: &str) -> Option<(Time, Time)> {
    let digits = |part: &str, len: usize| part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit());
    let at = |text: String| text.parse::<Time>().ok();
    match text.split('-').collect::<Vec<_>>().as_slice() {
        [year] if digits(year, 4) => {
            let next: u32 = year.parse::<u32>().ok()? + 1;
            Some((at(format!("{year}-01-01"))?, at(format!("{next:04}-01-01"))?))
        }
        [year, month] if digits(year, 4) && digits(month, 2) => {
            let (number, next): (u32, u32) = (year.parse().ok()?, month.parse::<u32>().ok()? + 1);
            let end = if next > 12 { format!("{:04}-01-01", number + 1) } else { format!("{year}-{next:02}-01") };
            Some((at(format!("{year}-{month}-01"))?, at(end)?))
        }
        _ => {
            let from = whole(at(text.to_owned())?);
            let day = !text.contains(['T', ' ']);
            Some((from, Time(from.0.saturating_add(if day { DAY } else { SECOND }))))
        }
    }
}

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The second a time lies in: entries are ordered and found by seconds.
fn whole(time: Time) -> Time {
    Time(time.0.div_euclid(SECOND).saturating_mul(SECOND))
}

fn duration(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let count: i64 = text[..text.len() - unit.len_utf8()].parse().ok().filter(|count| *count >= 0)?;
    let unit = match unit {
        'h' => DAY / 24,
        'd' => DAY,
        'w' => 7 * DAY,
        'm' => 30 * DAY,
        'y' => 365 * DAY,
        _ => return None,
    };
    Some(count.saturating_mul(unit))
}
