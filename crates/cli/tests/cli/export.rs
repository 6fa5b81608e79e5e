//! Files out of the archive and out of other files, and counts.

use std::{collections::BTreeMap, path::Path, process::Stdio};

use serde_json::Value;

use crate::site::{Said, Site, acs_file};

/// Names and numbers of records of what was written, as the command tells it and as the directory has it.
fn written(said: &Said, directory: &Path) -> BTreeMap<String, u64> {
    let told: BTreeMap<String, u64> = said
        .json()
        .iter()
        .map(|file| {
            let name = Path::new(file["file"].as_str().unwrap()).file_name().unwrap().to_string_lossy().into_owned();
            (name, file["records"].as_u64().unwrap())
        })
        .collect();
    let there: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(there.len(), told.len(), "{there:?}");
    assert!(there.iter().all(|name| told.contains_key(name)), "{there:?}");
    told
}

#[test]
fn an_archive_goes_into_files_that_come_back_whole() {
    let site = Site::new();
    let _one = site.hub(&["--domain", "one"]);
    let _two = site.hub(&["--domain", "two"]);
    let messages: Vec<String> = (0..50).map(|number| format!("message {number}")).collect();
    let file = site.file("in.xml", acs_file(&messages.iter().map(String::as_str).collect::<Vec<_>>()));
    site.tampu(&["--domain", "one", "log", "import", &file]).ok();
    let all = ["--domain", "one", "log", "export", "-p", "maci", "--json"];
    for (name, further, files) in [
        ("time", &["--every", "20s"][..], 3),
        ("count", &["--records", "20", "--gz"], 3),
        ("size", &["--file-size", "1kB", "-f", "json"], 7),
        ("acs", &[], 1),
    ] {
        let directory = site.path(name);
        let said = site.tampu(&[&all[..], &["-o", &format!("{}/", directory.display())], further].concat()).ok();
        let written = written(&said, &directory);
        assert_eq!(written.values().sum::<u64>(), 50, "{name}: {written:?}");
        assert!(written.len() >= files, "{name}: {written:?}");
        if name == "time" {
            let expected = [
                ("log2005-02-01T15:33:00.000_2005-02-01T15:33:20.000.xml", 20),
                ("log2005-02-01T15:33:20.000_2005-02-01T15:33:40.000.xml", 20),
                ("log2005-02-01T15:33:40.000_2005-02-01T15:34:00.000.xml", 10),
            ];
            assert_eq!(written, expected.map(|(name, count)| (name.to_owned(), count)).into());
        }
        if name == "count" {
            assert!(written.contains_key("log2005-02-01T15:33:00.592_2005-02-01T15:33:19.592.xml.gz"), "{written:?}");
        }
        let paths: Vec<String> = written.keys().map(|file| directory.join(file).to_string_lossy().into_owned()).collect();
        let mut arguments = vec!["--domain", "two", "log", "import", "--json"];
        arguments.extend(paths.iter().map(String::as_str));
        let imported = site.tampu(&arguments).ok().json().remove(0);
        let new = if name == "time" { 50 } else { 0 };
        assert_eq!((imported["read"].as_u64(), imported["new"].as_u64()), (Some(50), Some(new)), "{name}: {imported}");
    }
}

#[test]
fn a_file_is_split_by_time_whatever_its_order_and_by_number() {
    let site = Site::new();
    // Two halves in the wrong order, and a record that cannot be read.
    let messages: Vec<String> = (0..60).map(|number| format!("message {number}")).collect();
    let text = acs_file(&messages.iter().map(String::as_str).collect::<Vec<_>>());
    let (head, records) = text.split_at(text.find("<Info").unwrap());
    let middle = records.match_indices("<Info").nth(30).unwrap().0;
    let (first, second) = records.trim_end().strip_suffix("</Log>").unwrap().split_at(middle);
    let file = site.file("mixed.xml", format!("{head}{second}<Info TimeStamp=\"soon\">bad</Info>\n{first}</Log>\n"));
    let parts = site.path("parts");
    let said = site.tampu(&["log", "split", &file, "--every", "20s", "-o", &parts.to_string_lossy(), "--json"]).ok();
    assert!(said.err.contains("mixed.xml:") && said.err.contains("60 records written to 3 files"), "{said:?}");
    assert_eq!(written(&said, &parts).into_values().collect::<Vec<_>>(), [20, 20, 20]);
    for file in std::fs::read_dir(&parts).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().to_string_lossy().into_owned();
        let tens: u32 = name["log2005-02-01T15:33:".len()..][..2].parse().unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        for second in text.match_indices("TimeStamp=\"2005-02-01T15:33:").map(|(at, found)| &text[at + found.len()..][..2]) {
            assert!((tens..tens + 20).contains(&second.parse().unwrap()), "{name} has {second}");
        }
    }
    // A second run overwrites nothing.
    let said = site.tampu(&["log", "split", &file, "--every", "20s", "-o", &parts.to_string_lossy()]).ok();
    assert!(said.out.contains("-2.xml") && std::fs::read_dir(&parts).unwrap().count() == 6, "{said:?}");

    let chosen = site.path("chosen");
    let arguments = [
        "log",
        "split",
        &file,
        "--records",
        "7",
        "-o",
        &chosen.to_string_lossy(),
        "--contains",
        "message 1",
        "-f",
        "csv",
        "--json",
    ];
    let said = site.tampu(&arguments).ok();
    assert_eq!(written(&said, &chosen).into_values().sum::<u64>(), 11, "{said:?}");
    let said = site.tampu(&["log", "split", &file, "/nowhere.xml", "--every", "1h", "-o", &site.path("x").to_string_lossy()]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("not split, or not to the end: /nowhere.xml") && said.out.contains("60  "), "{said:?}");
}

#[test]
fn exports_choose_columns_and_a_full_disk_is_told() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let file = site.file("in.xml", acs_file(&["one", "two, three"]));
    site.tampu(&["log", "import", &file]).ok();
    let out = site.path("out.csv").to_string_lossy().into_owned();
    site.tampu(&["log", "export", "-p", "maci", "--columns", "message,host", "-o", &out]).ok();
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "message,host\r\none,te1\r\n\"two, three\",te1\r\n");
    let said = site.tampu(&["log", "export", "-p", "maci", "-f", "xml", "-o", "/dev/full"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("/dev/full: No space left"), "{said:?}");
    // The error names standard output.
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let child = site.command(&["log", "export", "-p", "maci"]).stdout(Stdio::from(full)).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output: No space left"));
}

#[test]
fn counts_are_by_time_source_and_level() {
    let site = Site::new();
    let _hub = site.hub(&[]);
    let record = |second: u32, level: &str, source: &str| {
        let time = format!("2026-11-21T10:{:02}:{:02}", second / 60, second % 60);
        serde_json::json!({"time": time, "level": level, "message": "x", "source_object": source, "process": "pipe"}).to_string()
    };
    let lines: Vec<String> = (0..600)
        .step_by(10)
        .map(|second| record(second, if second % 60 == 0 { "Error" } else { "Info" }, if second < 300 { "DV01" } else { "DV02" }))
        .collect();
    site.tampu_reading(lines.join("\n").as_bytes(), &["log", "send", "--from-json", "-p", "pipe"]).ok();
    site.find(60, &["-p", "pipe", "-n", "0"]);
    let by = ["log", "stat", "-p", "pipe", "--by", "source,level", "--every", "5min"];
    let csv = site.tampu(&[&by[..], &["--csv"]].concat()).ok().out;
    let expected = "time,source_object,level,count\r\n\
        2026-11-21T10:00:00.000000000Z,DV01,Info,25\r\n2026-11-21T10:00:00.000000000Z,DV01,Error,5\r\n\
        2026-11-21T10:05:00.000000000Z,DV02,Info,25\r\n2026-11-21T10:05:00.000000000Z,DV02,Error,5\r\n";
    assert_eq!(csv, expected);
    let table = site.tampu(&by).ok().out;
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["records", "Info", "Error"], "{table}");
    assert_eq!(lines[1], ["30", "25", "5", "2026-11-21T10:00:00.000", "DV01"], "{table}");
    assert_eq!(lines[3][..2], ["60", "records,"], "{table}");
    let json = site.tampu(&[&by[..], &["--json"]].concat()).ok().json();
    assert_eq!((json.len(), &json[1]["level"], &json[1]["count"]), (4, &Value::from("Error"), &Value::from(5)), "{json:?}");
}
