//! The workspace's sources as text, for the tests that hold it to its rules.

#![allow(dead_code)]

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folders of all crates, the product's and those beside it.
pub fn crates() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["crates", "bindings"]
        .iter()
        .flat_map(|group| std::fs::read_dir(root().join(group)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|folder| folder.join("Cargo.toml").exists())
        .chain(["benches", "fuzz"].map(|name| root().join(name)))
        .collect();
    folders.sort();
    assert!(folders.len() > 10, "the crates are found");
    folders
}

/// All files below a folder with one of these endings.
pub fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", "corpus", "artifacts", "book", "node_modules"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ending| endings.iter().any(|wanted| ending == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Rust source without comments, and with empty literals.
pub fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    let find = |needle: &str, from: usize| text[from..].find(needle).map_or(text.len(), |found| from + found);
    while at < bytes.len() {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at = find("\n", at);
        } else if rest.starts_with("/*") {
            at = (find("*/", at) + 2).min(text.len());
        } else if let Some(hashes) = raw_string(text, at) {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = find("\"", at) + 1;
            at = (find(&close, open) + close.len()).min(text.len());
            out.push_str("\"\"");
        } else if bytes[at] == b'"' {
            at += 1;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at = (at + 1).min(bytes.len());
            out.push_str("\"\"");
        } else if let Some(length) = character(rest) {
            at += length;
            out.push_str("' '");
        } else {
            let next = rest.chars().next().unwrap();
            out.push(next);
            at += next.len_utf8();
        }
        while at < bytes.len() && !text.is_char_boundary(at) {
            at += 1;
        }
    }
    out
}

/// The number of hashes of a raw string that begins here.
fn raw_string(text: &str, at: usize) -> Option<usize> {
    if text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
        return None;
    }
    let rest = text[at..].strip_prefix('b').unwrap_or(&text[at..]).strip_prefix('r')?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    rest[hashes..].starts_with('"').then_some(hashes)
}

/// The length of a character literal that begins here; a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if let Some(escaped) = inner.strip_prefix('\\') {
        return escaped.char_indices().skip(1).find(|(_, found)| *found == '\'').map(|(at, _)| at + 3);
    }
    let first = inner.chars().next()?;
    inner[first.len_utf8()..].starts_with('\'').then_some(first.len_utf8() + 2)
}

/// The code without items behind `#[cfg(test)]` and its like.
pub fn without_tests(code: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(code.len()), code);
    let marks = ["#[cfg(test", "#[cfg(all(test", "#[cfg(any(test"];
    while let Some(at) = marks.iter().filter_map(|mark| rest.find(mark)).min() {
        out.push_str(&rest[..at]);
        rest = &rest[at + item(&rest[at..])..];
    }
    out.push_str(rest);
    out
}

/// The length of the item that begins with attributes.
fn item(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut brackets = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '[' | '(' => brackets += 1,
            ']' | ')' => brackets = brackets.saturating_sub(1),
            '{' if brackets == 0 => depth += 1,
            '}' if brackets == 0 => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            ';' | ',' if depth == 0 && brackets == 0 => return at + 1,
            _ => (),
        }
    }
    text.len()
}
