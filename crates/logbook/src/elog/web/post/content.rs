//! From a form to what an entry says: attributes, encoding and text, as ELOG reads and refuses them.
//!
//! A field is named as its attribute, or with `_` for everything but letters and digits, as ELOG's programs write it. Several values come joined by
//! ` | `, or each in a field with a number behind its name (`System_0`, as browsers send it). A date comes as unix seconds, as `2026-11-22T08:15`, or in
//! fields `y2`, `m2`, `d2`, `h2`, `n2`, `c2`, where 2 is the attribute's place in the book.

use std::borrow::Cow;

use crate::{
    book::{AttributeDef, AttributeKind, Book, EntryAttribute, MAX_VALUE, number, same_name},
    elog::{
        date,
        web::{
            clock::Zone,
            html::put,
            sent::Form,
            settings::{Occasion, Settings},
        },
    },
    entry::{Content, Encoding},
};

/// Why an entry is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// An attribute needs a value.
    Missing(String),
    /// A value is none of the options.
    NoOption(String),
    /// A value is no number.
    NoNumber(String),
    /// A value is neither 0 nor 1.
    NoBoolean(String),
    /// A value is no date.
    NoDate(String),
    /// A value is too long.
    TooLong(String),
    /// The book does not have this encoding.
    Encoding(Encoding),
}

impl Wrong {
    /// In ELOG's words, as HTML: its programs look for them, with the tags.
    pub fn html(&self) -> String {
        let mut out = String::new();
        match self {
            Wrong::Missing(name) => {
                put!(&mut out, "<i>Error: Attribute <b>{}</b> not supplied.</i><p>\n", name);
                put!(&mut out, "Please go back and enter the <b>{}</b> field.\n", name);
            }
            Wrong::NoOption(value) => put!(&mut out, "Error: Attribute option <b>{}</b> not existing", value),
            Wrong::NoNumber(name) => put!(&mut out, "Error: Attribute <b>{}</b> must be numeric", name),
            Wrong::NoBoolean(value) => put!(&mut out, "Error: Value <b>{}</b> not allowed for boolean attributes", value),
            Wrong::NoDate(name) => put!(&mut out, "Error: Attribute <b>{}</b> must be a date", name),
            Wrong::TooLong(name) => put!(&mut out, "Error: Attribute <b>{}</b> has more than {} bytes", name, MAX_VALUE),
            Wrong::Encoding(encoding) => put!(&mut out, "{} encoding not allowed", encoding_name(*encoding)),
        }
        out
    }
}

fn encoding_name(encoding: Encoding) -> &'static str {
    if encoding == Encoding::Plain { "Plain" } else { encoding.name() }
}

/// What is known when a form is read.
pub struct Reading<'a> {
    /// What was sent.
    pub form: &'a Form,
    /// The book.
    pub book: &'a Book,
    /// What its configuration says.
    pub settings: &'a Settings,
    /// The site's local time.
    pub zone: &'a Zone,
    /// What for.
    pub occasion: Occasion,
    /// Whether a page of ours sent it: then a box that is not ticked sends nothing.
    pub by_page: bool,
    /// What the entry says, where one is edited.
    pub old: Option<&'a Content>,
}

impl Reading<'_> {
    /// What the entry will say, but for its attachments. `draft` is not held to anything.
    pub fn content(&self, draft: bool) -> Result<Content, Wrong> {
        let mut said = self.said(draft)?;
        let value = |name: &str| said.iter().find(|said| same_name(&said.name, name)).map(EntryAttribute::joined);
        let values: Vec<(String, String)> =
            self.book.attributes.iter().filter_map(|def| Some((def.name.clone(), value(&def.name)?))).collect();
        let set =
            self.settings.set_by(|name| values.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str()));
        for attribute in said.iter_mut() {
            let Some(def) = self.book.attribute(&attribute.name) else { continue };
            let def = self.settings.attribute(def, &set);
            check(&def, attribute, draft)?;
        }
        let old = self.old.cloned().unwrap_or_default();
        for attribute in old.attributes {
            // What the book no longer has stays with the entry.
            if !said.iter().any(|said| same_name(&said.name, &attribute.name)) {
                said.push(attribute);
            }
        }
        let text = match self.form.get("text") {
            Some(text) => unix(text).into_owned(),
            None => old.text,
        };
        let encoding = self.encoding(draft)?;
        Ok(Content { attributes: said, encoding, text, attachments: old.attachments, links: old.links })
    }

    /// What every attribute of the book says.
    fn said(&self, draft: bool) -> Result<Vec<EntryAttribute>, Wrong> {
        let mut said = Vec::with_capacity(self.book.attributes.len());
        for (at, def) in self.book.attributes.iter().enumerate() {
            let old = self.old.and_then(|old| old.attribute(&def.name)).map(|old| old.values.clone());
            let keeps = old.is_some() && (def.locked || self.settings.is_fixed(&def.name, self.occasion));
            let read = if keeps { None } else { self.values(at, def, draft)? };
            let nothing = || if def.kind == AttributeKind::Boolean { vec!["0".to_owned()] } else { vec![] };
            let ticked = matches!(def.kind, AttributeKind::Boolean | AttributeKind::Multiple | AttributeKind::UserLists);
            let values = match (read, old) {
                (Some(values), _) => values,
                (None, Some(old)) if !(self.by_page && ticked && !keeps && self.settings.in_form(&def.name, &[])) => old,
                (None, _) => nothing(),
            };
            said.push(EntryAttribute { name: def.name.clone(), values });
        }
        Ok(said)
    }

    /// What the form says of an attribute; none if it does not speak of it.
    fn values(&self, at: usize, def: &AttributeDef, draft: bool) -> Result<Option<Vec<String>>, Wrong> {
        let names = field_names(&def.name);
        let direct = names.iter().find_map(|name| self.form.get(name));
        let one = |value: &str| if value.is_empty() { vec![] } else { vec![value.to_owned()] };
        match def.kind {
            kind if kind.is_multiple() => {
                if let Some(joined) = direct {
                    let split = line(joined).split('|').map(|value| value.trim().to_owned());
                    return Ok(Some(split.filter(|value| !value.is_empty()).collect()));
                }
                let numbered = names.iter().map(|name| self.form.numbered(&format!("{name}_"))).find(|found| !found.is_empty());
                let value = |(_, value): (u32, &str)| Some(line(value).trim().to_owned()).filter(|value| !value.is_empty());
                Ok(numbered.map(|found| found.into_iter().filter_map(value).collect()))
            }
            AttributeKind::Date | AttributeKind::DateTime => match direct {
                Some(text) => match self.moment(def.kind, text.trim()) {
                    Some(seconds) => Ok(Some(seconds.into_iter().map(|seconds| seconds.to_string()).collect())),
                    None if draft => Ok(Some(vec![])),
                    None => Err(Wrong::NoDate(def.name.clone())),
                },
                None => self.parts(at, def, draft),
            },
            _ => Ok(direct.map(|value| one(without_condition(line(value).trim(), def)))),
        }
    }

    /// The date in fields of its own.
    fn parts(&self, at: usize, def: &AttributeDef, draft: bool) -> Result<Option<Vec<String>>, Wrong> {
        let part = |letter: char| self.form.get(&format!("{letter}{at}")).map(|value| value.trim().parse::<i64>().unwrap_or(0));
        let (Some(year), Some(month), Some(day)) = (part('y'), part('m'), part('d')) else { return Ok(None) };
        if month == 0 || day == 0 {
            return Ok(Some(vec![]));
        }
        let year = if (0..100).contains(&year) { 2000 + year } else { year };
        let clock = match def.kind {
            AttributeKind::Date => [12, 0, 0],
            _ => [part('h'), part('n'), part('c')].map(|part| part.unwrap_or(0)),
        };
        match self.zone.moment([year, month, day], clock) {
            Some(time) => Ok(Some(vec![time.0.div_euclid(1_000_000_000).to_string()])),
            None if draft => Ok(Some(vec![])),
            None => Err(Wrong::NoDate(def.name.clone())),
        }
    }

    /// Unix seconds, or a date as browsers write it, or as ELOG's tables do; `Some(None)` says that there is none.
    fn moment(&self, kind: AttributeKind, text: &str) -> Option<Option<i64>> {
        if matches!(text, "" | "0" | "-") {
            return Some(None);
        }
        if let Ok(seconds) = text.parse::<i64>() {
            return Some(Some(seconds));
        }
        if let Some((time, _)) = date::parse(text, 0) {
            let [year, month, day, hour, minute, second] = Zone::OfEntry.fields(time, 0);
            return Some(Some(self.zone.moment([year, month, day], [hour, minute, second])?.0.div_euclid(1_000_000_000)));
        }
        let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "0:0:0"));
        let numbers =
            |text: &str, separator: char| -> Option<Vec<i64>> { text.split(separator).map(|part| part.parse().ok()).collect() };
        let ([year, month, day], mut clock) = (<[i64; 3]>::try_from(numbers(date, '-')?).ok()?, numbers(clock, ':')?);
        clock.resize(3, 0);
        let clock = if kind == AttributeKind::Date { [12, 0, 0] } else { <[i64; 3]>::try_from(clock).ok()? };
        Some(Some(self.zone.moment([year, month, day], clock)?.0.div_euclid(1_000_000_000)))
    }

    fn encoding(&self, draft: bool) -> Result<Encoding, Wrong> {
        let old = self.old.map(|old| old.encoding);
        let said = self.form.get("encoding").map(|text| text.trim().parse().unwrap_or(Encoding::Plain));
        let encoding = match (said, old) {
            // ELOG's programs are given Markdown as plain text, because they do not know it, and send it back so.
            (Some(Encoding::Plain), Some(Encoding::Markdown)) if !self.by_page => Encoding::Markdown,
            (Some(said), _) => said,
            (None, old) => old.unwrap_or(Encoding::Plain),
        };
        let allowed = old == Some(encoding) || self.settings.encodings().contains(&encoding) || draft;
        if allowed { Ok(encoding) } else { Err(Wrong::Encoding(encoding)) }
    }
}

/// Holds the values to the attribute, and writes options as they are spelt.
fn check(def: &AttributeDef, said: &mut EntryAttribute, draft: bool) -> Result<(), Wrong> {
    let options = matches!(def.kind, AttributeKind::Options | AttributeKind::Radio | AttributeKind::Multiple);
    for value in &mut said.values {
        if options && let Some(known) = def.options.iter().find(|known| same_name(known, value)) {
            value.clone_from(known);
        }
    }
    if draft {
        return Ok(());
    }
    if def.required && said.values.is_empty() {
        return Err(Wrong::Missing(def.name.clone()));
    }
    for value in &said.values {
        if value.len() > MAX_VALUE {
            return Err(Wrong::TooLong(def.name.clone()));
        }
        match def.kind {
            AttributeKind::Numeric if number(value).is_none() => return Err(Wrong::NoNumber(def.name.clone())),
            AttributeKind::Boolean if !matches!(value.as_str(), "0" | "1") => return Err(Wrong::NoBoolean(value.clone())),
            _ if options && !def.extendable && !def.options.contains(value) => return Err(Wrong::NoOption(value.clone())),
            _ => {}
        }
    }
    Ok(())
}

/// What the fields of an attribute can be called.
fn field_names(name: &str) -> Vec<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    // elogd's way counts bytes, py_elog's characters.
    let bytes = |c: char| std::iter::repeat_n(plain(c), if c.is_ascii() { 1 } else { c.len_utf8() });
    let mut names = vec![name.to_owned(), name.chars().map(plain).collect(), name.chars().flat_map(bytes).collect()];
    names.dedup();
    names
}

/// A value ends with its line.
fn line(value: &str) -> &str {
    value.split(['\r', '\n', '\0']).next().unwrap_or_default()
}

/// An option without the condition it sets: `Routine{a}`.
fn without_condition<'a>(value: &'a str, def: &AttributeDef) -> &'a str {
    match value.split_once('{') {
        Some((plain, _)) if value.ends_with('}') && def.options.iter().any(|option| option == plain.trim_end()) => {
            plain.trim_end()
        }
        _ => value,
    }
}

/// Line ends of Unix: browsers and the `elog` command send those of Windows.
fn unix(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}
