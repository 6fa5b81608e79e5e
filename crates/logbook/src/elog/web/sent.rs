//! A form as it was sent: fields, and files that are already with the store.
//!
//! Names count without case, and of two fields with one name the last counts, as elogd has it: the `elog` command sends `encoding`
//! first as it was told, and then `Encoding` as the entry has it. Values are UTF-8 where they are that, else ISO-8859-1.

use std::io::Read;

use http::{HeaderMap, header::CONTENT_TYPE};

use super::multipart::{BadBody, Limits, Multipart, boundary, pairs};
use crate::{
    attachment::Upload,
    elog::decode,
    store::{Store, StoreError},
};

/// Why a form was not taken.
#[derive(Debug, thiserror::Error)]
pub enum BadForm {
    /// It cannot be read.
    #[error(transparent)]
    Body(#[from] BadBody),
    /// The store did not take a file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file came from whom none is taken.
    #[error("files are not taken from everybody")]
    Unwelcome,
}

/// What was sent.
#[derive(Debug, Default)]
pub struct Form {
    /// Names and values, in order, those of the address first.
    pub fields: Vec<(String, String)>,
    /// Files.
    pub files: Vec<SentFile>,
}

/// A file that was sent.
#[derive(Debug)]
pub struct SentFile {
    /// The field's name.
    pub field: String,
    /// The file's, as it was sent.
    pub name: String,
    /// Its bytes.
    pub upload: Upload,
}

impl Form {
    /// What an address asks.
    pub fn of_query(query: &str) -> Form {
        let fields = pairs(query.as_bytes()).map(|(name, value)| (decode(&name), decode(&value))).collect();
        Form { fields, files: Vec::new() }
    }

    /// Reads a body; its files go to the store. Before the first of them `welcome` is asked, with the fields that came until then.
    pub fn read(
        &mut self,
        headers: &HeaderMap,
        body: &mut (dyn Read + Send),
        store: &dyn Store,
        limits: &Limits,
        welcome: &mut dyn FnMut(&Form) -> bool,
    ) -> Result<(), BadForm> {
        let kind = headers.get(CONTENT_TYPE).map_or(String::new(), |value| decode(value.as_bytes()));
        if let Some(boundary) = boundary(&kind) {
            return self.read_parts(Multipart::new(body, &boundary, limits.clone()), store, limits, welcome);
        }
        if !kind.trim().to_ascii_lowercase().starts_with("application/x-www-form-urlencoded") {
            return Err(BadBody::NoForm(kind).into());
        }
        let mut text = Vec::new();
        (&mut *body).take(limits.fields as u64 + 1).read_to_end(&mut text).map_err(BadBody::Io)?;
        if text.len() > limits.fields {
            return Err(BadBody::TooMuch { what: "bytes in its fields", most: limits.fields as u64 }.into());
        }
        let begin = self.fields.len();
        self.fields.extend(pairs(&text).take(limits.parts + 1).map(|(name, value)| (decode(&name), decode(&value))));
        if self.fields.len() - begin > limits.parts {
            return Err(BadBody::TooMuch { what: "fields", most: limits.parts as u64 }.into());
        }
        Ok(())
    }

    fn read_parts(
        &mut self,
        mut parts: Multipart<&mut (dyn Read + Send)>,
        store: &dyn Store,
        limits: &Limits,
        welcome: &mut dyn FnMut(&Form) -> bool,
    ) -> Result<(), BadForm> {
        let mut bytes = 0;
        while let Some(head) = parts.next_part()? {
            if head.is_file() {
                if self.files.is_empty() && !welcome(self) {
                    return Err(BadForm::Unwelcome);
                }
                let upload = store.upload(&mut parts, limits.file).map_err(|error| body_of(error, limits))?;
                let name = decode(head.filename.as_deref().unwrap_or_default());
                self.files.push(SentFile { field: decode(&head.name), name, upload });
                continue;
            }
            let value = parts.field(limits.field)?;
            bytes += value.len() + head.name.len();
            if bytes > limits.fields {
                return Err(BadBody::TooMuch { what: "bytes in its fields", most: limits.fields as u64 }.into());
            }
            self.fields.push((decode(&head.name), decode(&value)));
        }
        Ok(())
    }

    /// A field's value; the last counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A field's value, without blanks around it; empty if it is not there.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default().trim()
    }

    /// Whether a field says yes.
    pub fn is(&self, name: &str) -> bool {
        !matches!(self.text(name), "" | "0")
    }

    /// A field's number, if it is one above 0.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.text(name).parse().ok().filter(|number| *number > 0)
    }

    /// Values of fields that are named so with a number behind: `attachment0`, `attachment1`; by their numbers.
    pub fn numbered(&self, name: &str) -> Vec<(u32, &str)> {
        let mut found: Vec<(u32, &str)> = Vec::new();
        for (known, value) in &self.fields {
            let Some((begin, number)) = known.split_at_checked(name.len()) else { continue };
            if !begin.eq_ignore_ascii_case(name) || number.len() > 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let Ok(number) = number.parse() else { continue };
            match found.iter_mut().find(|(at, _)| *at == number) {
                Some(there) => there.1 = value,
                None => found.push((number, value)),
            }
        }
        found.sort_by_key(|(number, _)| *number);
        found
    }
}

/// What a store says of an upload, as what it is: the body cut off, or too much.
fn body_of(error: StoreError, limits: &Limits) -> BadForm {
    let StoreError::Io { error: io, .. } = &error else { return error.into() };
    match io.kind() {
        std::io::ErrorKind::FileTooLarge => BadBody::TooMuch { what: "bytes in a file", most: limits.file }.into(),
        std::io::ErrorKind::InvalidData => match io.get_ref().and_then(|inner| inner.downcast_ref::<BadBody>()) {
            Some(BadBody::TooMuch { what, most }) => BadBody::TooMuch { what, most: *most }.into(),
            Some(BadBody::CutOff(part)) => BadBody::CutOff(*part).into(),
            _ => error.into(),
        },
        _ => error.into(),
    }
}
