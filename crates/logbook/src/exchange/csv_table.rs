//! Tables by RFC 4180, a record at a time. A record has a bounded size.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use super::{foreign::SourceError, json_items::MAX_ITEM};

/// A callback with the line of a record, the names of the columns, and the values; false ends the pass.
pub type TakeRecord<'a> = &'a mut dyn FnMut(u64, &[String], &[String]) -> Result<bool, SourceError>;

/// Passes the records of a table on. Its first record names the columns. Commas or semicolons separate values.
pub fn each(path: &Path, take: TakeRecord<'_>) -> Result<(), SourceError> {
    let io = |error| SourceError::Io { path: path.to_owned(), error };
    let mut from = BufReader::new(File::open(path).map_err(io)?);
    let mut names: Vec<String> = Vec::new();
    let (mut line, mut separator) = (1_u64, b',');
    loop {
        let first = line;
        let mut record: Vec<u8> = Vec::new();
        let mut is_quoted = false;
        // A record goes on in the next line while a quotation mark is open.
        loop {
            let before = record.len();
            let left = MAX_ITEM.saturating_sub(record.len() as u64);
            let read = std::io::Read::take(&mut from, left + 1).read_until(b'\n', &mut record).map_err(io)?;
            if record.len() as u64 > MAX_ITEM {
                let why = format!("line {first}: a record has more than {} MiB", MAX_ITEM >> 20);
                return Err(SourceError::Format { path: path.to_owned(), why });
            }
            line += u64::from(read > 0);
            is_quoted ^= record[before..].iter().filter(|byte| **byte == b'"').count() % 2 == 1;
            if read == 0 || !is_quoted {
                break;
            }
        }
        if record.is_empty() {
            return Ok(());
        }
        if is_quoted {
            let why = format!("line {first}: a quotation mark is not closed");
            return Err(SourceError::Format { path: path.to_owned(), why });
        }
        let text = String::from_utf8_lossy(&record);
        let text = text.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']);
        if names.is_empty() {
            separator = if text.contains(';') && !text.contains(',') { b';' } else { b',' };
            names = values(text, separator);
        } else if !text.is_empty() && !take(first, &names, &values(text, separator))? {
            return Ok(());
        }
    }
}

/// Splits a record into its values.
fn values(text: &str, separator: u8) -> Vec<String> {
    let mut out = vec![String::new()];
    let (mut is_quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        let last = out.len() - 1;
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                out[last].push('"');
            }
            '"' => is_quoted = !is_quoted,
            c if c == char::from(separator) && !is_quoted => out.push(String::new()),
            c => out[last].push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_may_have_line_ends() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\u{feff}id,title\r\n1,\"a, \"\"b\"\"\nc\"\r\n\r\n2,plain").unwrap();
        let mut found = Vec::new();
        each(file.path(), &mut |line, names, values| {
            assert_eq!(names, ["id", "title"]);
            found.push((line, values.join("|")));
            Ok(true)
        })
        .unwrap();
        assert_eq!(found, [(2, "1|a, \"b\"\nc".to_owned()), (5, "2|plain".to_owned())]);
        std::fs::write(file.path(), "id\n\"open").unwrap();
        let open = each(file.path(), &mut |_, _, _| Ok(true)).unwrap_err();
        assert!(open.to_string().contains("line 2"), "{open}");
    }
}
