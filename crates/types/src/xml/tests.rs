use std::io::Read;

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{BadRecord, Datum, Level, LogRecord, Time, arbitrary};

fn read(file: impl AsRef<[u8]>) -> Vec<Result<LogRecord, BadRecord>> {
    AcsXmlReader::new(file.as_ref(), "f").collect()
}

fn one(record: &str) -> LogRecord {
    let mut all = read(record);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).unwrap()
}

fn messages(file: impl AsRef<[u8]>) -> Vec<String> {
    read(file)
        .into_iter()
        .map(|record| record.map_or_else(|bad| format!("{}: {}", bad.line, bad.reason), |record| record.message))
        .collect()
}

fn written(records: &[LogRecord], options: AcsXmlOptions) -> String {
    let mut writer = AcsXmlWriter::new(Vec::new(), "NameForXmlDocument", options).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

const T: &str = "TimeStamp=\"2005-02-01T15:33:09.592\"";

#[test]
fn every_attribute_has_its_field() {
    let record = one(&format!(
        r#"<Warning {T} File="a.cpp" Line="12" Routine="r::{{s}}" Host="te1" Process="p" Thread="t" Context="c" SourceObject="CONTROL/DV01"
        Audience="Operator, SciLog" Array="A1" Antenna="DV01" StackId="s-1" StackLevel="0" LogId="204" URI="http://x/?a=1&amp;b=2" RunId="run 7"
        TraceId="0102030405060708090a0b0c0d0e0f10" SpanId="0102030405060708" RecordId="00000001-00000002-0000000000000003.4.5"
        Received="2005-02-01T15:33:10.000000001" Custom="kept"><![CDATA[m]]><Data Name="LoggedException"><![CDATA[e]]></Data><Data
        Name="logName">alma.mount</Data><Data Name="empty"><![CDATA[N/A]]></Data></Warning>"#
    ));
    assert_eq!(
        serde_json::to_value(&record).unwrap(),
        serde_json::json!({
            "id": {"incarnation": "00000001-00000002-0000000000000003", "ring": 4, "number": 5},
            "time": "2005-02-01T15:33:09.592000000Z", "received": "2005-02-01T15:33:10.000000001Z", "level": "Warning", "message": "m",
            "logger": "alma.mount", "file": "a.cpp", "line": 12, "routine": "r::{s}", "host": "te1", "process": "p", "thread": "t",
            "context": "c", "source_object": "CONTROL/DV01", "audiences": ["Operator", "SciLog"], "array": "A1", "antenna": "DV01",
            "stack_id": "s-1", "stack_level": 0, "log_id": "204", "uri": "http://x/?a=1&b=2", "run_id": "run 7",
            "trace_id": "0102030405060708090a0b0c0d0e0f10", "span_id": "0102030405060708",
            "data": [{"name": "LoggedException", "value": "e"}, {"name": "empty", "value": ""}],
            "attributes": [{"name": "Custom", "value": "kept"}],
        })
    );
}

#[test]
fn bodies_of_all_kinds() {
    for (body, message) in [
        ("<![CDATA[ a <b> & c ]]>", " a <b> & c "),
        ("plain &lt;text&gt; &#65; & more", "plain <text> A & more"),
        ("\n   laid out\n   <Data Name=\"n\">v</Data>\n", "laid out"),
        ("\n  <![CDATA[one]]>\n", "one"),
        ("<![CDATA[one]]><![CDATA[ two]]>", "one two"),
        ("before <x:b c=\"1\">bold</x:b><br/> after", "before <x:b c=\"1\">bold</x:b><br/> after"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("", ""),
    ] {
        assert_eq!(one(&format!("<Info {T}>{body}</Info>")).message, message, "{body}");
    }
}

#[test]
fn roots_headers_and_namespaces() {
    let file = format!(
        "\u{feff}<?xml version='1.0' encoding='UTF-8'?>\n<!DOCTYPE Log [<!ELEMENT Log ANY>]>\n<!-- c -->\n\
         <log:Log xmlns:log=\"urn:schemas-cosylab-com:logging:1.0\">\n<log:Header Name=\"n\" Type=\"LOGFILE\"><log:Description>words\n\
         </log:Description></log:Header>\n<log:Delouse {T} xmlns:a=\"b\"><log:Data Name=\"n\">é</log:Data></log:Delouse>\n</log:Log>\n\
         <?xml version='1.0'?><Log><Header Name='x' Type='y'/><Info {T}/></Log>"
    );
    let records: Vec<_> = read(file).into_iter().map(Result::unwrap).collect();
    assert_eq!(records[0].level, Level::Delouse);
    assert_eq!(records[0].data, [Datum::new("n", "é")]);
    assert_eq!(records[0].attributes, []);
    assert_eq!(records.len(), 2);
    assert_eq!(read(format!("<Info {T}/>\n<Trace {T}/>")).len(), 2);
}

#[test]
fn latin_1_by_declaration() {
    let mut file = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><Log><Info Host=\"\xe9\" ".to_vec();
    file.extend_from_slice(T.as_bytes());
    file.extend_from_slice(b">25 \xb0C</Info></Log>");
    let record = read(&file).remove(0).unwrap();
    assert_eq!((&*record.host, &*record.message), ("é", "25 °C"));
    let undeclared = file.split_off(43);
    assert_eq!(messages(undeclared)[0], "1: invalid UTF-8 12 bytes behind its start");
    let other = format!("<?xml version='1.0' encoding='KOI8-R'?><Log><Info {T}>a</Info></Log>");
    assert!(messages(&other)[0].starts_with("1: the encoding 'koi8-r' is not known"), "{:?}", messages(&other));
    assert_eq!(messages(&other)[1], "a");
}

#[test]
fn priority_overrides_the_element() {
    let record = one(&format!("<Info {T} Priority=\"8\"/>"));
    assert_eq!((record.level, record.priority), (Level::Error, None));
    assert!(
        written(&[record], AcsXmlOptions::default()).contains("<Info TimeStamp=\"2005-02-01T15:33:09.592\" Priority=\"8\" />")
    );
    let record = one(&format!("<Error {T} Priority=\"7\"/>"));
    assert_eq!((record.level, record.priority), (Level::Error, Some(7)));
    for number in ["0", "12", "99", "300", "high"] {
        let reason = format!("1: the Priority '{number}' is not a level (1 to 11)");
        assert_eq!(messages(format!("<Info {T} Priority=\"{number}\"/>")), [reason]);
    }
    let archive = one(&format!("<Archive {T} Object=\"o\" Parameter=\"p\" Type=\"double\">1.5</Archive>"));
    assert_eq!(archive.level, Level::Info);
    let archive = archive.archive.unwrap();
    assert_eq!((&*archive.object, &*archive.parameter, &*archive.r#type), ("o", "p", "double"));
}

#[test]
fn what_cannot_be_a_number_is_kept_as_it_is() {
    let record = one(&format!("<Info {T} Line=\"twelve\" StackLevel=\"\" TraceId=\"xyz\" Uri=\"a\" URI=\"b\"/>"));
    assert_eq!((record.line, record.stack_level, &*record.uri), (None, None, "a"));
    let kept = [Datum::new("Line", "twelve"), Datum::new("TraceId", "xyz"), Datum::new("URI", "b")];
    assert_eq!(record.attributes, kept);
}

#[test]
fn a_broken_record_does_not_hide_the_next() {
    let good = format!("<Info {T}><![CDATA[good]]></Info>");
    for (bad, reason) in [
        ("<Info Host=\"h\">x</Info>", "it has no TimeStamp"),
        (&*format!("<Info {T}>x"), "it is not closed before the next record begins"),
        (&*format!("<Info {T}><b>x</Info>"), "it is not closed before the next record begins"),
        (&*format!("<Info {T}>x</Warning>"), "XML that is not well-formed"),
        (&*format!("<Info {T}><b>x</c></Info>"), "XML that is not well-formed"),
        (&*format!("<Info {T}>1 < 2</Info>"), "a '<' begins no tag"),
        (&*format!("<Info {T} Host=\"h>x</Info>"), "the value of an attribute is not closed"),
        (&*format!("<Info {T} Host=h>x</Info>"), "XML that is not well-formed"),
        (&*format!("<Info {T} Host=\"h\"\n"), "a tag is not closed"),
        (&*format!("<Info {T} Host=\"a\" Host=\"b\"/>"), "the attribute Host is there twice"),
        (&*format!("<Info {T} X=\"a\" X=\"b\"/>"), "the attribute X is there twice"),
        (&*format!("<Info {T}><![CDATA[x</Info>"), "a CDATA section is not closed"),
        (&*format!("<Info {T}>x\0</Info>"), "a zero byte"),
        (&*format!("<Fatal {T}>x</Fatal>"), "'Fatal' is not a level"),
        ("<Info TimeStamp=\"2005-02-31T00:00:00.000\"/>", "the TimeStamp '2005-02-31T00:00:00.000' is not a time"),
        ("\0\0\0\0", "text outside of any record"),
        ("<Foo><bar/></Foo>", "not a record: \"<Foo>\""),
        ("</Info>", "not a record"),
        ("<![CDATA[x]]>", "not a record"),
    ] {
        let file = format!("<Log>\n{good}\n{bad}\n{good}\n{good}\n</Log>\n");
        let told = messages(&file);
        assert_eq!(told.len(), 4, "{bad}: {told:?}");
        assert!(told[1].starts_with(&format!("3: {reason}")), "{bad}: {told:?}");
        assert_eq!([&told[0], &told[2], &told[3]], ["good"; 3], "{bad}");

        // The same at the end of the file.
        let told = messages(format!("<Log>\n{good}\n{bad}"));
        assert_eq!(told.len(), 2, "{bad}: {told:?}");
        assert!(told[1].starts_with("3: "), "{bad}: {told:?}");
    }
    let unterminated = format!("<Log>\n<Info {T}><![CDATA[x</Info>\n<Trace {T}>plain</Trace>\n</Log>");
    assert_eq!(messages(unterminated), ["2: the file ends here: a CDATA section is not closed", "plain"]);
}

#[test]
fn invalid_utf_8_is_told_with_its_line() {
    let mut file = format!("<Log>\n\n<Info {T}>a\n</Info>\n<Info {T}>").into_bytes();
    file.extend_from_slice(b"\xff\xfe</Info><Info ");
    file.extend_from_slice(format!("{T}>b</Info>").as_bytes());
    let told = messages(file);
    assert_eq!((&*told[0], &*told[2]), ("a", "b"));
    assert!(told[1].starts_with("5: invalid UTF-8 "), "{told:?}");
}

/// Gives one byte at a time, and then an error.
struct Dripping<'a>(&'a [u8]);

impl Read for Dripping<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let Some((first, rest)) = self.0.split_first() else { return Err(std::io::Error::other("cable cut")) };
        (out[0], self.0) = (*first, rest);
        Ok(1)
    }
}

#[test]
fn a_read_error_comes_after_what_was_read() {
    let file = format!("<Log>\n<Info {T}>a</Info>\n<Info {T}>b</In");
    let read: Vec<_> = AcsXmlReader::new(Dripping(file.as_bytes()), "f").collect();
    assert_eq!(read[0].as_ref().unwrap().message, "a");
    assert_eq!(read[1].as_ref().unwrap_err().to_string(), "f:3: the file ends here: an end tag is not closed");
    assert_eq!(read[2].as_ref().unwrap_err().to_string(), "f:3: reading stopped here: cable cut");
    assert_eq!(read.len(), 3);
}

#[test]
fn a_message_of_ten_megabytes() {
    let long = "0123456789abcde\n".repeat(10 << 16);
    let file = format!("<Log><Info {T}><![CDATA[{long}]]></Info><Info {T}>after</Info></Log>");
    assert_eq!(messages(file), [&*long, "after"]);
}

#[test]
fn a_hostile_file_takes_no_more_than_a_few_looks() {
    // Each start hides the rest of the file; without a bound, the time would grow with the square of the length.
    for part in [format!("<Info {T}><![CDATA["), format!("<Info {T}/><!-- ")] {
        let told = messages(part.repeat(10_000));
        assert!(told.iter().any(|told| told.contains("bytes are skipped with it")), "{}", told.len());
    }
}

#[test]
fn strange_texts_are_readable_in_the_file() {
    let mut record = LogRecord::new(Level::Info, "bell \u{7} and C:\\temp");
    record.audiences = vec!["a,b".into(), "c".into()];
    record.data = vec![Datum::new("literal", "N/A"), Datum::new("empty", "")];
    record.attributes = vec![Datum::new("two words", "x")];
    let text = written(std::slice::from_ref(&record), AcsXmlOptions::default());
    assert!(text.contains(
        "<Info Escapes=\"backslash\" TimeStamp=\"1970-01-01T00:00:00.000\" Audience=\"a\\x2cb,c\"><![CDATA[bell \\x07 and C:\\\\temp]]>\
         <Attribute Name=\"two words\"><![CDATA[x]]></Attribute><Data Name=\"literal\"><![CDATA[\\x4e/A]]></Data>\
         <Data Name=\"empty\"><![CDATA[N/A]]></Data></Info>"
    ), "{text}");
    assert_eq!(read(text)[0].as_ref().unwrap(), &record);
}

proptest! {
    #[test]
    fn records_written_and_read_are_the_same(records in vec(arbitrary::record(), 0..6), one_line: bool) {
        let options = AcsXmlOptions { nanoseconds: true, identity: true, received: true, one_line };
        let text = written(&records, options);
        // Declaration, root, header, footer.
        prop_assert!(!one_line || text.lines().count() == records.len() + 4, "{}", text);
        let expected: Vec<_> = records.into_iter().map(|mut record| {
            record.id = record.id.filter(|id| id.incarnation != Default::default());
            Ok(record)
        }).collect();
        prop_assert_eq!(read(text), expected);
    }

    #[test]
    fn acs_times_are_rounded_once(record in arbitrary::record()) {
        let options = AcsXmlOptions { nanoseconds: false, identity: false, received: false, one_line: false };
        let text = written(std::slice::from_ref(&record), options);
        let again: Vec<_> = read(&text).into_iter().map(Result::unwrap).collect();
        let expected = LogRecord { time: record.time.rounded_to_ms(), id: None, received: None, ..record };
        prop_assert_eq!(&again, &[expected]);
        prop_assert_eq!(written(&again, options), text);
    }

    #[test]
    fn garbled_files_are_told_never_panic(
        records in vec(arbitrary::record(), 1..4), changes in vec((any::<usize>(), any::<u8>()), 1..8), cut in any::<usize>()
    ) {
        let mut file = written(&records, AcsXmlOptions::default()).into_bytes();
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        file.truncate(file.len() - cut % 64);
        read(file);
    }

    #[test]
    fn a_garbled_record_leaves_the_others(text in arbitrary::text(), at in 0usize..200) {
        // One byte of the middle record is replaced; only that record may be damaged.
        let record = |message: &str| LogRecord { time: Time(1_000_000), ..LogRecord::new(Level::Info, message) };
        let mut middle = String::new();
        write_record(&mut middle, &record(&text), AcsXmlOptions::default());
        let at = at % middle.len();
        let mut file = format!("<Log>\n<Info {T}>first</Info>\n").into_bytes();
        let start = file.len();
        file.extend_from_slice(middle.as_bytes());
        file[start + at] = b'#';
        file.extend_from_slice(format!("\n<Info {T}>last</Info>\n</Log>").as_bytes());
        let told = messages(file);
        prop_assert_eq!(&told[0], "first");
        prop_assert_eq!(told.last().map(String::as_str), Some("last"));
    }
}
