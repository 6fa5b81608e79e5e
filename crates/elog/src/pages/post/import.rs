//! `CSV Import` and `XML Import`: the entries of ELOG's exports become new entries of a book.
//!
//! The whole file is read and checked against the book before the first entry is written. Then all entries are written
//! in one transaction, so a file is imported completely or not at all, and the response states which. The size of a
//! file is limited while it is read, because other writers wait meanwhile. Entries get new numbers; in XML, replies
//! keep their parents. Attachments are only named in such files, so they are not imported.
//!
//! A parser in this module reads the table instead of the crate `csv`. It reports an unclosed quotation mark with its
//! line, and counts the values while it reads. That crate reports neither.

use std::collections::HashMap;

use http::StatusCode;
use quick_xml::{
    Reader,
    events::{BytesRef, Event},
};
use tampu_logbook::{
    entry::{Content, NewEntry},
    people::{Resource, Verb},
};
use tampu_types::{Time, spreadsheet::value_of_cell};

use crate::{
    date,
    pages::{
        clock::Zone,
        command::PageCommand,
        csrf,
        html::{SafeHtml, put},
        layout::{self, BookPage},
        post::{
            content::{FormReader, InvalidEntry},
            submit::FUTURE,
            transfer::{RefusedResponse, allowed, check_rights},
        },
        refusal,
        request::BookRequest,
        response::{LoggedFailure, Response},
        sent::ReceivedForm,
        settings::FormOccasion,
    },
};

/// Entries of a file.
const MAX_ENTRIES: usize = 20_000;
/// Maximum number of values in a file: each takes some hundred bytes during the import, even if it is short.
const MAX_VALUES: usize = 1_000_000;
/// Maximum length of the name of a column or an element, in bytes. Every entry stores it again.
const MAX_NAME: usize = 200;

/// Answers with the form for the file to import.
pub fn import_form(request: &BookRequest<'_>) -> Response {
    let xml = request.command() == Some(PageCommand::XmlImport);
    let (name, field, what) = match xml {
        true => ("XML Import", "xmlfile", "a file that ELOG or this logbook exported as XML"),
        false => (
            "CSV Import",
            "csvfile",
            "a table with a comma or a semicolon between values, and the attributes' names in the first line",
        ),
    };
    let mut body = String::new();
    put!(&mut body, "<form method=\"post\" action=\"./\" enctype=\"multipart/form-data\" class=\"dlgframe\">\n");
    put!(
        &mut body,
        "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n",
        csrf::FIELD,
        csrf::token(request.site, request.caller, request.session.as_deref())
    );
    put!(&mut body, "<input type=\"hidden\" name=\"cmd\" value=\"{}\">\n", name);
    put!(&mut body, "<p><label>{}: <input type=\"file\" name=\"{}\"></label></p>\n", what, field);
    put!(&mut body, "<p><button>{}</button></p></form>\n", name);
    BookPage::new(request, name, body).answer(StatusCode::OK)
}

/// An entry of a file: the fields that a form would send, and the additional fields of such a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ImportedRow {
    /// Names and values.
    pub fields: Vec<(String, String)>,
    /// Its number in the file.
    pub id: Option<u32>,
    /// The parent, by the numbers of the file.
    pub parent: Option<u32>,
    /// The date of writing, with its zone in minutes east of UTC.
    pub date: Option<(Time, i16)>,
    /// The text of an invalid date.
    pub bad_date: Option<String>,
}

/// Imports a file.
pub fn import(request: &BookRequest<'_>, form: &ReceivedForm, command: PageCommand) -> Response {
    try_import(request, form, command).unwrap_or_else(|refused| *refused)
}

fn try_import(request: &BookRequest<'_>, form: &ReceivedForm, command: PageCommand) -> Result<Response, RefusedResponse> {
    allowed(request, command)?;
    check_rights(request, Verb::Post, Resource::Book(&request.book.name))?;
    let zone = &request.zone;
    let read = match command {
        PageCommand::XmlImport => xml(form.get("xmlfile").unwrap_or_default(), zone),
        _ => csv(form.get("csvfile").unwrap_or_default(), zone, request.site.config.raw_csv),
    };
    let wrong = |text: String| Ok(layout::error(request, StatusCode::UNPROCESSABLE_ENTITY, &format!("Error: {text}")));
    let rows = match read {
        Ok(rows) if rows.is_empty() => return wrong("the file has no entries".to_owned()),
        Ok(rows) => rows,
        Err(why) => return wrong(format!("the file cannot be read: {why}")),
    };
    let nothing = |nth: usize, why: SafeHtml| {
        let mut html = String::new();
        put!(&mut html, "Entry {} of the file: {}. Nothing was imported.", nth + 1, why);
        Ok(refusal::html_error(request, StatusCode::UNPROCESSABLE_ENTITY, &html))
    };
    let text = |text: &str| SafeHtml(escaped(&format!("Error: {text}")));
    let mut contents = Vec::with_capacity(rows.len());
    for (nth, row) in rows.iter().enumerate() {
        if let Some(bad) = &row.bad_date {
            return nothing(nth, text(&format!("its date \"{bad}\" cannot be read")));
        }
        if row.date.is_some_and(|(date, _)| date.0 > request.now.0.saturating_add(FUTURE)) {
            return nothing(nth, text("its date is more than a day ahead"));
        }
        let content = match content(request, row) {
            Ok(content) => content,
            Err(wrong) => return nothing(nth, SafeHtml(wrong.html())),
        };
        // Finds the errors that the store would return before anything is written.
        if let Err(invalid) = content.check().and_then(|()| request.book.accepts(&content.attributes)) {
            return nothing(nth, text(&invalid.to_string()));
        }
        contents.push(content);
    }
    if request.stop.is_stopped() {
        return wrong("it was stopped. Nothing was imported".to_owned());
    }
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut new = Vec::with_capacity(rows.len());
    for (nth, (row, content)) in rows.into_iter().zip(contents).enumerate() {
        let (date, zone) = row.date.unwrap_or_else(|| (request.now, zone.minutes(request.now, 0)));
        let parent = row.parent.and_then(|parent| places.get(&parent).copied());
        new.push((NewEntry { book: request.book.name.clone(), parent: None, content, date: Some(date), zone }, parent));
        row.id.map(|id| places.insert(id, nth));
    }
    let count = match request.site.store().post_all(new, request.by()) {
        Ok(posted) => posted.len(),
        Err(error) => {
            let status = request.failed(&error).status();
            let why = if status.is_server_error() { "the logbook's store failed".to_owned() } else { error.to_string() };
            let mut answer = layout::error(request, status, &format!("Error: {why}. Nothing was imported"));
            if status.is_server_error() {
                answer.extensions_mut().insert(LoggedFailure(error.to_string()));
            }
            return Ok(answer);
        }
    };
    let mut body = String::new();
    put!(&mut body, "<p class=\"dlgframe\">{} entries imported. <a href=\"./\">To the list</a></p>\n", count);
    Ok(BookPage::new(request, "Import", body).answer(StatusCode::OK))
}

fn escaped(text: &str) -> String {
    let mut html = String::new();
    put!(&mut html, "{}", text);
    html
}

fn content(request: &BookRequest<'_>, row: &ImportedRow) -> Result<Content, InvalidEntry> {
    let form = ReceivedForm { fields: row.fields.clone(), files: Vec::new() };
    let reading = FormReader {
        form: &form,
        book: &request.book,
        settings: &request.settings,
        zone: &request.zone,
        occasion: FormOccasion::New,
        by_page: false,
        old: None,
    };
    reading.content(false)
}

/// Returns the lines of a table, the first of which names the columns, or the reason for an invalid table. `zone` is
/// that of dates without one. `raw` leaves the apostrophe before formulas, which a table of this site then does not add.
pub fn csv(text: &str, zone: &Zone, raw: bool) -> Result<Vec<ImportedRow>, String> {
    let head = text.lines().next().unwrap_or_default();
    let count = |c: char| head.matches(c).count();
    let lines = cells(text, if count(';') > count(',') { ';' } else { ',' })?;
    let mut lines = lines.into_iter();
    let Some((_, names)) = lines.next() else { return Ok(Vec::new()) };
    let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
    names.iter().try_for_each(|name| short(name))?;
    let mut rows = Vec::new();
    for (number, line) in lines {
        if line.len() > names.len() {
            return Err(format!("line {number} of the table has {} values for {} columns", line.len(), names.len()));
        }
        let mut row = ImportedRow::default();
        for (name, value) in names.iter().zip(line) {
            match name.to_ascii_lowercase().as_str() {
                "message id" => row.id = value.trim().parse().ok(),
                "date" => row.dated(&value, zone),
                _ if raw => row.fields.push(((*name).to_owned(), value)),
                _ => row.fields.push((value_of_cell(name).to_owned(), value_of_cell(&value).to_owned())),
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

fn within(entries: usize, values: usize) -> Result<(), String> {
    match (entries > MAX_ENTRIES, values > MAX_VALUES) {
        (true, _) => Err(format!("more than {MAX_ENTRIES} entries")),
        (_, true) => Err(format!("more than {MAX_VALUES} values")),
        _ => Ok(()),
    }
}

fn short(name: &str) -> Result<(), String> {
    if name.len() > MAX_NAME { Err(format!("a name of {} bytes; at most {MAX_NAME}", name.len())) } else { Ok(()) }
}

/// Reads a date of ELOG's files; in its tables, a blank replaces the comma.
fn when(text: &str, zone: &Zone) -> Option<(Time, i16)> {
    let text = text.trim();
    let with_comma = match (text.get(..3), text.get(3..5)) {
        (Some(day), Some("  ")) => format!("{day}, {}", &text[5..]),
        _ => text.to_owned(),
    };
    date::parse(&with_comma, zone)
}

/// Returns the values of a table, line by line, with the lines' numbers; empty lines are left out.
fn cells(text: &str, separator: char) -> Result<Vec<(usize, Vec<String>)>, String> {
    let (mut lines, mut line, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut number, mut values) = (1, 0);
    let mut chars = text.chars().peekable();
    let (mut quoted, mut began) = (false, 1);
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if cell.is_empty() => (quoted, began) = (true, number),
            c if quoted => cell.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => {
                line.push(std::mem::take(&mut cell));
                let done: Vec<String> = std::mem::take(&mut line);
                if done.iter().any(|cell| !cell.is_empty()) {
                    values += done.len();
                    lines.push((number, done));
                    // The first line has the names.
                    within(lines.len() - 1, values)?;
                }
                number += 1;
            }
            c if c == separator => {
                line.push(std::mem::take(&mut cell));
                within(0, values + line.len())?;
            }
            c => cell.push(c),
        }
    }
    if quoted {
        return Err(format!("a quotation mark in line {began} of the table has no end"));
    }
    line.push(cell);
    if line.iter().any(|cell| !cell.is_empty()) {
        lines.push((number, line));
        within(lines.len() - 1, values)?;
    }
    Ok(lines)
}

/// Reads the entries of an `<ELOG_LIST>`.
pub fn xml(text: &str, zone: &Zone) -> Result<Vec<ImportedRow>, String> {
    let mut reader = Reader::from_str(text);
    let (mut rows, mut row, mut value): (Vec<ImportedRow>, Option<ImportedRow>, Option<(String, String)>) =
        (Vec::new(), None, None);
    let mut values = 0;
    loop {
        let place = reader.buffer_position();
        let bad = |why: &dyn std::fmt::Display| format!("byte {place}: {why}");
        let event = reader.read_event().map_err(|error| bad(&error))?;
        match event {
            Event::Start(tag) => {
                let name = tag.name().as_ref().to_owned();
                short(&name).map_err(|why| bad(&why))?;
                match (&row, &value) {
                    (_, Some(_)) => return Err(bad(&format!("<{name}> inside of a value"))),
                    (None, _) if name == "ENTRY" => row = Some(ImportedRow::default()),
                    (None, _) => {}
                    (Some(_), None) => value = Some((name, String::new())),
                }
            }
            Event::Text(text) => {
                if let Some((_, value)) = &mut value {
                    value.push_str(&text);
                }
            }
            Event::CData(data) => {
                if let Some((_, value)) = &mut value {
                    value.push_str(&data);
                }
            }
            Event::GeneralRef(entity) => {
                let character = resolved(&entity).ok_or_else(|| bad(&"an entity that XML does not have"))?;
                if let Some((_, value)) = &mut value {
                    value.push(character);
                }
            }
            Event::End(tag) => {
                let ends_entry = tag.name().as_ref() == "ENTRY";
                match (&mut row, value.take()) {
                    (Some(row), Some((name, value))) => {
                        values += 1;
                        row.element(&name, value, zone);
                    }
                    (Some(_), None) if ends_entry => rows.extend(row.take()),
                    _ => {}
                }
                within(rows.len(), values)?;
            }
            Event::Eof if row.is_some() => return Err(bad(&"it ends in the middle of an entry")),
            Event::Eof => return Ok(rows),
            _ => {}
        }
    }
}

/// Returns the character of a reference; entities that the file defines itself have none.
fn resolved(entity: &BytesRef<'_>) -> Option<char> {
    if let Ok(Some(c)) = entity.resolve_char_ref() {
        return Some(c);
    }
    match entity.as_ref() {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

impl ImportedRow {
    /// Sets the date. An entry without a date has the present one; an unreadable date is kept as a fault.
    fn dated(&mut self, text: &str, zone: &Zone) {
        self.date = when(text, zone);
        self.bad_date =
            Some(text.trim().chars().take(40).collect()).filter(|bad: &String| self.date.is_none() && !bad.is_empty());
    }

    fn element(&mut self, name: &str, value: String, zone: &Zone) {
        match name {
            "MID" => self.id = value.trim().parse().ok(),
            "DATE" => self.dated(&value, zone),
            "IN_REPLY_TO" => self.parent = value.trim().parse().ok(),
            "REPLY_TO" | "ATTACHMENT" => {}
            "ENCODING" => self.fields.push(("encoding".to_owned(), value)),
            "TEXT" => self.fields.push(("Text".to_owned(), value)),
            name => {
                // A time is written for people and, after that, in seconds.
                let kept = value.rsplit_once('[').and_then(|(_, seconds)| seconds.strip_suffix(']'));
                let kept = kept.filter(|seconds| seconds.parse::<i64>().is_ok()).map(str::to_owned);
                let name = name.strip_prefix('_').filter(|rest| rest.starts_with(|c: char| c.is_numeric())).unwrap_or(name);
                self.fields.push((name.to_owned(), kept.unwrap_or(value)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_are_read_as_they_are_written() {
        let rows = csv(
            "\"Message ID\";\"Date\";\"Author\";\"Text\"\r\n7;Wed  10 Sep 2008 00:40:00 +0200;\"Zoe \"\"Q\"\"\";\"a;b\nc\"\r\n\r\n8;;Max\r\n",
            &Zone::OfEntry,
            false,
        )
        .unwrap();
        assert_eq!((rows[0].id, rows[0].date.unwrap().1, rows.len()), (Some(7), 120, 2));
        assert_eq!(rows[0].fields, [("Author".to_owned(), "Zoe \"Q\"".to_owned()), ("Text".to_owned(), "a;b\nc".to_owned())]);
        assert_eq!(rows[1].fields, [("Author".to_owned(), "Max".to_owned())]);
        assert!(csv("A,B\n1,2,3\n", &Zone::OfEntry, false).unwrap_err().contains("line 2"));
        assert!(csv("A\n1\n\"open\n", &Zone::OfEntry, false).unwrap_err().contains("line 3"));
        assert_eq!(csv("", &Zone::OfEntry, false), Ok(vec![]));
    }

    #[test]
    fn lists_are_read_as_they_are_written() {
        let text = "<?xml version=\"1.0\"?>\n<ELOG_LIST><ENTRY><MID>3</MID><DATE>Wed, 10 Sep 2008 00:40:00 +0200</DATE>\
            <IN_REPLY_TO>2</IN_REPLY_TO><ENCODING>HTML</ENCODING><Run_number>1</Run_number><When>2008 [1221000000]</When><_2nd>x [y]</_2nd>\
            <TEXT>a &lt;b&gt; &#13;<![CDATA[<c>]]></TEXT></ENTRY></ELOG_LIST>";
        let rows = xml(text, &Zone::OfEntry).unwrap();
        let fields: Vec<_> = rows[0].fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!((rows[0].id, rows[0].parent), (Some(3), Some(2)));
        assert_eq!(
            fields,
            [("encoding", "HTML"), ("Run_number", "1"), ("When", "1221000000"), ("2nd", "x [y]"), ("Text", "a <b> \r<c>")]
        );
        for (text, why) in [
            ("<ELOG_LIST><ENTRY><MID>1</MID>", "middle of an entry"),
            ("<ELOG_LIST><ENTRY><A><B>x</B></A></ENTRY></ELOG_LIST>", "inside of a value"),
            ("<!DOCTYPE x [<!ENTITY a \"b\">]><ELOG_LIST><ENTRY><A>&a;</A></ENTRY></ELOG_LIST>", "an entity"),
            ("<ELOG_LIST><ENTRY></ELOG_LIST>", "byte"),
        ] {
            assert!(xml(text, &Zone::OfEntry).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn a_file_is_bounded_while_it_is_read() {
        let most = 20_000;
        let table = |lines: usize| format!("A\n{}", "x\n".repeat(lines));
        assert_eq!(csv(&table(most), &Zone::OfEntry, false).map(|rows| rows.len()), Ok(most));
        assert_eq!(csv(table(most).trim_end(), &Zone::OfEntry, false).map(|rows| rows.len()), Ok(most));
        for text in [table(most + 1), format!("{}x", table(most))] {
            assert_eq!(csv(&text, &Zone::OfEntry, false), Err("more than 20000 entries".to_owned()));
        }
        assert_eq!(
            csv(&format!("A\n{}x\n", "\n".repeat(1 << 20)), &Zone::OfEntry, false).map(|rows| rows.len()),
            Ok(1),
            "empty lines are none"
        );
        let wide = format!("{}\n", "A,".repeat(999));
        for text in [",".repeat(1_100_000), wide.clone() + &format!("x{}\n", ",".repeat(999)).repeat(1001)] {
            assert_eq!(csv(&text, &Zone::OfEntry, false), Err("more than 1000000 values".to_owned()));
        }
        assert!(csv(&format!("{}\nx\n", "A".repeat(201)), &Zone::OfEntry, false).unwrap_err().contains("201 bytes"));
        let list = |entries: usize| format!("<ELOG_LIST>{}</ELOG_LIST>", "<ENTRY></ENTRY>".repeat(entries));
        assert_eq!(xml(&list(most), &Zone::OfEntry).map(|rows| rows.len()), Ok(most));
        assert_eq!(xml(&list(most + 1), &Zone::OfEntry), Err("more than 20000 entries".to_owned()));
        let values = format!("<ELOG_LIST><ENTRY>{}</ENTRY></ELOG_LIST>", "<A></A>".repeat(1_000_001));
        assert_eq!(xml(&values, &Zone::OfEntry), Err("more than 1000000 values".to_owned()));
        assert!(
            xml(&format!("<ELOG_LIST><ENTRY><{0}>x</{0}></ENTRY></ELOG_LIST>", "A".repeat(201)), &Zone::OfEntry)
                .unwrap_err()
                .contains("201 bytes")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\"|;|,|\n|\r|a|<ENTRY>|</ENTRY>|<A>|</A>|&amp;|&#65;|\\[1\\]){0,40}") {
            let _ = (csv(&text, &Zone::OfEntry, false), xml(&text, &Zone::OfEntry));
        }
    }
}
