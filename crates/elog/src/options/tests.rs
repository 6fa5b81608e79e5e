use std::{collections::HashSet, fs, path::Path};

use regex::Regex;

use super::*;

#[test]
fn options_are_known_by_name_and_pattern() {
    use OptionVerdict::{Honoured, NotApplicable, Replaced, Unknown};
    for (name, expected) in [
        ("attributes", Honoured),
        ("Options  Run number", Honoured),
        ("Options", Unknown),
        ("{a}Options Type", Honoured),
        ("{a,b&c} preset on reply Subject", Honoured),
        ("{a}Entries per page", NotApplicable),
        ("Preset on first reply Subject", Honoured),
        ("Cell Style Type Problem", Honoured),
        ("Search slave", Honoured),
        ("Port", Replaced),
        ("{a}Port", Replaced),
        ("password file", Honoured),
        ("Allow clone", NotApplicable),
        ("Allow Copy to", Honoured),
        ("Execute new", NotApplicable),
        ("Coffee", Unknown),
    ] {
        assert_eq!(verdict(name).0, expected, "{name}");
    }
}

#[test]
fn an_unknown_name_brings_the_nearest_known_one() {
    for (name, nearest) in [
        ("Atributes", "did you mean `Attributes`?"),
        ("Reverse srot", "did you mean `Reverse sort`?"),
        ("Optoins Type", "did you mean `Options type`?"),
        ("{a}Prest Subject", "did you mean `Preset subject`?"),
        ("Coffee", ""),
        ("x", ""),
    ] {
        assert_eq!(verdict(name), (OptionVerdict::Unknown, nearest.to_owned()), "{name}");
    }
}

/// Each line of the catalogue is whole: no verdict is misspelt, nothing that is not honoured lacks its reason, and no option
/// stands twice.
#[test]
fn every_option_has_one_of_three_verdicts_and_its_reason() {
    let mut seen = HashSet::new();
    let mut lines = 0;
    for line in CATALOGUE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, verdict, remark] = parts[..] else { panic!("three parts: {line}") };
        assert!(["honoured", "replaced", "no"].contains(&verdict), "{line}");
        assert!(verdict == "honoured" || !remark.is_empty(), "{line}");
        assert!(!remark.contains("without effect"), "{line}");
        assert!(seen.insert(name.trim_start_matches("{}").to_lowercase()), "twice: {line}");
        lines += 1;
    }
    assert_eq!(lines, catalogue().len());
    assert!(catalogue().iter().all(|known| !known.section.is_empty()));
    // All names of ELOG 3.1.5 that elogd asks for.
    assert!(lines >= 189, "{lines}");
}

/// Returns the Rust files below a folder, without their tests, as one text in lower case.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for item in fs::read_dir(folder).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            text += &sources(&path);
        } else if path.extension().is_some_and(|ext| ext == "rs") && !path.ends_with("tests.rs") {
            text += fs::read_to_string(&path).unwrap().split("#[cfg(test)]").next().unwrap();
        }
    }
    text.to_lowercase()
}

/// The code reads each honoured option, and the settings of pages read no other.
#[test]
fn what_is_honoured_is_asked_for_and_the_other_way_round() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let logbook = src.join("../../logbook/src");
    let code = [src.clone(), logbook.join("people"), logbook.join("book")].map(|folder| sources(&folder)).concat();
    for known in catalogue().iter().filter(|known| known.verdict == OptionVerdict::Honoured) {
        let name = known.name.trim_end_matches(" *").to_lowercase();
        // `Logbook dir` is an argument of the import.
        let read = code.contains(&format!("\"{name}\"")) || code.contains(&format!("\"{name} ")) || name == "logbook dir";
        assert!(read, "{} is honoured by nothing", known.name);
    }
    let call = Regex::new(r#"self\.(?:get|under|written|list|is_on|number|text)(?:::<\w+>)?\("([A-Za-z ]+)""#).unwrap();
    let settings = fs::read_to_string(src.join("pages/settings.rs")).unwrap() + &sources(&src.join("pages/settings"));
    let asked: Vec<&str> = call.captures_iter(&settings).map(|found| found.get(1).unwrap().as_str()).collect();
    assert!(asked.len() > 50, "{asked:?}");
    for name in asked {
        assert_eq!(verdict(name).0, OptionVerdict::Honoured, "{name} is asked for");
    }
}

#[test]
fn the_reference_of_options_is_what_the_catalogue_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/elog-options.md");
    if std::env::var_os("TAMPU_WRITE_SPEC").is_some() {
        fs::write(&path, page()).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == page(),
        "docs/reference/elog-options.md is out of date; write it anew with `make reference`"
    );
}

#[test]
fn a_file_is_checked_line_by_line() {
    let found = check(b"[global]\nport = 8080\nLogbok Tabs = 1\n; comment\n[Shift]\nReverse sort = 1\nreverse  sort = 0\nnothing\n{a}Theme = x\n");
    let lines: Vec<(usize, &str, &str, &str)> =
        found.options.iter().map(|one| (one.line, one.section.as_str(), one.option.as_str(), one.verdict.name())).collect();
    assert_eq!(
        lines,
        [
            (2, "global", "port", "replaced"),
            (3, "global", "Logbok Tabs", "unknown"),
            (6, "Shift", "Reverse sort", "honoured"),
            (7, "Shift", "reverse  sort", "honoured"),
            (9, "Shift", "{a}Theme", "not applicable"),
        ]
    );
    assert_eq!((found.honoured, found.replaced, found.not_applicable, found.unknown), (2, 1, 1, 1));
    assert_eq!(found.options[1].remark, "did you mean `Logbook Tabs`?");
    assert!(found.options[3].remark.contains("a line before this one"));
    assert_eq!(found.faults.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [8]);
}
