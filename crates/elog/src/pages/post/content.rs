//! Reads an entry from a form: attributes, encoding and text, with ELOG's checks.
//!
//! A field is named as its attribute, or with `_` for everything but letters and digits, as ELOG's programs write it.
//! Several values are joined by ` | `, or each has a field with a number after its name (`System_0`, as browsers send
//! it). A date is sent as Unix seconds, as `2026-11-22T08:15`, or in the fields `y2`, `m2`, `d2`, `h2`, `n2`, `c2`.
//! Here 2 is the attribute's index in the book.

use std::borrow::Cow;

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, Book, EntryAttribute, MAX_VALUE, number, same_name},
    entry::{Content, Encoding},
};

use crate::{
    date,
    pages::{
        clock::Zone,
        html::put,
        sent::ReceivedForm,
        settings::{ActiveConditions, BookSettings, FormOccasion},
        words::Words,
    },
};

/// The reason to reject an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidEntry {
    /// An attribute needs a value.
    Missing(String),
    /// A value is not one of the options.
    NoOption(String),
    /// A value is not a number.
    NoNumber(String),
    /// A value is neither 0 nor 1.
    NoBoolean(String),
    /// A value is not a date.
    NoDate(String),
    /// A value is too long.
    TooLong(String),
    /// The book does not have this encoding.
    Encoding(Encoding),
}

impl InvalidEntry {
    /// Returns the message in the language of the page; `None` if the language has none.
    pub fn said(&self, words: &Words) -> Option<String> {
        let (key, value) = match self {
            InvalidEntry::Missing(name) => ("Error: Attribute <b>%s</b> not supplied", name),
            InvalidEntry::NoOption(value) => ("Error: Attribute option <b>%s</b> not existing", value),
            InvalidEntry::NoNumber(name) => ("Error: Attribute <b>%s</b> must be numeric", name),
            InvalidEntry::NoBoolean(value) => ("Error: Value <b>%s</b> not allowed for boolean attributes", value),
            InvalidEntry::NoDate(_) | InvalidEntry::TooLong(_) | InvalidEntry::Encoding(_) => return None,
        };
        Some(words.said(key, "")).filter(|text| !text.is_empty()).map(|text| text.replacen("%s", value, 1))
    }

    /// Returns the message in ELOG's words, as HTML, because ELOG's programs search for them with the tags.
    pub fn html(&self) -> String {
        let mut out = String::new();
        match self {
            InvalidEntry::Missing(name) => {
                put!(&mut out, "<i>Error: Attribute <b>{}</b> not supplied.</i><p>\n", name);
                put!(&mut out, "Please go back and enter the <b>{}</b> field.\n", name);
            }
            InvalidEntry::NoOption(value) => put!(&mut out, "Error: Attribute option <b>{}</b> not existing", value),
            InvalidEntry::NoNumber(name) => put!(&mut out, "Error: Attribute <b>{}</b> must be numeric", name),
            InvalidEntry::NoBoolean(value) => put!(&mut out, "Error: Value <b>{}</b> not allowed for boolean attributes", value),
            InvalidEntry::NoDate(name) => put!(&mut out, "Error: Attribute <b>{}</b> must be a date", name),
            InvalidEntry::TooLong(name) => put!(&mut out, "Error: Attribute <b>{}</b> has more than {} bytes", name, MAX_VALUE),
            InvalidEntry::Encoding(encoding) => put!(&mut out, "{} encoding not allowed", encoding_name(*encoding)),
        }
        out
    }
}

fn encoding_name(encoding: Encoding) -> &'static str {
    if encoding == Encoding::Plain { "Plain" } else { encoding.name() }
}

/// Rounds in which values set conditions that change how values are read.
const CONDITION_ROUNDS: usize = 3;

/// The reader of a form, with the facts it needs.
pub struct FormReader<'a> {
    /// The received form.
    pub form: &'a ReceivedForm,
    pub book: &'a Book,
    /// The settings of the book.
    pub settings: &'a BookSettings,
    /// The site's local time.
    pub zone: &'a Zone,
    /// The purpose of the form.
    pub occasion: FormOccasion,
    /// True if a page of this site sent it: then an unticked box sends nothing.
    pub by_page: bool,
    /// The content of an edited entry.
    pub old: Option<&'a Content>,
}

impl FormReader<'_> {
    /// Returns the content of the entry, without its attachments. The values of a draft are not checked.
    pub fn content(&self, draft: bool) -> Result<Content, InvalidEntry> {
        let (mut said, set) = self.said_under_conditions(draft)?;
        for attribute in said.iter_mut() {
            let Some(def) = self.book.attribute(&attribute.name) else { continue };
            let def = self.settings.attribute(def, &set);
            check(&def, attribute, draft)?;
        }
        let old = self.old.cloned().unwrap_or_default();
        for attribute in old.attributes {
            // Attributes that the book no longer has stay with the entry.
            if !said.iter().any(|said| same_name(&said.name, &attribute.name)) {
                said.push(attribute);
            }
        }
        let fixed = self.settings.fix_text() && self.occasion == FormOccasion::Edit;
        let text = match self.form.get("text").filter(|_| !fixed) {
            Some(text) => unix(text).into_owned(),
            None => old.text,
        };
        let encoding = if fixed { old.encoding } else { self.encoding(draft)? };
        Ok(Content { attributes: said, encoding, text, attachments: old.attachments, links: old.links })
    }

    /// Returns the values of all attributes, and the conditions that they set. Under a condition an attribute can have boxes
    /// for several values, so its fields are read again.
    fn said_under_conditions(&self, draft: bool) -> Result<(Vec<EntryAttribute>, ActiveConditions), InvalidEntry> {
        let mut set = ActiveConditions::new();
        for _ in 0..CONDITION_ROUNDS {
            let said = self.said(&set, draft)?;
            let values: Vec<(&str, String)> = said.iter().map(|said| (said.name.as_str(), said.joined())).collect();
            let value = |name: &str| values.iter().find(|(known, _)| same_name(known, name)).map(|(_, value)| value.as_str());
            let now = self.settings.set_by(value);
            if now == set {
                return Ok((said, set));
            }
            set = now;
        }
        Ok((self.said(&set, draft)?, set))
    }

    /// Returns the values of all attributes of the book, under these conditions.
    fn said(&self, set: &[String], draft: bool) -> Result<Vec<EntryAttribute>, InvalidEntry> {
        let mut said = Vec::with_capacity(self.book.attributes.len());
        for (at, def) in self.book.attributes.iter().enumerate() {
            let def = &self.settings.attribute(def, set);
            let old = self.old.and_then(|old| old.attribute(&def.name)).map(|old| old.values.clone());
            // An entry that is older than a locked attribute has no value of it, and gets none.
            let keeps = self.old.is_some() && (def.locked || self.settings.is_fixed(&def.name, self.occasion));
            let read = if keeps { None } else { self.values(at, def, draft)? };
            let nothing = || if def.kind == AttributeKind::Boolean { vec!["0".to_owned()] } else { vec![] };
            let ticked = matches!(def.kind, AttributeKind::Boolean | AttributeKind::Multiple | AttributeKind::UserLists);
            let values = match (read, old) {
                (None, None) if keeps => vec![],
                (Some(values), _) => values,
                (None, Some(old)) if !(self.by_page && ticked && !keeps && self.settings.in_form(&def.name, set)) => old,
                (None, _) => nothing(),
            };
            said.push(EntryAttribute { name: def.name.clone(), values });
        }
        Ok(said)
    }

    /// Returns the form's values of an attribute; `None` if the form has no field for it.
    fn values(&self, at: usize, def: &AttributeDef, draft: bool) -> Result<Option<Vec<String>>, InvalidEntry> {
        let names = field_names(&def.name);
        let direct = names.iter().find_map(|name| self.form.get(name));
        let one = |value: &str| if value.is_empty() { vec![] } else { vec![value.to_owned()] };
        match def.kind {
            AttributeKind::Tags => Ok(direct.map(|joined| tags(line(joined)))),
            AttributeKind::Text if def.multi_line => Ok(direct.map(|value| one(unix(value).trim_end().trim_matches('\0')))),
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
                    None => Err(InvalidEntry::NoDate(def.name.clone())),
                },
                None => self.parts(at, def, draft),
            },
            AttributeKind::Radio if def.extendable => {
                // A typed value is another one than the chosen.
                let another =
                    names.iter().flat_map(|name| self.form.numbered(&format!("{name}_"))).map(|(_, value)| line(value).trim());
                let typed = another.into_iter().find(|value| !value.is_empty());
                Ok(typed.or(direct).map(|value| one(without_condition(line(value).trim(), def))))
            }
            _ => Ok(direct.map(|value| one(without_condition(line(value).trim(), def)))),
        }
    }

    /// Returns the date from its separate fields.
    fn parts(&self, at: usize, def: &AttributeDef, draft: bool) -> Result<Option<Vec<String>>, InvalidEntry> {
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
            None => Err(InvalidEntry::NoDate(def.name.clone())),
        }
    }

    /// Reads Unix seconds, a date as browsers write it, or one of ELOG's tables; `Some(None)` means no date.
    fn moment(&self, kind: AttributeKind, text: &str) -> Option<Option<i64>> {
        if matches!(text, "" | "0" | "-") {
            return Some(None);
        }
        if let Ok(seconds) = text.parse::<i64>() {
            return Some(Some(seconds));
        }
        if let Some((time, _)) = date::parse(text, &Zone::OfEntry) {
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

    fn encoding(&self, draft: bool) -> Result<Encoding, InvalidEntry> {
        let old = self.old.map(|old| old.encoding);
        let said = self.form.get("encoding").map(|text| text.trim().parse().unwrap_or(Encoding::Plain));
        let encoding = match (said, old) {
            // ELOG's programs do not know Markdown: they receive it as plain text, and send it back so.
            (Some(Encoding::Plain), Some(Encoding::Markdown)) if !self.by_page => Encoding::Markdown,
            (Some(said), _) => said,
            (None, old) => old.unwrap_or(Encoding::Plain),
        };
        let allowed = old == Some(encoding) || self.settings.encodings().contains(&encoding) || draft;
        if allowed { Ok(encoding) } else { Err(InvalidEntry::Encoding(encoding)) }
    }
}

/// Checks the values against the attribute, and corrects the spelling of options.
fn check(def: &AttributeDef, said: &mut EntryAttribute, draft: bool) -> Result<(), InvalidEntry> {
    let options = matches!(def.kind, AttributeKind::Options | AttributeKind::Radio | AttributeKind::Multiple);
    for value in &mut said.values {
        if options && let Some(known) = def.options.iter().find(|known| same_name(known, value)) {
            value.clone_from(known);
        }
    }
    if draft {
        return Ok(());
    }
    if def.required && def.computed.is_empty() && said.values.is_empty() {
        return Err(InvalidEntry::Missing(def.name.clone()));
    }
    for value in &said.values {
        if value.len() > MAX_VALUE {
            return Err(InvalidEntry::TooLong(def.name.clone()));
        }
        match def.kind {
            AttributeKind::Numeric if number(value).is_none() => return Err(InvalidEntry::NoNumber(def.name.clone())),
            AttributeKind::Boolean if !matches!(value.as_str(), "0" | "1") => return Err(InvalidEntry::NoBoolean(value.clone())),
            _ if options && !def.extendable && !def.options.contains(value) => return Err(InvalidEntry::NoOption(value.clone())),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the possible names of an attribute's fields.
fn field_names(name: &str) -> Vec<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    // elogd replaces each byte, py_elog each character.
    let bytes = |c: char| std::iter::repeat_n(plain(c), if c.is_ascii() { 1 } else { c.len_utf8() });
    let mut names = vec![name.to_owned(), name.chars().map(plain).collect(), name.chars().flat_map(bytes).collect()];
    names.dedup();
    names
}

/// Returns the first line of a value.
fn line(value: &str) -> &str {
    value.split(['\r', '\n', '\0']).next().unwrap_or_default()
}

/// Returns the labels of a text, each once. A comma separates them, and so does ELOG's `|`.
fn tags(text: &str) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in text.split([',', '|']).map(str::trim).filter(|tag| !tag.is_empty()) {
        if !tags.iter().any(|known| same_name(known, tag)) {
            tags.push(tag.to_owned());
        }
    }
    tags
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

/// Converts line ends to those of Unix: browsers and the `elog` command send those of Windows.
fn unix(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}
