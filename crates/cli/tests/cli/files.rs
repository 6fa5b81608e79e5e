//! Records from files and back.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

use crate::site::{Site, acs_file};

fn gz(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_same_file_twice_adds_nothing() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    // Two equal records of one file are two records.
    let text = acs_file(&["one", "two", "three"]).replace(
        "</Log>",
        "<Info TimeStamp=\"2005-02-01T15:33:00.592\" Host=\"te1\" Process=\"maci\"><![CDATA[one]]></Info>\n</Log>",
    );
    let plain = site.file("log.xml", &text);
    let compressed = site.file("log.xml.gz", gz(&text));
    assert_eq!(site.tampu(&["log", "import", &plain]).ok().out, "4 read, 4 new, 0 duplicates, 0 bad\n");
    let again = site.tampu(&["log", "import", "--json", &plain, &compressed]).ok().json().remove(0);
    assert_eq!(again, serde_json::json!({"files": 2, "read": 8, "new": 0, "duplicates": 8, "bad": 0}));
    assert_eq!(site.find(4, &["--process", "maci"]).len(), 4);
    let counts = site.tampu(&["log", "stat", "--process", "maci"]).ok();
    assert!(counts.out.contains("4  Info") && counts.out.contains("4  records"), "{counts:?}");
}

#[test]
fn what_is_exported_and_imported_elsewhere_is_the_same() {
    let site = Site::new();
    let _one = site.hub(&["--domain", "one"]);
    let _two = site.hub(&["--domain", "two"]);
    let message = "umlauts äöü, <tags>, ]]> and \\ \u{1}control\nlines";
    site.tampu_reading(
        format!(
            "{}\n",
            serde_json::json!({"level": "Notice", "message": message, "audiences": ["Operator", "SciLog"],
            "data": [{"name": "a b", "value": ""}], "stack_id": "s", "stack_level": 1, "run_id": "r1"})
        )
        .as_bytes(),
        &["--domain", "one", "log", "send", "--from-json", "-p", "origin"],
    )
    .ok();
    let file = site.file("old.xml", acs_file(&["from a file"]));
    site.tampu(&["--domain", "one", "log", "import", &file]).ok();
    site.find(1, &["--domain", "one", "--process", "tampu-send,origin"]);

    for (name, further) in [("all.xml", &["--ns"][..]), ("all.json.gz", &[])] {
        let path = site.path(name).to_string_lossy().into_owned();
        let filter = ["--process", "tampu-send,origin,maci"];
        site.tampu(&[&["--domain", "one", "log", "export", "-o", &path][..], &filter, further].concat()).ok();
        let imported = site.tampu(&["--domain", "two", "log", "import", "--json", &path]).ok().json().remove(0);
        assert_eq!((imported["read"].as_u64(), imported["bad"].as_u64()), (Some(2), Some(0)), "{name}");
        let export = |domain: &str| {
            let arguments = [&["--domain", domain, "log", "export", "--format", "xml"][..], &filter, &["--ns"]].concat();
            site.tampu(&arguments).ok().out
        };
        assert_eq!(export("one"), export("two"), "{name}");
        // An import into the domain of origin adds nothing.
        let back = site.tampu(&["--domain", "one", "log", "import", "--json", &path]).ok().json().remove(0);
        assert_eq!(back["new"], 0, "{name}: {back}");
    }
}

#[test]
fn broken_records_are_told_with_file_and_line_and_the_rest_is_read() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let text = acs_file(&["good one", "good two"]).replace(
        "</Log>",
        "<Info TimeStamp=\"yesterday\">bad time</Info>\n<Warning TimeStamp=\"2005-02-01T15:34:00.000\"><![CDATA[never closed\n",
    );
    let file = site.file("broken.xml", text);
    let said = site.tampu(&["log", "import", &file]).ok();
    assert_eq!(said.out, "2 read, 2 new, 0 duplicates, 2 bad\n");
    assert!(said.err.contains("broken.xml:6:") && said.err.contains("yesterday"), "{said:?}");
    assert!(said.err.contains("broken.xml:7:"), "{said:?}");
    let rubbish = site.file("rubbish.xml", [0u8, 159, 146, 150, 0, b'<', 0]);
    let said = site.tampu(&["log", "import", &rubbish, "/nowhere/log.xml"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("/nowhere/log.xml: No such file"), "{said:?}");
}

#[test]
fn of_a_truncated_gz_everything_before_the_cut_is_kept() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let messages: Vec<String> =
        (0..59).map(|number| format!("record {number} {:x}", number * 0x9e37_79b9_7f4a_7c15_u128)).collect();
    let whole = gz(&acs_file(&messages.iter().map(String::as_str).collect::<Vec<_>>()));
    let file = site.file("cut.xml.gz", &whole[..whole.len() * 3 / 4]);
    let said = site.tampu(&["log", "import", "--json", &file]);
    let totals = said.json().remove(0);
    assert!(totals["new"].as_u64().unwrap() > 10 && totals["bad"].as_u64().unwrap() >= 1, "{said:?}");
    assert!(said.err.contains("cut.xml.gz:"), "{said:?}");
}

#[test]
fn times_may_jump_and_messages_may_be_long_and_strange() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let long = "0123456789".repeat(1_000_000);
    let line = |time: &str, message: &str| {
        format!("{}\n", serde_json::json!({"time": time, "level": "Info", "message": message, "process": "jumper"}))
    };
    let mut input =
        line("2030-01-01T00:00:00", "future") + &line("1999-12-31T23:59:59.5", "past") + &line("2016-12-31T23:59:60", "leap");
    input += &line("2020-01-01T00:00:00", &long);
    input += &line("2020-01-01T00:00:01", "nul \u{0} and escape \u{1b}[31m");
    site.tampu_reading(input.as_bytes(), &["log", "send", "--from-json", "--timeout", "60s"]).ok();
    let found = site.find(5, &["-p", "jumper", "--oldest-first"]);
    let messages: Vec<&str> = found.iter().map(|record| record["message"].as_str().unwrap()).collect();
    assert_eq!((messages[0], messages[1], messages[4]), ("past", "leap", "future"));
    assert_eq!(messages[2].len(), long.len());
    assert_eq!(messages[3], "nul \u{0} and escape \u{1b}[31m");
    let table = site.tampu(&["log", "query", "-p", "jumper", "escape"]).ok().out;
    assert!(table.contains("nul \\x00 and escape \\x1b[31m"), "{table}");
    // Standard input that is not UTF-8 is an error with a reason, not a changed record.
    let said = site.tampu_reading(b"\xff\xfe\n", &["log", "send"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("standard input"), "{said:?}");
}
