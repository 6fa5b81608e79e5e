//! A received form: its fields, and its files, which the store already has.
//!
//! Names are compared without case, and of two fields with one name the last counts, as in elogd. The `elog` command
//! sends `encoding` first with the user's value, and then `Encoding` with the entry's value. Values that are not UTF-8
//! are read as ISO-8859-1.

use std::io::Read;

use http::{HeaderMap, header::CONTENT_TYPE};
use tampu_logbook::{
    attachment::Upload,
    store::{Store, StoreError},
};

use crate::{
    decode,
    pages::multipart::{BadBody, FormLimits, Multipart, boundary, pairs},
};

/// The reason to reject a form.
#[derive(Debug, thiserror::Error)]
pub enum BadForm {
    /// The body is invalid.
    #[error(transparent)]
    Body(#[from] BadBody),
    /// The store rejected a file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A caller who may not send files sent one.
    #[error("this caller may not send files")]
    Unwelcome,
}

/// The fields and files of a received form.
#[derive(Debug, Default)]
pub struct ReceivedForm {
    /// Names and values, in order, those of the address first.
    pub fields: Vec<(String, String)>,
    pub files: Vec<SentFile>,
}

/// A received file.
#[derive(Debug)]
pub struct SentFile {
    /// The field's name.
    pub field: String,
    /// The name of the file, as received.
    pub name: String,
    pub upload: Upload,
}

impl ReceivedForm {
    /// Reads the parameters of an address as a form.
    pub fn of_query(query: &str) -> ReceivedForm {
        let fields = pairs(query.as_bytes()).map(|(name, value)| (decode(&name), decode(&value))).collect();
        ReceivedForm { fields, files: Vec::new() }
    }

    /// Reads a body; its files go to the store. Before the first file, `welcome` receives the fields so far and decides
    /// whether files are accepted.
    pub fn read(
        &mut self,
        headers: &HeaderMap,
        body: &mut (dyn Read + Send),
        store: &dyn Store,
        limits: &FormLimits,
        welcome: &mut dyn FnMut(&ReceivedForm) -> bool,
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
        limits: &FormLimits,
        welcome: &mut dyn FnMut(&ReceivedForm) -> bool,
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

    /// Returns a field's value; the last one counts.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a field, without blanks around it; empty if it is missing.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default().trim()
    }

    /// Returns true if a field is set.
    pub fn is(&self, name: &str) -> bool {
        !matches!(self.text(name), "" | "0")
    }

    /// Returns a field's number, if it is above 0.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.text(name).parse().ok().filter(|number| *number > 0)
    }

    /// Returns the values of fields with this name and a number after it: `attachment0`, `attachment1`; by their
    /// numbers.
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

/// Converts a failed upload into its cause: a truncated body, or too many bytes.
fn body_of(error: StoreError, limits: &FormLimits) -> BadForm {
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
