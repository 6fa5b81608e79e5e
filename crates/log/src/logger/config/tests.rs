//! Tests of the precedence of several sources of settings.

use std::path::Path;

use tampu_types::{Level, SourceName};

use super::*;
use crate::logger::{BadSettings, Variables};

fn load(source: &str, variable: Variables) -> Result<LogSettings, BadSettings> {
    LogSettings::load(SourceName::new(source).unwrap(), variable)
}

fn from(level: Level) -> Threshold {
    Threshold::From(level)
}

/// A file beside the sources, independent of the working directory.
macro_rules! sample {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/log-config/", $name).to_owned()
    };
}

#[test]
fn acs_s_variables_are_integers_and_beat_only_the_defaults() {
    let acs: Variables = |name| {
        Ok(match name {
            "ACS_LOG_CENTRAL" => Some("6".to_owned()),
            "ACS_LOG_STDOUT" => Some("0".to_owned()),
            _ => None,
        })
    };
    let settings = load("CONTROL/DV01", acs).unwrap();
    assert_eq!((settings.central, settings.local), (from(Level::Warning), from(Level::Trace)));

    let bad: Variables = |name| Ok((name == "ACS_LOG_STDOUT").then(|| "loud".to_owned()));
    let error = load("x", bad).unwrap_err().to_string();
    assert_eq!(error, "ACS_LOG_STDOUT: invalid ACS level 'loud' (0 to 11, or 99 for none; 0 is everything)");
    let seven: Variables = |name| Ok((name == "ACS_LOG_STDOUT").then(|| "7".to_owned()));
    assert_eq!(load("x", seven).unwrap().local, from(Level::Error));
    let twelve: Variables = |name| Ok((name == "ACS_LOG_STDOUT").then(|| "12".to_owned()));
    assert!(load("x", twelve).is_err());
    let off: Variables = |name| Ok((name == "ACS_LOG_CENTRAL").then(|| "99".to_owned()));
    assert_eq!(load("x", off).unwrap().central, Threshold::Off);
}

#[test]
fn the_file_beats_the_environment_and_ours_beats_acs_s_and_a_name_beats_all_names() {
    let file: Variables = |name| {
        Ok(match name {
            "ACS_LOG_CENTRAL" | "ACS_LOG_STDOUT" => Some("11".to_owned()),
            "TAMPU_LOG_CONFIG" => Some(sample!("log.toml")),
            _ => None,
        })
    };
    let settings = load("CONTROL/DV01", file).unwrap();
    assert_eq!((settings.central, settings.local), (from(Level::Info), from(Level::Warning)));
    assert_eq!((settings.packet_records, settings.flush_period), (50, Duration::from_secs(1)));
    assert_eq!((settings.immediate, settings.max_per_s), (from(Level::Critical), NonZeroU64::new(5000)));
    assert_eq!((settings.output.to_string().as_str(), settings.format), ("/var/log/tampu.log", Format::Json));

    let ours: Variables = |name| {
        Ok(match name {
            "ACS_LOG_CENTRAL" | "ACS_LOG_STDOUT" => Some("11".to_owned()),
            "TAMPU_LOG_LEVEL" => Some("Debug".to_owned()),
            "TAMPU_LOG_LOCAL" => Some("off".to_owned()),
            "TAMPU_LOG_OUTPUT" => Some("stdout".to_owned()),
            "TAMPU_LOG_FORMAT" => Some("plain".to_owned()),
            _ => None,
        })
    };
    let settings = load("CONTROL/DV01", ours).unwrap();
    assert_eq!((settings.central, settings.local), (from(Level::Debug), Threshold::Off));
    assert_eq!((settings.output.clone(), settings.format), (Output::Stdout, Format::Plain));
    let both: Variables = |name| {
        Ok(match name {
            "TAMPU_LOG_CONFIG" => Some(sample!("log.toml")),
            "TAMPU_LOG_LEVEL" => Some("Debug".to_owned()),
            "TAMPU_LOG_LOCAL" => Some("off".to_owned()),
            "TAMPU_LOG_OUTPUT" => Some("stdout".to_owned()),
            "TAMPU_LOG_FORMAT" => Some("plain".to_owned()),
            _ => None,
        })
    };
    let settings = load("CONTROL/DV01", both).unwrap();
    assert_eq!((settings.central, settings.local), (from(Level::Info), from(Level::Warning)));
    assert_eq!((settings.output.to_string().as_str(), settings.format), ("/var/log/tampu.log", Format::Json));
    let tunable = Tunable::of(&settings);
    let named = |name| tunable.named(name);
    assert_eq!((named("mount").central, named("mount").local), (from(Level::Trace), from(Level::Warning)));
    assert_eq!(named("MOUNT/az").central, from(Level::Error), "the later of two that match");
    assert_eq!(named("other").central, from(Level::Info));
    assert_eq!(named("mount").repeat, RepeatGuard { interval_ms: 1000, count: 10, when: crate::logger::repeat::Combine::And });
    assert!(!named("other").repeat.is_on());
}

#[test]
fn a_file_may_speak_of_some_processes_only() {
    let file: Variables = |name| Ok((name == "TAMPU_LOG_CONFIG").then(|| sample!("log.toml")));
    let corr = load("CORR/Master", file).unwrap();
    assert_eq!((corr.central, corr.local), (from(Level::Notice), from(Level::Warning)));
    assert_eq!(Tunable::of(&corr).named("mount").central, from(Level::Trace));
}

#[test]
fn what_nobody_knows_and_what_cannot_be_is_told_with_its_line() {
    let wrong = |text: &str| LogFile::parse(text, Path::new("/etc/log.toml")).unwrap_err();
    assert!(wrong("[log]\n\nlevle = \"Info\"\n").starts_with("/etc/log.toml, line 3: unknown field `levle`"));
    assert!(wrong("[log]\nlevel = \"loud\"\n").starts_with("/etc/log.toml, line 2: 'loud' is not a level"));
    assert!(wrong("[log]\npacket_records = 0\n").starts_with("/etc/log.toml, line 2: "));
    assert!(wrong("[log]\noutput = \"stdot\"\n").contains("line 2: invalid place for local output 'stdot'"));
    assert!(wrong("[[logger]]\nname = \"x\"\nrepeat = { count = 3, when = \"xor\" }\n").contains("line 3"));
    assert!(wrong("[collector]\n").contains("line 1: unknown field `collector`"));
    let missing: Variables = |name| Ok((name == "TAMPU_LOG_CONFIG").then(|| "/nowhere/log.toml".to_owned()));
    let error = load("x", missing).unwrap_err().to_string();
    assert_eq!(error, "TAMPU_LOG_CONFIG: /nowhere/log.toml: No such file or directory (os error 2)");
}

#[test]
fn settings_said_whole_lead_back_to_themselves() {
    let file: Variables = |name| Ok((name == "TAMPU_LOG_CONFIG").then(|| sample!("log.toml")));
    let settings = load("CONTROL/DV01", file).unwrap();
    let whole = LogPatch::of(&settings);
    let text = toml::to_string(&LogFile { log: whole.clone(), logger: settings.loggers.clone(), topic: Vec::new() }).unwrap();
    let mut again = LogSettings::isolated(settings.domain.clone(), settings.source.clone());
    LogFile::parse(&text, Path::new("x")).unwrap().apply(&mut again);
    assert_eq!((LogPatch::of(&again), &again.loggers), (whole, &settings.loggers));
}
