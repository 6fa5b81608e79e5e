//! Rules that choose the targets of records: an ordered list of queries, each compiled once.

use std::collections::BTreeMap;

use tampu_archive::query::Matcher;
use tampu_log::collector::router::Sifted;
use tampu_types::{
    RecordView,
    log_batch::{LogBatchBuilder, LogBatchView},
};

use super::{
    bundle::Bundle,
    settings::{RouteSettings, TargetSettings},
    syslog::Remote,
    target::Target,
};
use crate::config::error::ConfigError;

/// Maximum number of targets, because targets are bits of a word.
const TARGETS: usize = 64;
/// Most files of a target. Each rotation renames all of them.
const MOST_FILES: u32 = 1000;
/// Largest file of a target in MiB.
const LARGEST_MB: u64 = 1 << 20;

#[derive(Debug)]
struct Rule {
    wanted: Matcher,
    targets: u64,
    archive: bool,
    stop: bool,
}

#[derive(Debug)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    /// True if a rule keeps records out of the archive.
    sifts: bool,
}

fn wrong(setting: String, why: String) -> ConfigError {
    ConfigError::Value { setting, why }
}

impl Rules {
    /// Reads and checks the rules. Targets are numbered in the order of their names.
    pub fn new(routes: &[RouteSettings], targets: &BTreeMap<String, TargetSettings>) -> Result<Rules, ConfigError> {
        if targets.len() > TARGETS {
            return Err(wrong("target".to_owned(), format!("{} targets; at most {TARGETS}", targets.len())));
        }
        for (name, settings) in targets {
            check_target(name, settings)?;
        }
        let rule = |(number, route): (usize, &RouteSettings)| {
            let which = |setting: &str| format!("[[route]] number {}, {setting}", number + 1);
            if route.to.is_empty() && route.archive && !route.stop {
                return Err(wrong(
                    which("to"),
                    "it names no target and keeps nothing out of the archive: it does nothing".to_owned(),
                ));
            }
            let mut mask = 0;
            for name in &route.to {
                let number = targets.keys().position(|known| known == name);
                let number = number.ok_or_else(|| wrong(which("to"), format!("there is no [target.{name}]")))?;
                mask |= 1 << number;
            }
            let wanted = route.query().compile().map_err(|error| wrong(which("regex"), error.to_string()))?;
            Ok(Rule { wanted, targets: mask, archive: route.archive, stop: route.stop })
        };
        let rules: Vec<Rule> = routes.iter().enumerate().map(rule).collect::<Result<_, _>>()?;
        Ok(Rules { sifts: rules.iter().any(|rule| !rule.archive), rules })
    }

    /// Returns the targets of a record, and true if it is kept.
    fn decide(&self, record: &RecordView<'_>) -> (u64, bool) {
        let (mut targets, mut archive) = (0, true);
        for rule in &self.rules {
            if rule.wanted.wants(record) {
                targets |= rule.targets;
                archive &= rule.archive;
                if rule.stop {
                    break;
                }
            }
        }
        (targets, archive)
    }

    /// Removes from a packet the records that are not kept. Unreadable packets are left to the archive.
    pub fn sift(&self, packet: &[u8]) -> Option<Sifted> {
        if !self.sifts {
            return None;
        }
        let view = LogBatchView::parse(packet).ok()?;
        let mut left = Vec::new();
        for record in view.records() {
            left.push(!self.decide(&record.ok()?).1);
        }
        if !left.contains(&true) {
            return None;
        }
        // One packet becomes two, none larger than the original.
        let (mut kept, mut left_out) = (LogBatchBuilder::new(), LogBatchBuilder::new());
        for (record, left) in view.records().zip(&left) {
            let record = record.ok()?.to_record();
            let into = if *left { &mut left_out } else { &mut kept };
            into.push_record(&record).ok()?;
        }
        let records = left_out.count() as u64;
        let kept = (!kept.is_empty()).then(|| kept.seal().to_vec());
        Some(Sifted { kept, left_out: left_out.seal().to_vec(), records })
    }

    /// Passes a packet's records to their targets.
    pub fn lead(&self, packet: &[u8], targets: &[Target]) {
        let Ok(view) = LogBatchView::parse(packet) else { return };
        let mut bundles: Vec<Bundle> = targets.iter().map(|_| Bundle::default()).collect();
        for record in view.records().flatten() {
            let (mask, _) = self.decide(&record);
            if mask != 0 {
                let record = record.to_record();
                let chosen = targets.iter().zip(&mut bundles).enumerate().filter(|(number, _)| mask & (1 << number) != 0);
                chosen.for_each(|(_, (target, bundle))| target.add(&record, bundle));
            }
        }
        targets.iter().zip(bundles).for_each(|(target, bundle)| target.push(bundle));
    }
}

fn check_target(name: &str, settings: &TargetSettings) -> Result<(), ConfigError> {
    let setting = |of: &str| format!("[target.{name}] {of}");
    if name.contains(['/', '\0']) || name.starts_with('.') || name.is_empty() {
        return Err(wrong(format!("[target.{name}]"), "a target's name is the name of a file, too".to_owned()));
    }
    if settings.file.is_some() && settings.syslog.is_some() {
        return Err(wrong(setting("syslog"), "a target is a file or another host, not both".to_owned()));
    }
    if !(1..=LARGEST_MB).contains(&settings.size_mb) {
        return Err(wrong(setting("size_mb"), format!("{} is not a size from 1 to {LARGEST_MB} MiB", settings.size_mb)));
    }
    if !(1..=MOST_FILES).contains(&settings.files) {
        return Err(wrong(setting("files"), format!("{} is not a number of files from 1 to {MOST_FILES}", settings.files)));
    }
    Remote::parse(settings).map_err(|why| wrong(setting("syslog, facility"), why))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tampu_types::{
        Level, LogRecord,
        log_batch::{decode_records, encode_records},
    };

    use super::*;

    fn rules(text: &str) -> Result<Rules, ConfigError> {
        let config = crate::Config::parse(text, std::path::Path::new("test.toml"))?;
        Rules::new(&config.route, &config.target)
    }

    fn record(level: Level, message: &str) -> LogRecord {
        LogRecord::new(level, message)
    }

    fn decided(rules: &Rules, record: &LogRecord) -> (u64, bool) {
        let packet = encode_records(std::slice::from_ref(record)).unwrap();
        let view = LogBatchView::parse(&packet).unwrap();
        rules.decide(&view.records().next().unwrap().unwrap())
    }

    #[test]
    fn rules_are_asked_in_order_until_one_stops() {
        let rules = rules(
            "[target.a]\n[target.b]\n[target.c]\n\
             [[route]]\nmin_level = \"Error\"\nto = [\"a\", \"c\"]\n\
             [[route]]\ncontains = \"Noise\"\narchive = false\nstop = true\n\
             [[route]]\nregex = \"^x\"\nto = [\"b\"]\n",
        )
        .unwrap();
        for (level, message, expected) in [
            (Level::Info, "y", (0, true)),
            (Level::Info, "x", (0b010, true)),
            (Level::Alert, "x", (0b111, true)),
            (Level::Error, "x noise", (0b101, false)),
        ] {
            assert_eq!(decided(&rules, &record(level, message)), expected, "{message}");
        }
    }

    #[test]
    fn what_is_not_kept_is_taken_out_of_a_packet() {
        let rules = rules("[[route]]\nlevels = [\"Debug\"]\narchive = false\n").unwrap();
        let records = [record(Level::Debug, "1"), record(Level::Info, "2"), record(Level::Debug, "3")];
        let sifted = rules.sift(&encode_records(&records).unwrap()).unwrap();
        assert_eq!(decode_records(&sifted.kept.unwrap()).unwrap(), records[1..2]);
        assert_eq!((decode_records(&sifted.left_out).unwrap().len(), sifted.records), (2, 2));
        assert_eq!(rules.sift(&encode_records(&records[..1]).unwrap()).unwrap().kept, None);
        assert_eq!(rules.sift(&encode_records(&records[1..2]).unwrap()), None);
        assert_eq!(rules.sift(b"nothing"), None);
    }

    #[test]
    fn what_cannot_be_is_told_with_its_place() {
        for (text, expected) in [
            ("[[route]]\nto = [\"x\"]\n", "[[route]] number 1, to: there is no [target.x]"),
            ("[[route]]\n", "it does nothing"),
            ("[[route]]\nregex = \"(\"\nstop = true\n", "number 1, regex: the regular expression '('"),
            ("[target.x]\nfile = \"/a\"\nsyslog = \"udp a:1\"\n", "not both"),
            ("[target.x]\nsyslog = \"a:1\"\n", "write \"udp HOST:PORT\""),
            ("[target.x]\nsyslog = \"udp a:1\"\nfacility = \"x\"\n", "unknown facility 'x'"),
            ("[target.x]\nfiles = 0\n", "[target.x] files: 0 is not a number of files from 1 to 1000"),
            ("[target.x]\nfiles = 1001\n", "[target.x] files: 1001 is not"),
            ("[target.x]\nsize_mb = 0\n", "[target.x] size_mb: 0 is not a size from 1 to 1048576 MiB"),
            ("[target.x]\nsize_mb = 17592186044416\n", "[target.x] size_mb: 17592186044416 is not"),
            ("[[route]]\nlevel = 3\n", "line 2"),
            ("roles = [\"node\"]\n[[route]]\nstop = true\n", "route: routes need the role 'collector'"),
            ("[syslog]\nenabled = true\n[target.x]\nsyslog = \"udp localhost:5514\"\n", "every record would return"),
        ] {
            let read = crate::Config::parse(text, std::path::Path::new("test.toml"));
            let error = read.and_then(|config| config.check()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
