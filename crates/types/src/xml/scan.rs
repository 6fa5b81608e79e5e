//! Boundaries of records in a stream of bytes, for any errors inside the records.
//!
//! The scan works on bytes, as both encodings write markup in ASCII. It reads only the XML that is needed to find a
//! record's end: tags, quotes, CDATA, comments. The parser decides whether the record is well-formed.

use std::sync::LazyLock;

use memchr::{memchr, memchr2, memchr3, memmem::Finder};

use crate::level::Level;

// Made once: preparing a search costs more than most searches.
static CDATA: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("<![CDATA["));
static CDATA_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("]]>"));
static COMMENT_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("-->"));
static SUBSET_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("]>"));
static INSTRUCTION_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("?>"));
static TIME_STAMP: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("TimeStamp"));

/// Kind of the markup at a `<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Characters between `<![CDATA[` and `]]>`.
    CData,
    /// A comment or a declaration: `<!--...-->`, `<!...>`.
    Other,
    /// A processing instruction: `<?...?>`.
    Instruction,
    /// An opening tag: `<name ...>`.
    Open,
    /// An empty element: `<name .../>`.
    Empty,
    /// A closing tag: `</name>`.
    Close,
}

/// One piece of markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Markup {
    /// Kind of the markup.
    pub kind: Kind,
    /// End of the markup in bytes.
    pub end: usize,
}

/// Reason for which no markup could be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// More bytes are needed; at the end of the file, this is the error.
    More(&'static str),
    /// Invalid markup, with the error.
    Broken(&'static str),
}

/// Takes the markup at `at`, where a `<` stands.
pub fn markup(bytes: &[u8], at: usize) -> Result<Markup, Stop> {
    let rest = &bytes[at..];
    let until = |from: usize, end: &Finder<'_>, kind: Kind, open: &'static str| {
        let found = rest.get(from..).and_then(|rest| end.find(rest)).ok_or(Stop::More(open))?;
        Ok(Markup { kind, end: at + from + found + end.needle().len() })
    };
    match rest {
        [_] => Err(Stop::More("a tag is not closed")),
        [_, b'!', ..] if rest.starts_with(b"<![CDATA[") => until(9, &CDATA_END, Kind::CData, "a CDATA section is not closed"),
        [_, b'!', ..] if b"<![CDATA[".starts_with(rest) || b"<!--".starts_with(rest) => Err(Stop::More("a tag is not closed")),
        [_, b'!', b'-', b'-', ..] => until(4, &COMMENT_END, Kind::Other, "a comment is not closed"),
        // A document type's internal subset holds declarations between brackets. No known log contains one, and none is used.
        [_, b'!', ..] => {
            let bracket = memchr2(b'[', b'>', rest).ok_or(Stop::More("a declaration is not closed"))?;
            if rest[bracket] == b'>' {
                return Ok(Markup { kind: Kind::Other, end: at + bracket + 1 });
            }
            until(bracket, &SUBSET_END, Kind::Other, "a declaration is not closed")
        }
        [_, b'?', ..] => until(2, &INSTRUCTION_END, Kind::Instruction, "a processing instruction is not closed"),
        [_, b'/', ..] => match memchr2(b'>', b'<', &rest[1..]) {
            Some(end) if rest[end + 1] == b'>' => Ok(Markup { kind: Kind::Close, end: at + end + 2 }),
            Some(_) => Err(Stop::Broken("an end tag is not closed")),
            None => Err(Stop::More("an end tag is not closed")),
        },
        [_, first, ..] if first.is_ascii_alphabetic() || matches!(first, b'_' | b':' | 0x80..) => open_tag(bytes, at),
        _ => Err(Stop::Broken("a '<' begins no tag (in text it is written &lt;)")),
    }
}

fn open_tag(bytes: &[u8], at: usize) -> Result<Markup, Stop> {
    const OPEN: &str = "a tag is not closed";
    let mut place = at + 1;
    loop {
        // Almost every file uses one of the two quotes: the other is searched only in the text between.
        let found = memchr3(b'"', b'>', b'<', &bytes[place..]).ok_or(Stop::More(OPEN));
        let between = &bytes[place..found.map_or(bytes.len(), |found| place + found)];
        if let Some(single) = memchr(b'\'', between) {
            place = closing_quote(bytes, place + single + 1, b'\'')? + 1;
            continue;
        }
        place += found?;
        match bytes[place] {
            b'>' if bytes[place - 1] == b'/' => return Ok(Markup { kind: Kind::Empty, end: place + 1 }),
            b'>' => return Ok(Markup { kind: Kind::Open, end: place + 1 }),
            b'<' => return Err(Stop::Broken(OPEN)),
            quote => place = closing_quote(bytes, place + 1, quote)? + 1,
        }
    }
}

/// Finds the closing quote. A `<` inside a value is invalid XML, but ACS's writers do not escape
/// (`Thread="<unnamed>"`). It is read as text unless the following bytes prove that the quote was never closed.
fn closing_quote(bytes: &[u8], from: usize, quote: u8) -> Result<usize, Stop> {
    const OPEN: &str = "the value of an attribute is not closed";
    let mut place = from;
    loop {
        let Some(found) = memchr2(quote, b'<', &bytes[place..]) else { return Err(Stop::More(OPEN)) };
        place += found;
        if bytes[place] == quote {
            return Ok(place);
        }
        let rest = &bytes[place..];
        // Long enough for every known name, unless the bytes end here.
        if rest.len() < 64 && memchr(quote, rest).is_none() {
            return Err(Stop::More(OPEN));
        }
        let closes = rest.starts_with(b"</") && Element::of(name(rest, 2)).is_some();
        if closes || rest.starts_with(b"<![CDATA[") || Element::of(name(rest, 1)).is_some() {
            return Err(Stop::Broken(OPEN));
        }
        place += 1;
    }
}

/// The name of the tag at the start of `tag`, behind `skip` bytes of markup.
pub fn name(tag: &[u8], skip: usize) -> &[u8] {
    let name = tag.get(skip..).unwrap_or_default();
    let end = name
        .iter()
        .position(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'/' | b'>' | b'<' | b'='))
        .unwrap_or(name.len());
    &name[..end]
}

/// Without its namespace prefix.
pub fn local(name: &[u8]) -> &[u8] {
    memchr(b':', name).map_or(name, |colon| &name[colon + 1..])
}

/// An element that is a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Named after its level.
    Level(Level),
    /// The `Archive` element of ACS.
    Archive,
}

impl Element {
    /// The record element of this name, prefixed or not.
    pub fn of(name: &[u8]) -> Option<Element> {
        let name = local(name);
        // Nearly every name is decided by its first letter and length.
        let level = match (name.first()?, name.len()) {
            (b'T', 5) => Level::Trace,
            (b'D', 7) => Level::Delouse,
            (b'D', 5) => Level::Debug,
            (b'I', 4) => Level::Info,
            (b'N', 6) => Level::Notice,
            (b'W', 7) => Level::Warning,
            (b'E', 5) => Level::Error,
            (b'C', 8) => Level::Critical,
            (b'A', 5) => Level::Alert,
            (b'E', 9) => Level::Emergency,
            (b'A', 7) => return (name == b"Archive").then_some(Element::Archive),
            _ => return None,
        };
        (level.name().as_bytes() == name).then_some(Element::Level(level))
    }
}

/// Returns true if this tag begins a record: its name is a record's and it has a time.
pub fn begins_record(tag: &[u8]) -> bool {
    Element::of(name(tag, 1)).is_some() && has_time(tag)
}

/// Returns true if the tag has a TimeStamp, the one attribute every record needs.
pub fn has_time(tag: &[u8]) -> bool {
    TIME_STAMP.find(tag).is_some()
}

/// Returns the end of the element that begins at `at`. An error has the position up to which bytes were read.
pub fn element_end(bytes: &[u8], at: usize) -> Result<usize, (Stop, usize)> {
    let mut depth = 0usize;
    let mut place = at;
    loop {
        let Markup { kind, end } = markup(bytes, place).map_err(|stop| (stop, place))?;
        match kind {
            Kind::Open | Kind::Empty if depth > 0 && begins_record(&bytes[place..end]) => {
                return Err((Stop::Broken("it is not closed before the next record begins"), place));
            }
            Kind::Open => depth += 1,
            Kind::Empty => {}
            Kind::Close if local(name(&bytes[place..end], 2)) == b"Log" => {
                return Err((Stop::Broken("it is not closed before the log ends"), place));
            }
            Kind::Close => depth = depth.saturating_sub(1),
            Kind::CData if swallows_record(&bytes[place + 9..end - 3]) => {
                return Err((Stop::Broken("a CDATA section is not closed"), place));
            }
            Kind::CData | Kind::Other | Kind::Instruction => {}
        }
        if depth == 0 {
            return Ok(end);
        }
        let text = memchr(b'<', &bytes[end..]).ok_or((Stop::More("it is not closed"), bytes.len()))?;
        place = end + text;
    }
}

/// Returns true if a CDATA section holds a record's start with another section's: then the outer one was not closed,
/// and ends where the inner one does. Our own writer never leaves these nine characters inside a section.
fn swallows_record(text: &[u8]) -> bool {
    CDATA.find_iter(text).any(|inner| {
        let tag = memchr::memrchr(b'<', &text[..inner]).map(|tag| &text[tag..inner]);
        tag.is_some_and(|tag| tag.ends_with(b">") && begins_record(tag))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(text: &str) -> Result<usize, (Stop, usize)> {
        element_end(text.as_bytes(), 0)
    }

    #[test]
    fn a_record_ends_where_xml_says() {
        for text in [
            r#"<Info TimeStamp="x"/>"#,
            r#"<Info a="1>2" b='"'/>"#,
            "<l:Info><![CDATA[</l:Info>]]></l:Info>",
            "<Info><!-- </Info> --><b/><c>d</c><?p </Info>?></Info>",
            "<Info a=\"<unnamed>\">text</Info>",
            "<Info><![CDATA[<Info TimeStamp='1'>quoted]]></Info>",
        ] {
            assert_eq!(ends(&format!("{text}<tail")), Ok(text.len()), "{text}");
        }
    }

    #[test]
    fn what_is_not_closed_is_seen() {
        for (text, why) in [
            ("<Info>a<Info TimeStamp='1'/>", "it is not closed before the next record begins"),
            ("<Info>a</Log>", "it is not closed before the log ends"),
            ("<Info a=\"1><Info TimeStamp='1'/>", "the value of an attribute is not closed"),
            ("<Info a='1'\n<Info TimeStamp='1'/>", "a tag is not closed"),
            ("<Info>1 < 2</Info>", "a '<' begins no tag (in text it is written &lt;)"),
            ("<Info><![CDATA[a</Info><Info TimeStamp='1'><![CDATA[b]]></Info>", "a CDATA section is not closed"),
        ] {
            let (stop, _) = ends(&format!("{text}{}", " ".repeat(64))).unwrap_err();
            assert_eq!(stop, Stop::Broken(why), "{text}");
        }
    }

    #[test]
    fn every_cut_asks_for_more_and_never_ends_early() {
        let text = "<Info a=\"1>2\" TimeStamp='x'><!-- c --><![CDATA[m]]><Data Name=\"n\">v</Data><?p i?><b/></Info>";
        for cut in 1..text.len() {
            assert!(matches!(ends(&text[..cut]), Err((Stop::More(_), _))), "{}", &text[..cut]);
        }
    }

    #[test]
    fn names_of_records() {
        for level in Level::ALL {
            assert_eq!(Element::of(format!("x:{level}").as_bytes()), Some(Element::Level(level)));
        }
        assert_eq!(Element::of(b"Archive"), Some(Element::Archive));
        for name in ["", "info", "Inform", "Errors", "Log", "Data", "Off"] {
            assert_eq!(Element::of(name.as_bytes()), None);
        }
    }
}
