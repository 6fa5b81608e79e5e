//! `CSV Import` and `XML Import`: what ELOG's exports hold becomes new entries of a book.
//!
//! All of a file is read and held against the book before the first entry is written, and then all is written in one transaction: a file is imported
//! or it is not, and the answer says which. How much of a file there can be is bounded while it is read, because whoever else writes waits
//! meanwhile. Entries get new numbers; in XML, answers answer what they answered. Attachments are named in such files and not in them, so they do not come along.

use std::collections::HashMap;

use http::StatusCode;
use quick_xml::{
    Reader,
    events::{BytesRef, Event},
};
use tampu_types::Time;

use super::{
    content::{Reading, Wrong},
    refusal,
    submit::FUTURE,
    transfer::{Refused, allowed, asked},
};
use crate::{
    elog::{
        date,
        web::{
            BookAsk, Failure, Response,
            command::Command,
            csrf,
            html::{Raw, put},
            layout::{self, Page},
            sent::Form,
            settings::Occasion,
        },
    },
    entry::{Content, NewEntry},
    people::{Resource, Verb},
};

/// Entries of a file.
const MAX_ENTRIES: usize = 20_000;
/// Values of a file: each takes some hundred bytes while it is read, however short it is.
const MAX_VALUES: usize = 1_000_000;
/// Bytes of the name of a column or an element, which every entry has once more.
const MAX_NAME: usize = 200;

/// The page that asks for a file to import.
pub fn import_form(ask: &BookAsk<'_>) -> Response {
    let xml = ask.command() == Some(Command::XmlImport);
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
    put!(&mut body, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", csrf::FIELD, csrf::token(ask.site, ask.caller));
    put!(&mut body, "<input type=\"hidden\" name=\"cmd\" value=\"{}\">\n", name);
    put!(&mut body, "<p><label>{}: <input type=\"file\" name=\"{}\"></label></p>\n", what, field);
    put!(&mut body, "<p><button>{}</button></p></form>\n", name);
    Page::new(ask, name, body).answer(StatusCode::OK)
}

/// An entry of a file: fields, as a form would send them, and what no form sends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Names and values.
    pub fields: Vec<(String, String)>,
    /// Its number in the file.
    pub id: Option<u32>,
    /// What it answers, by the file's numbers.
    pub parent: Option<u32>,
    /// When it was written, and in which zone.
    pub date: Option<(Time, i16)>,
    /// What stands where its date should be, and is none.
    pub bad_date: Option<String>,
}

/// Imports a file.
pub fn import(ask: &BookAsk<'_>, form: &Form, command: Command) -> Response {
    try_import(ask, form, command).unwrap_or_else(|refused| *refused)
}

fn try_import(ask: &BookAsk<'_>, form: &Form, command: Command) -> Result<Response, Refused> {
    allowed(ask, command)?;
    asked(ask, Verb::Post, Resource::Book(&ask.book.name))?;
    let zone = ask.site.config.zone.minutes(ask.now, 0);
    let read = match command {
        Command::XmlImport => xml(form.get("xmlfile").unwrap_or_default(), zone),
        _ => csv(form.get("csvfile").unwrap_or_default(), zone),
    };
    let wrong = |text: String| Ok(layout::error(ask, StatusCode::UNPROCESSABLE_ENTITY, &format!("Error: {text}")));
    let rows = match read {
        Ok(rows) if rows.is_empty() => return wrong("the file has no entries".to_owned()),
        Ok(rows) => rows,
        Err(why) => return wrong(format!("the file cannot be read: {why}")),
    };
    let nothing = |nth: usize, why: Raw| {
        let mut html = String::new();
        put!(&mut html, "Entry {} of the file: {}. Nothing was imported.", nth + 1, why);
        Ok(refusal(ask, StatusCode::UNPROCESSABLE_ENTITY, &html))
    };
    let text = |text: &str| Raw(escaped(&format!("Error: {text}")));
    let mut contents = Vec::with_capacity(rows.len());
    for (nth, row) in rows.iter().enumerate() {
        if let Some(bad) = &row.bad_date {
            return nothing(nth, text(&format!("its date \"{bad}\" cannot be read")));
        }
        if row.date.is_some_and(|(date, _)| date.0 > ask.now.0.saturating_add(FUTURE)) {
            return nothing(nth, text("its date is more than a day ahead"));
        }
        let content = match content(ask, row) {
            Ok(content) => content,
            Err(wrong) => return nothing(nth, Raw(wrong.html())),
        };
        // What the store would refuse, before anything is written.
        if let Err(invalid) = content.check().and_then(|()| ask.book.accepts(&content.attributes)) {
            return nothing(nth, text(&invalid.to_string()));
        }
        contents.push(content);
    }
    if ask.stop.why().is_some() {
        return wrong("it was stopped. Nothing was imported".to_owned());
    }
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut new = Vec::with_capacity(rows.len());
    for (nth, (row, content)) in rows.into_iter().zip(contents).enumerate() {
        let (date, zone) = row.date.unwrap_or((ask.now, zone));
        let parent = row.parent.and_then(|parent| places.get(&parent).copied());
        new.push((NewEntry { book: ask.book.name.clone(), parent: None, content, date: Some(date), zone }, parent));
        row.id.map(|id| places.insert(id, nth));
    }
    let count = match ask.site.store().post_all(new, ask.by()) {
        Ok(posted) => posted.len(),
        Err(error) => {
            let status = ask.failed(&error).status();
            let why = if status.is_server_error() { "the logbook's store failed".to_owned() } else { error.to_string() };
            let mut answer = layout::error(ask, status, &format!("Error: {why}. Nothing was imported"));
            if status.is_server_error() {
                answer.extensions_mut().insert(Failure(error.to_string()));
            }
            return Ok(answer);
        }
    };
    let mut body = String::new();
    put!(&mut body, "<p class=\"dlgframe\">{} entries imported. <a href=\"./\">To the list</a></p>\n", count);
    Ok(Page::new(ask, "Import", body).answer(StatusCode::OK))
}

fn escaped(text: &str) -> String {
    let mut html = String::new();
    put!(&mut html, "{}", text);
    html
}

fn content(ask: &BookAsk<'_>, row: &Row) -> Result<Content, Wrong> {
    let form = Form { fields: row.fields.clone(), files: Vec::new() };
    let reading = Reading {
        form: &form,
        book: &ask.book,
        settings: &ask.settings,
        zone: &ask.site.config.zone,
        occasion: Occasion::New,
        by_page: false,
        old: None,
    };
    reading.content(false)
}

/// The lines of a table, the first of which names the columns. `zone` is that of dates without one; or why it is no table.
pub fn csv(text: &str, zone: i16) -> Result<Vec<Row>, String> {
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
        let mut row = Row::default();
        for (name, value) in names.iter().zip(line) {
            match name.to_ascii_lowercase().as_str() {
                "message id" => row.id = value.trim().parse().ok(),
                "date" => row.dated(&value, zone),
                _ => row.fields.push(((*name).to_owned(), value)),
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

/// A date as ELOG's files have it; in its tables, a blank stands for the comma.
fn when(text: &str, zone: i16) -> Option<(Time, i16)> {
    let text = text.trim();
    let with_comma = match (text.get(..3), text.get(3..5)) {
        (Some(day), Some("  ")) => format!("{day}, {}", &text[5..]),
        _ => text.to_owned(),
    };
    date::parse(&with_comma, zone)
}

/// The values of a table, line by line, with the lines' numbers; lines without any are left out.
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

/// The entries of an `<ELOG_LIST>`, or why it is none.
pub fn xml(text: &str, zone: i16) -> Result<Vec<Row>, String> {
    let mut reader = Reader::from_str(text);
    let (mut rows, mut row, mut value): (Vec<Row>, Option<Row>, Option<(String, String)>) = (Vec::new(), None, None);
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
                    (None, _) if name == "ENTRY" => row = Some(Row::default()),
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
                let meant = resolved(&entity).ok_or_else(|| bad(&"an entity that XML does not have"))?;
                if let Some((_, value)) = &mut value {
                    value.push(meant);
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

/// What a reference stands for; entities of a file's own stand for nothing.
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

impl Row {
    /// Without a date an entry is of now; what cannot be read as one is none.
    fn dated(&mut self, text: &str, zone: i16) {
        self.date = when(text, zone);
        self.bad_date =
            Some(text.trim().chars().take(40).collect()).filter(|bad: &String| self.date.is_none() && !bad.is_empty());
    }

    fn element(&mut self, name: &str, value: String, zone: i16) {
        match name {
            "MID" => self.id = value.trim().parse().ok(),
            "DATE" => self.dated(&value, zone),
            "IN_REPLY_TO" => self.parent = value.trim().parse().ok(),
            "REPLY_TO" | "ATTACHMENT" => {}
            "ENCODING" => self.fields.push(("encoding".to_owned(), value)),
            "TEXT" => self.fields.push(("Text".to_owned(), value)),
            name => {
                // A time is there as it is read and, behind that, as it is kept.
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
            0,
        )
        .unwrap();
        assert_eq!((rows[0].id, rows[0].date.unwrap().1, rows.len()), (Some(7), 120, 2));
        assert_eq!(rows[0].fields, [("Author".to_owned(), "Zoe \"Q\"".to_owned()), ("Text".to_owned(), "a;b\nc".to_owned())]);
        assert_eq!(rows[1].fields, [("Author".to_owned(), "Max".to_owned())]);
        assert!(csv("A,B\n1,2,3\n", 0).unwrap_err().contains("line 2"));
        assert!(csv("A\n1\n\"open\n", 0).unwrap_err().contains("line 3"));
        assert_eq!(csv("", 0), Ok(vec![]));
    }

    #[test]
    fn lists_are_read_as_they_are_written() {
        let text = "<?xml version=\"1.0\"?>\n<ELOG_LIST><ENTRY><MID>3</MID><DATE>Wed, 10 Sep 2008 00:40:00 +0200</DATE>\
            <IN_REPLY_TO>2</IN_REPLY_TO><ENCODING>HTML</ENCODING><Run_number>1</Run_number><When>2008 [1221000000]</When><_2nd>x [y]</_2nd>\
            <TEXT>a &lt;b&gt; &#13;<![CDATA[<c>]]></TEXT></ENTRY></ELOG_LIST>";
        let rows = xml(text, 0).unwrap();
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
            assert!(xml(text, 0).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn a_file_is_bounded_while_it_is_read() {
        let most = 20_000;
        let table = |lines: usize| format!("A\n{}", "x\n".repeat(lines));
        assert_eq!(csv(&table(most), 0).map(|rows| rows.len()), Ok(most));
        assert_eq!(csv(table(most).trim_end(), 0).map(|rows| rows.len()), Ok(most));
        for text in [table(most + 1), format!("{}x", table(most))] {
            assert_eq!(csv(&text, 0), Err("more than 20000 entries".to_owned()));
        }
        assert_eq!(csv(&format!("A\n{}x\n", "\n".repeat(1 << 20)), 0).map(|rows| rows.len()), Ok(1), "empty lines are none");
        let wide = format!("{}\n", "A,".repeat(999));
        for text in [",".repeat(1_100_000), wide.clone() + &format!("x{}\n", ",".repeat(999)).repeat(1001)] {
            assert_eq!(csv(&text, 0), Err("more than 1000000 values".to_owned()));
        }
        assert!(csv(&format!("{}\nx\n", "A".repeat(201)), 0).unwrap_err().contains("201 bytes"));
        let list = |entries: usize| format!("<ELOG_LIST>{}</ELOG_LIST>", "<ENTRY></ENTRY>".repeat(entries));
        assert_eq!(xml(&list(most), 0).map(|rows| rows.len()), Ok(most));
        assert_eq!(xml(&list(most + 1), 0), Err("more than 20000 entries".to_owned()));
        let values = format!("<ELOG_LIST><ENTRY>{}</ENTRY></ELOG_LIST>", "<A></A>".repeat(1_000_001));
        assert_eq!(xml(&values, 0), Err("more than 1000000 values".to_owned()));
        assert!(
            xml(&format!("<ELOG_LIST><ENTRY><{0}>x</{0}></ENTRY></ELOG_LIST>", "A".repeat(201)), 0)
                .unwrap_err()
                .contains("201 bytes")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\"|;|,|\n|\r|a|<ENTRY>|</ENTRY>|<A>|</A>|&amp;|&#65;|\\[1\\]){0,40}") {
            let _ = (csv(&text, 0), xml(&text, 0));
        }
    }
}
