//! Tests of the printed bytes.

use std::time::{Duration, Instant};

use tampu_ring::Thread;
use tampu_text::{Rendered, Site, memory::Memory, statement};
use tampu_types::{Datum, Incarnation, Level, LogRecord, RecordId, Time};

use super::*;

const LIFE: Incarnation = Incarnation { boot: 1, pid: 2, start: 3 };
const TIME: Time = Time(1_107_271_989_592_400_000);

fn printed(format: Format, print: impl FnOnce(&mut Printer)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let mut printer = Printer::new(&Output::File(path.clone()), format, LIFE);
    print(&mut printer);
    assert_eq!(printer.flush(), 0);
    std::fs::read_to_string(path).unwrap()
}

/// Prints the calls of a memory in the name of a mount.
fn calls(format: Format, memory: &Memory) -> String {
    let fields = LoggerFields {
        logger: "mount".into(),
        source_object: "CONTROL/DV01/Mount".into(),
        array: "A1".into(),
        ..LoggerFields::default()
    };
    printed(format, |printer| {
        let lead = printer.lead(Level::Warning, &fields);
        for (number, call) in memory.calls().iter().enumerate() {
            let mut rendered = Rendered::default();
            rendered.render(&call.site, &call.payload).unwrap();
            let site = Site { file: "Mount.rs".into(), line: 52, routine: "slew".into(), ..call.site.clone() };
            let called = Called {
                time: Time(TIME.0 + number as i64 * 1_000_000),
                ring: 4,
                number: number as u64,
                level: Level::Warning,
                site_id: number as u32 + 1,
                identity_id: 2,
                site: &site,
                fields: &fields,
                thread: &Thread::NOBODY,
                rendered: &rendered,
                host: "te1",
                process: "CONTROL/DV01",
            };
            printer.call(&called, &lead);
        }
    })
}

fn two_calls() -> Memory {
    let memory = Memory::default();
    statement!(6, memory, "az {:.2} of\n{}", 269.915, "DV01\u{1b}[2J"; axis = "a=z", note = "two words");
    statement!(6, memory, "cable <wrap> ]]> & \"limit\"");
    memory
}

#[test]
fn plain_lines() {
    assert_eq!(
        calls(Format::Plain, &two_calls()),
        "2005-02-01T15:33:09.592 Warning   CONTROL/DV01/Mount: az 269.92 of\\nDV01\\u{1b}[2J axis=a=z note=two words\n\
         2005-02-01T15:33:09.593 Warning   CONTROL/DV01/Mount: cable <wrap> ]]> & \"limit\"\n"
    );
    // A file is not a terminal.
    assert_eq!(calls(Format::Auto, &two_calls()), calls(Format::Plain, &two_calls()));
}

#[test]
fn coloured_lines() {
    assert_eq!(
        calls(Format::Colour, &two_calls()),
        "\x1b[2m2005-02-01T15:33:09.592\x1b[0m \x1b[33mWarning  \x1b[0m CONTROL/DV01/Mount: \
         az 269.92 of\\nDV01\\u{1b}[2J\x1b[2m axis=a=z note=two words\x1b[0m\n\
         \x1b[2m2005-02-01T15:33:09.593\x1b[0m \x1b[33mWarning  \x1b[0m CONTROL/DV01/Mount: cable <wrap> ]]> & \"limit\"\n"
    );
}

#[test]
fn json_lines() {
    let id = |number| format!("{{\"incarnation\":\"{LIFE}\",\"ring\":4,\"number\":{number}}}");
    let (first, second) = (id(0), id(1));
    assert_eq!(
        calls(Format::Json, &two_calls()),
        format!(
            "{{\"id\":{first},\"time\":\"2005-02-01T15:33:09.592400000Z\",\"level\":\"Warning\",\
             \"message\":\"az 269.92 of\\nDV01\\u001b[2J\",\"logger\":\"mount\",\"file\":\"Mount.rs\",\"line\":52,\
             \"routine\":\"slew\",\"host\":\"te1\",\"process\":\"CONTROL/DV01\",\"thread\":\"thread-0\",\
             \"source_object\":\"CONTROL/DV01/Mount\",\"array\":\"A1\",\
             \"data\":[{{\"name\":\"axis\",\"value\":\"a=z\"}},{{\"name\":\"note\",\"value\":\"two words\"}}]}}\n\
             {{\"id\":{second},\"time\":\"2005-02-01T15:33:09.593400000Z\",\"level\":\"Warning\",\
             \"message\":\"cable <wrap> ]]> & \\\"limit\\\"\",\"logger\":\"mount\",\"file\":\"Mount.rs\",\"line\":52,\
             \"routine\":\"slew\",\"host\":\"te1\",\"process\":\"CONTROL/DV01\",\"thread\":\"thread-0\",\
             \"source_object\":\"CONTROL/DV01/Mount\",\"array\":\"A1\"}}\n"
        )
    );
}

#[test]
fn acs_xml_lines() {
    let id = RecordId { incarnation: LIFE, ring: 4, number: 0 };
    let second = RecordId { number: 1, ..id };
    let attributes = "File=\"Mount.rs\" Line=\"52\" Routine=\"slew\" Host=\"te1\" Process=\"CONTROL/DV01\" Thread=\"thread-0\" \
                      SourceObject=\"CONTROL/DV01/Mount\" Array=\"A1\"";
    assert_eq!(
        calls(Format::Xml, &two_calls()),
        format!(
            "<Warning Escapes=\"backslash\" TimeStamp=\"2005-02-01T15:33:09.592\" {attributes} RecordId=\"{id}\">\
             <![CDATA[az 269.92 of]]>&#10;<![CDATA[DV01\\x1b[2J]]><Data Name=\"logName\"><![CDATA[mount]]></Data>\
             <Data Name=\"axis\"><![CDATA[a=z]]></Data><Data Name=\"note\"><![CDATA[two words]]></Data></Warning>\n\
             <Warning TimeStamp=\"2005-02-01T15:33:09.593\" {attributes} RecordId=\"{second}\">\
             <![CDATA[cable <wrap> ]]]]><![CDATA[> & \"limit\"]]><Data Name=\"logName\"><![CDATA[mount]]></Data></Warning>\n"
        )
    );
}

#[test]
fn records_made_by_hand_look_like_the_others() {
    let mut record = LogRecord::new(Level::Error, "no\tlock");
    (record.time, record.logger) = (TIME, "lo".into());
    record.data.push(Datum::new("tries", "60"));
    let as_format = |format| printed(format, |printer| printer.record(&record));
    assert_eq!(as_format(Format::Plain), "2005-02-01T15:33:09.592 Error     lo: no\\tlock tries=60\n");
    assert!(as_format(Format::Colour).contains("\x1b[31mError    \x1b[0m lo: no\\tlock\x1b[2m tries=60\x1b[0m\n"));
    assert_eq!(serde_json::from_str::<LogRecord>(&as_format(Format::Json)).unwrap(), record);
    assert!(as_format(Format::Xml).starts_with("<Error TimeStamp=\"2005-02-01T15:33:09.592\"><![CDATA[no\tlock]]>"));
}

#[test]
fn much_is_written_before_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let mut printer = Printer::new(&Output::File(path.clone()), Format::Plain, LIFE);
    let record = LogRecord::new(Level::Info, "x".repeat(WRITE_AT / 2));
    printer.record(&record);
    assert!(!path.exists(), "one write for many records");
    printer.record(&record);
    assert!(std::fs::metadata(&path).unwrap().len() > WRITE_AT as u64);
    assert!(printer.text.is_empty());
}

#[test]
fn a_file_that_was_moved_is_made_again_and_what_follows_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let (path, moved) = (dir.path().join("log"), dir.path().join("log.1"));
    let mut sink = Sink::new(Output::File(path.clone()));
    let begin = Instant::now();
    sink.write(b"one\n", begin).unwrap();
    std::fs::rename(&path, &moved).unwrap();
    sink.write(b"two\n", begin + Duration::from_millis(10)).unwrap();
    sink.write(b"three\n", begin + Duration::from_secs(2)).unwrap();
    std::fs::remove_file(&path).unwrap();
    sink.write(b"four\n", begin + Duration::from_secs(4)).unwrap();
    assert_eq!(std::fs::read_to_string(moved).unwrap(), "one\ntwo\n");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "four\n");
}

#[test]
fn what_cannot_be_written_is_counted_and_told_when_it_begins_when_it_ends_and_at_last() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sub/log");
    let mut printer = Printer::new(&Output::File(path.clone()), Format::Plain, LIFE);
    let record = LogRecord::new(Level::Info, "x");
    printer.record(&record);
    assert_eq!((printer.flush(), printer.flush()), (1, 0));
    let told = printer.take_unprinted(false).unwrap();
    assert_eq!((told.records, told.to.as_str()), (1, path.to_str().unwrap()));
    assert!(told.why.contains("No such file"), "{}", told.why);
    printer.record(&record);
    printer.record(&record);
    assert_eq!(printer.flush(), 2);
    assert_eq!(printer.take_unprinted(false), None, "it is known");
    assert_eq!(printer.take_unprinted(true).unwrap().records, 2);

    printer.record(&record);
    printer.flush();
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    printer.sink.looked = None;
    printer.record(&record);
    assert_eq!(printer.flush(), 0);
    assert_eq!(printer.take_unprinted(false).unwrap().records, 1);
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 1);
}

#[test]
fn a_full_disk_tears_no_line_of_what_follows() {
    let mut sink = Sink::new(Output::File("/dev/full".into()));
    let error = sink.write(b"one\n", Instant::now()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::NOSPC.raw_os_error()));
    assert!(!sink.is_well());
    sink.torn = true;
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join("log")).unwrap();
    let mut torn = true;
    sink::put(std::os::fd::AsFd::as_fd(&file), b"two\n", &mut torn, Instant::now()).unwrap();
    assert_eq!((std::fs::read(dir.path().join("log")).unwrap(), torn), (b"\ntwo\n".to_vec(), false));
}

#[test]
fn places_and_formats_are_read_and_slips_are_told() {
    assert_eq!("stdout".parse(), Ok(Output::Stdout));
    assert_eq!("./log".parse(), Ok(Output::File("./log".into())));
    assert_eq!(
        "stdot".parse::<Output>().unwrap_err().to_string().split(" (").next(),
        Some("invalid place for local output 'stdot'")
    );
    for format in [Format::Auto, Format::Plain, Format::Colour, Format::Json, Format::Xml] {
        assert_eq!(format.name().parse(), Ok(format));
    }
    assert_eq!("color".parse(), Ok(Format::Colour));
    assert!("yaml".parse::<Format>().unwrap_err().to_string().contains("auto, plain, colour, json, xml"));
}

#[test]
fn no_color_and_a_dumb_terminal_are_heeded() {
    let with = |name: &'static str, value: &'static str| colour_is_welcome(|asked| (asked == name).then(|| value.into()));
    assert!(with("TERM", "xterm") && with("NO_COLOR", ""));
    assert!(!with("NO_COLOR", "1") && !with("TERM", "dumb"));
}
