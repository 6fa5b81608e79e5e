//! Texts of pages in another language: ELOG's files `eloglang.<name>`, which `Language` names.
//!
//! A line is `English text = text in the language`. Pages look the English texts up that they have in common with elogd;
//! their other texts stay English. Commands in addresses are English in every language, and those of the language are
//! read as well.

use std::{borrow::Cow, collections::HashMap};

use tampu_logbook::{entry::Encoding, plain};

use crate::decode;

/// Codes of the languages that ELOG ships, by name.
const CODES: [(&str, &str); 16] = [
    ("brazilian", "pt-BR"),
    ("bulgarian", "bg"),
    ("catalan", "ca"),
    ("danish", "da"),
    ("dutch", "nl"),
    ("french", "fr"),
    ("german", "de"),
    ("italian", "it"),
    ("japanese", "ja"),
    ("polish", "pl"),
    ("portuguese", "pt"),
    ("russian", "ru"),
    ("slovak", "sk"),
    ("spanish", "es"),
    ("swedish", "sv"),
    ("turkish", "tr"),
];

/// The texts of a language. The default is English.
#[derive(Debug, Clone, Default)]
pub struct Words {
    code: &'static str,
    /// Texts by the English ones in lower case.
    texts: HashMap<String, String>,
}

impl Words {
    /// Reads the file of a language.
    pub fn read(language: &str, bytes: &[u8]) -> Words {
        let mut texts = HashMap::new();
        for line in decode(bytes).lines().filter(|line| !line.starts_with(['#', ';'])) {
            let Some((english, text)) = line.split_once('=') else { continue };
            let (english, text) = (english.trim(), text.trim());
            // Some texts are HTML, and pages write texts.
            let text = match text.contains(['&', '<']) {
                true => plain::plain(Encoding::Html, text).trim().replace('\u{a0}', " "),
                false => text.to_owned(),
            };
            if !english.is_empty() && !text.is_empty() {
                texts.entry(english.to_lowercase()).or_insert(text);
            }
        }
        let code = CODES.iter().find(|(name, _)| name.eq_ignore_ascii_case(language.trim())).map_or("", |(_, code)| code);
        Words { code, texts }
    }

    /// Returns the code of the language for a page; empty for one without a known code.
    pub fn code(&self) -> &'static str {
        if self.texts.is_empty() { "en" } else { self.code }
    }

    /// Returns the text for an English one of elogd, or `own` if the language has none.
    pub fn said<'w>(&'w self, elog: &str, own: &'w str) -> &'w str {
        if self.texts.is_empty() { own } else { self.texts.get(&elog.to_lowercase()).map_or(own, String::as_str) }
    }

    /// Returns the text for an English one with `%d`, with these numbers in their places.
    pub fn counted(&self, english: &str, numbers: &[i64]) -> String {
        let mut parts = self.said(english, english).split("%d");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for (part, number) in parts.zip(numbers) {
            out.push_str(&number.to_string());
            out.push_str(part);
        }
        out
    }

    /// Returns the English text for one of the language, which can be a command in an address.
    pub fn english<'w>(&'w self, text: &'w str) -> Cow<'w, str> {
        let lower = text.trim().to_lowercase();
        let found = self.texts.iter().filter(|(_, known)| known.to_lowercase() == lower).map(|(english, _)| english);
        // Two commands can have one text; the choice does not depend on the order of a table.
        found.min().map_or(Cow::Borrowed(text), |english| Cow::Owned(english.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_language_are_looked_up() {
        let words = Words::read(
            "German",
            b"# comment\nFind = Finden\nPage %d of %d = Seite %d von %d\nFull = mit&nbsp;<b>Text</b>\nL\xf6 = x\nSave =\n",
        );
        assert_eq!(
            (words.said("find", "Find"), words.said("Save", "Save as draft"), words.code()),
            ("Finden", "Save as draft", "de")
        );
        assert_eq!((words.counted("Page %d of %d", &[2, 7]), words.said("Full", "")), ("Seite 2 von 7".to_owned(), "mit Text"));
        assert_eq!(
            (words.english("finden"), words.english("Other"), words.said("L\u{f6}", "")),
            ("find".into(), "Other".into(), "x")
        );
        let english = Words::default();
        assert_eq!(
            (english.said("Find", "Find"), english.counted("%d Entries", &[3]), english.code()),
            ("Find", "3 Entries".to_owned(), "en")
        );
    }
}
