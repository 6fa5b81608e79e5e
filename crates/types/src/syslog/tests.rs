use proptest::prelude::*;

use super::*;
use crate::arbitrary;

fn received() -> Time {
    "2003-10-11T22:14:20".parse().unwrap()
}

fn read(message: &str) -> LogRecord {
    parse(message.as_bytes(), received())
}

fn data(record: &LogRecord) -> Vec<(&str, &str)> {
    record.data.iter().map(|datum| (datum.name.as_str(), datum.value.as_str())).collect()
}

#[test]
fn the_examples_of_rfc_5424_are_read() {
    // 6.5, example 1.
    let record = read(
        "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{feff}'su root' failed for lonvick on /dev/pts/8",
    );
    assert_eq!(record.level, Level::Critical);
    assert_eq!(record.time, "2003-10-11T22:14:15.003".parse().unwrap());
    assert_eq!((record.host.as_str(), record.process.as_str()), ("mymachine.example.com", "su"));
    assert_eq!(data(&record), [("facility", "auth"), ("msgid", "ID47")]);
    assert_eq!(record.message, "'su root' failed for lonvick on /dev/pts/8");
    // Example 2: another zone, six decimals.
    let record = read("<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.");
    assert_eq!(record.level, Level::Notice);
    assert_eq!(record.time, "2003-08-24T12:14:15.000003".parse().unwrap());
    assert_eq!(data(&record), [("facility", "local4"), ("procid", "8710")]);
    assert_eq!(record.message, "%% It's time to make the do-nuts.");
    // Examples 3 and 4: structured data, with and without a text.
    let elements =
        "[exampleSDID@32473 iut=\"3\" eventSource=\"Application\" eventID=\"1011\"][examplePriority@32473 class=\"high\"]";
    for (text, message) in [(" \u{feff}An application event log entry...", "An application event log entry..."), ("", "")] {
        let record = read(&format!("<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 {elements}{text}"));
        assert_eq!(record.message, message);
        assert_eq!(
            data(&record)[2..],
            [
                ("exampleSDID@32473.iut", "3"),
                ("exampleSDID@32473.eventSource", "Application"),
                ("exampleSDID@32473.eventID", "1011"),
                ("examplePriority@32473.class", "high")
            ]
        );
    }
    // 6.2.3.1: texts that are not times.
    let record = read("<34>1 2003-08-24T05:14:15.000000003-07:00:00 host app - - - text");
    assert_eq!(record.time, received());
    assert!(data(&record)[1].1.contains("is not a time"), "{record:?}");
    let nothing = read("<0>1 - - - - - -");
    assert_eq!(
        (nothing.level, nothing.time, nothing.host.as_str(), nothing.message.as_str()),
        (Level::Emergency, received(), "", "")
    );
}

#[test]
fn the_examples_of_rfc_3164_are_read() {
    // 5.4, example 1.
    let record = read("<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8");
    assert_eq!((record.level, record.host.as_str(), record.process.as_str()), (Level::Critical, "mymachine", "su"));
    assert_eq!(record.time, "2003-10-11T22:14:15".parse().unwrap());
    assert_eq!(data(&record), [("facility", "auth"), ("time_guessed", "year 2003, zone +00:00")]);
    assert_eq!(record.message, "'su root' failed for lonvick on /dev/pts/8");
    // Example 2: no priority at all.
    let record = read("Use the BFG!");
    assert_eq!((record.level, record.message.as_str(), record.time), (Level::Notice, "Use the BFG!", received()));
    // Example 3: the RFC itself takes CST for the host.
    let record = read("<165>Aug 24 05:34:00 CST 1987 mymachine myproc[10]: %% It's time to make the do-nuts.  %%");
    assert_eq!((record.host.as_str(), record.process.as_str()), ("CST", ""));
    assert_eq!(record.message, "1987 mymachine myproc[10]: %% It's time to make the do-nuts.  %%");
    // Example 4: a text that is no valid time.
    let record = read("<0>1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!");
    assert_eq!((record.level, record.time), (Level::Emergency, received()));
    assert!(record.message.starts_with("1990 Oct 22"));
}

#[test]
fn what_devices_write_is_read() {
    let record = read("<30>Oct  1 22:14:15 dbd[812]: without a host, day below ten");
    assert_eq!((record.host.as_str(), record.process.as_str(), data(&record)[2]), ("", "dbd", ("procid", "812")));
    let record = read("<189>Oct 11 2003 22:14:15: %SYS-5-CONFIG_I: a year, and no host");
    assert_eq!((record.time, record.process.as_str()), ("2003-10-11T22:14:15".parse().unwrap(), "%SYS-5-CONFIG_I"));
    let record = read("<13>2003-10-11T22:14:15.003+02:00 host tag: the time of RFC 3339");
    assert_eq!(record.time, "2003-10-11T20:14:15.003".parse().unwrap());
    assert_eq!((record.host.as_str(), record.message.as_str()), ("host", "the time of RFC 3339"));
    let record = parse(b"<13>Oct 11 22:14:15 host tag: \xff\xfe", received());
    assert_eq!(record.message, "\u{fffd}\u{fffd}");
    for broken in ["<192>x", "<>x", "<1", "<0034>x", "<+1>x"] {
        assert_eq!(read(broken).message, broken);
    }
}

#[test]
fn structured_data_is_unescaped_and_told_where_it_is_broken() {
    let record = read(r#"<13>1 - h a - - [a b="\"\\\]\x" c=""][d] text"#);
    assert_eq!(data(&record)[1..], [("a.b", r#""\]\x"#), ("a.c", ""), ("d", "")]);
    for broken in ["[a", "[a b", "[a b=", "[a b=\"", "[a b=\"c\"", "[a b=\"c\"x]", "x", "-x", "[a  b=\"c\"]"] {
        let text = format!("1 - h a - - {broken}");
        let record = read(&format!("<13>{text}"));
        assert_eq!((record.message.as_str(), record.host.as_str()), (text.as_str(), ""), "{broken}");
        assert_eq!(record.data[1].name, "syslog_fault");
    }
}

#[test]
fn a_time_without_year_and_zone_is_guessed_against_its_receipt() {
    let guess = |text: &str, received: &str| {
        let words: Vec<&str> = text.split(' ').collect();
        let guess = guess::time(None, words[0], words[1], words[2], received.parse().unwrap()).unwrap();
        (guess.time.to_acs(), guess.description())
    };
    for (text, received, time, told) in [
        ("Dec 31 23:59:59", "2026-01-01T00:00:01", "2025-12-31T23:59:59.000", "year 2025, zone +00:00"),
        ("Jan 1 01:00:00", "2025-12-31T23:59:59", "2026-01-01T00:00:00.000", "year 2026, zone +01:00"),
        ("Jul 1 12:00:00", "2026-07-01T16:02:00", "2026-07-01T16:00:00.000", "year 2026, zone -04:00"),
        ("Jul 1 12:00:00", "2026-07-01T06:30:00", "2026-07-01T06:30:00.000", "year 2026, zone +05:30"),
        // A day under way: no time zone is more likely than another.
        ("Jul 1 12:00:00", "2026-07-02T12:10:00", "2026-07-01T12:00:00.000", "year 2026, zone +00:00"),
        ("Feb 29 12:00:00", "2025-03-01T12:00:00", "2024-02-29T12:00:00.000", "year 2024, zone +00:00"),
    ] {
        assert_eq!(guess(text, received), (time.to_owned(), told.to_owned()), "{text}");
    }
    assert_eq!(guess::time(None, "Foo", "1", "12:00:00", received()), None);
    assert_eq!(guess::time(None, "Feb", "30", "12:00:00", received()), None);
    assert_eq!(guess::time(None, "Feb", "1", "12:00", received()), None);
}

#[test]
fn severities_and_levels_lead_to_each_other() {
    for severity in 0..8 {
        assert_eq!(severity_of(level_of(severity)), severity);
    }
    assert_eq!(severity_of(Level::Trace), 7);
    assert_eq!((facility_number("LOCAL7"), facility_number("x")), (Some(23), None));
}

proptest! {
    #[test]
    fn any_bytes_make_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..200), received in any::<i64>()) {
        parse(&bytes, Time(received));
    }

    #[test]
    fn anything_like_a_message_makes_a_record(text in "<[0-9]{1,3}>(1 )?[A-Z0-9:.\\-\\[\\]\"=\\\\ éT]{0,60}", received in any::<i64>()) {
        parse(text.as_bytes(), Time(received));
    }

    #[test]
    fn what_is_written_is_read_again(record in arbitrary::record(), facility in 0u8..24) {
        let mut text = String::new();
        encode(&record, facility, &mut text);
        let again = parse(text.as_bytes(), Time(0));
        prop_assert!(!again.data.iter().any(|datum| datum.name == "syslog_fault"), "{text}");
        prop_assert_eq!(&again.message, &record.message);
        prop_assert_eq!(severity_of(again.level), severity_of(record.level));
        // Six decimals, as the RFC allows.
        prop_assert!((0..1000).contains(&(record.time.0 - again.time.0)), "{text}");
        let values: Vec<&str> = again.data.iter().filter(|d| d.name.starts_with("data@32473")).map(|d| d.value.as_str()).collect();
        let written: Vec<&str> =
            record.data.iter().filter(|d| !["procid", "msgid", "facility"].contains(&d.name.as_str())).map(|d| d.value.as_str()).collect();
        prop_assert_eq!(values, written);
    }
}
