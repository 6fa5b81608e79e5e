//! The parser of queries: from text to a [`Node`]. The grammar is in `spec/book-query.md`.
//!
//! [`parse`] reports an unfinished query, such as an open quotation, as an error with its position. Otherwise the query
//! would find nothing without a reason. `name:` is part of a word if `name` is not a field, as in `LHC:MAG-01/cur`.

use tampu_types::{Time, units::parse_duration};

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

/// An error: the text is not a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid query at character {at}: {why}")]
pub struct BadQuery {
    /// The position of the error, in characters.
    pub at: usize,
    /// The error, in words.
    pub why: String,
}

/// Parses a query. `attributes` are the names that can stand before a colon; relative times count from `now`.
pub fn parse(text: &str, attributes: &[String], now: Time) -> Result<Node, BadQuery> {
    let mut parser = Parser { text, at: 0, attributes, now, nodes: 0, within: Within::default() };
    if text.len() > MAX_QUERY {
        return Err(parser.bad(0, format!("it has {} bytes; at most {MAX_QUERY}", text.len())));
    }
    let node = parser.either(0)?;
    parser.blanks();
    if !parser.rest().is_empty() {
        return Err(parser.bad(parser.at, "')' without '(' before it"));
    }
    Ok(Node::all_of(node.into_iter().collect()))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    attributes: &'a [String],
    now: Time,
    nodes: usize,
    /// The meaning of words without a field of their own.
    within: Within,
}

/// The field before a parenthesis, which holds for all words in it.
#[derive(Debug, Clone)]
struct Within {
    scope: Scope,
    /// True after `:=`: each word or quotation is a whole value.
    whole: bool,
}

impl Default for Within {
    fn default() -> Within {
        Within { scope: Scope::Anywhere, whole: false }
    }
}

/// The fields: the words before a colon.
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

    /// Parses terms joined by `OR`. Returns `None` if there is no term.
    fn either(&mut self, depth: usize) -> Result<Option<Node>, BadQuery> {
        let mut parts = Vec::new();
        let mut is_side = false;
        loop {
            let part = self.both(depth)?;
            let begin = self.at;
            let more = self.operator("OR");
            if part.is_none() && (is_side || more) {
                return Err(self.bad(begin, "'OR' needs a term on both sides"));
            }
            parts.extend(part);
            if !more {
                break;
            }
            is_side = true;
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
                return Err(self.bad(self.at, "'NOT' needs a term after it"));
            }
            return Ok(not(self.unary(depth + 1)?));
        }
        if self.rest().starts_with('(') {
            return self.group(depth);
        }
        self.term(depth)
    }

    /// Counts a term or parenthesis at this depth.
    fn one_more(&mut self, depth: usize) -> Result<(), BadQuery> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(self.bad(self.at, format!("more than {MAX_NODES} terms, or {MAX_DEPTH} parentheses inside one another")));
        }
        Ok(())
    }

    /// Consumes a minus that negates: the next character follows it at once.
    fn minus(&mut self) -> bool {
        let found = self.rest().strip_prefix('-').is_some_and(|after| after.starts_with(|c: char| !c.is_whitespace()));
        self.at += usize::from(found);
        found
    }

    /// Parses the contents of parentheses.
    fn group(&mut self, depth: usize) -> Result<Node, BadQuery> {
        let begin = self.at;
        self.at += 1;
        let inner = self.either(depth + 1)?;
        self.blanks();
        if !self.rest().starts_with(')') {
            return Err(self.bad(begin, "the parenthesis is not closed: ')' is missing"));
        }
        self.at += 1;
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
            Scope::Attribute(name) if whole => self.whole_value(name, begin),
            scope => self.words(scope),
        }
    }

    /// Parses a possible field name, quoted or bare, up to `:`, `<` or `>`. Returns its length without those.
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

    /// Returns the field of a name: a keyword, or an attribute. In quotation marks it is always an attribute.
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
            Field::Since | Field::Until | Field::On => match (span(value, self.now), field) {
                (None, _) => {
                    return bad(
                        self,
                        "write a year, 2026-11, 2026-11-22, 2026-11-22T08:15 (UTC), today, yesterday, now or 2h (ago)",
                    );
                }
                (Some((from, _)), Field::Since) => Node::Date { from, to: ends.1 },
                (Some((from, to)), Field::Until) => Node::Date { from: ends.0, to: if is_moment(value) { from } else { to } },
                (Some((from, to)), _) => Node::Date { from, to },
            },
            Field::Last => match duration(value) {
                Some(ns) => Node::Date { from: whole(Time(self.now.0.saturating_sub(ns))), to: ends.1 },
                None => return bad(self, "write a number with m (minutes), h, d, w, mo (months) or y, as last:7d"),
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

    /// Parses the rest of a term after the name of a field with words: `:`, `:=`, `<` and the like.
    fn in_scope(&mut self, scope: Scope, depth: usize) -> Result<Node, BadQuery> {
        let (rest, begin) = (self.rest(), self.at);
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
                None => Err(self.bad(self.at, format!("invalid number '{}'", &after[..digits]))),
            };
        }
        self.at += 1;
        if let (Some(after), Scope::Attribute(name)) = (self.rest().strip_prefix('='), &scope) {
            let name = name.clone();
            self.at += 1;
            if after.starts_with('(') {
                return self.in_group(Within { scope, whole: true }, depth);
            }
            return self.whole_value(name, begin);
        }
        // A minus before a digit belongs to the number.
        let digit =
            self.rest()[usize::from(self.rest().starts_with('-'))..].starts_with(|c: char| c.is_ascii_digit() || c == '.');
        if self.rest().strip_prefix('-').is_some_and(|after| after.is_empty() || after.starts_with([' ', ')'])) {
            return Err(self.bad(begin, "a value is missing after ':-'"));
        }
        if !digit && self.minus() {
            self.one_more(depth)?;
            self.at -= 1;
            // Steps back to the minus: the next call skips it in place of the colon.
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
        if self.rest().is_empty() || self.rest().starts_with(|c: char| c.is_whitespace() || c == ')') {
            return Err(self.bad(begin, "a value is missing after ':'; write * for any value"));
        }
        self.words(scope)
    }

    /// Parses the parentheses after a field. The field holds for all words in them without a field of their own.
    fn in_group(&mut self, within: Within, depth: usize) -> Result<Node, BadQuery> {
        let outer = std::mem::replace(&mut self.within, within);
        let inner = self.group(depth + 1);
        self.within = outer;
        inner
    }

    /// A whole value, after `:=`.
    fn whole_value(&mut self, name: String, begin: usize) -> Result<Node, BadQuery> {
        let quoted = self.rest().starts_with('"');
        let value = if quoted { self.quoted()? } else { self.bare() };
        if value.is_empty() && !quoted {
            let why = format!("a value is missing after '{name}:='; write -has:\"{name}\" for entries without one");
            return Err(self.bad(begin, why));
        }
        Ok(Node::Is { name, words: word_list(value) })
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
        self.check_regex(rest)?;
        let part = rest.starts_with('~');
        self.at += usize::from(part);
        let quoted = self.rest().starts_with('"');
        let value = if quoted { self.quoted()? } else { self.bare() };
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

    /// Rejects a word that begins and ends like a regular expression but is not one, such as `/[/`. A path such as
    /// `/dev/shm/` is a word.
    fn check_regex(&self, rest: &str) -> Result<(), BadQuery> {
        let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
        let inner = word.strip_prefix('/').and_then(|word| word.strip_suffix('c').unwrap_or(word).strip_suffix('/'));
        match inner.filter(|inner| !inner.is_empty()) {
            Some(inner) => Pattern::new(inner, false).map(drop).map_err(|why| self.bad(self.at, why)),
            None => Ok(()),
        }
    }

    /// Parses a quotation.
    fn quoted(&mut self) -> Result<&'a str, BadQuery> {
        let inner = &self.rest()[1..];
        let Some(end) = inner.find('"') else {
            return Err(self.bad(self.at, "the quotation is not closed: '\"' is missing"));
        };
        self.at += end + 2;
        Ok(&inner[..end])
    }

    /// Consumes characters up to a blank, a quotation mark or a parenthesis.
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

/// Negates a query; an unfinished one stays unchanged.
fn not(node: Node) -> Node {
    if matches!(node, Node::All) { Node::All } else { Node::Not(Box::new(node)) }
}

/// Returns a regular expression between slashes, the `c` after it (for case), and its length. It must end the term.
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

/// Returns the time span of a date: from its first moment to the first moment after it. A time of day is one moment.
fn span(text: &str, now: Time) -> Option<(Time, Time)> {
    let day = |day: i64| (Time(day.saturating_mul(DAY)), Time((day + 1).saturating_mul(DAY)));
    match text.to_ascii_lowercase().as_str() {
        "now" => return Some((whole(now), Time(whole(now).0.saturating_add(SECOND)))),
        "today" => return Some(day(now.0.div_euclid(DAY))),
        "yesterday" => return Some(day(now.0.div_euclid(DAY) - 1)),
        ago => {
            if let Some(ns) = duration(ago) {
                let from = whole(Time(now.0.saturating_sub(ns)));
                return Some((from, Time(from.0.saturating_add(SECOND))));
            }
        }
    }
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

/// Returns the second of a time: entries are ordered and found by seconds.
fn whole(time: Time) -> Time {
    Time(time.0.div_euclid(SECOND).saturating_mul(SECOND))
}

/// Returns whether a date names a moment and not a day, month or year.
fn is_moment(text: &str) -> bool {
    text.as_bytes().get(10) == Some(&b'T') || text.eq_ignore_ascii_case("now") || duration(&text.to_ascii_lowercase()).is_some()
}

/// A duration in nanoseconds: as everywhere in the product, and in months (`mo`, 30 days) and years (`y`, 365 days).
fn duration(text: &str) -> Option<i64> {
    let long = [("mo", 30 * DAY), ("y", 365 * DAY)];
    if let Some((count, unit)) = long.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit))) {
        let count: i64 = count.parse().ok().filter(|count| *count >= 0)?;
        return Some(count.saturating_mul(unit));
    }
    Some(i64::try_from(parse_duration(text).ok()?.as_nanos()).unwrap_or(i64::MAX))
}
