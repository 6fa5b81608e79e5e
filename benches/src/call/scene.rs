//! The hubs that receive the records, and the programs that log to them in sequence.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    call::{
        amount::Amount,
        cost,
        found::{Line, Measured},
        hub::Hub,
        marks::{self, missing},
        network,
        paper::{self, Row, Sink},
        paths::Paths,
        peer::{Known, PEERS, ours, spdlog},
        program,
        stage::{self, Stage},
    },
    disk::run_dir,
    table::count,
};

/// Hubs that receive the records of the measured programs.
#[derive(Debug)]
pub struct Scene<'a> {
    amount: &'a Amount,
    place: &'a Paths,
    tell: fn(&Value),
    dir: tempfile::TempDir,
    /// A run-time directory without a hub.
    nobody: tempfile::TempDir,
    /// A hub with a collector.
    full: Hub,
    bare: Hub,
}

impl<'a> Scene<'a> {
    /// Starts the hubs. `tell` receives every line of the tables when it is measured.
    pub fn new(amount: &'a Amount, place: &'a Paths, tell: fn(&Value)) -> Result<Scene<'a>, String> {
        let Paths { tampu, data, .. } = place;
        let dir = tempfile::Builder::new().prefix("tampu-bench-").tempdir_in(data);
        let dir = dir.map_err(|e| format!("{}: {e}", data.display()))?;
        let nobody = run_dir().map_err(|e| format!("a run-time directory: {e}"))?;
        let full = Hub::start(tampu, data, &[], &[])?;
        let bare = Hub::start(tampu, data, &[], &["--roles", "node"])?;
        Ok(Scene { amount, place, tell, dir, nobody, full, bare })
    }

    /// Returns the stage for a program that logs to this run-time directory.
    fn stage(&self, run: PathBuf) -> Stage {
        Stage { run, dir: self.dir.path().to_owned() }
    }

    /// Returns a run-time directory without a hub.
    fn nobody(&self) -> PathBuf {
        self.nobody.path().to_owned()
    }

    /// Measures the published table, row by row.
    pub fn paper(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let rows = paper::rows();
        let wanted = rows.iter().filter(|row| self.amount.threads.contains(&row.threads));
        for (number, row) in wanted.enumerate() {
            match self.row(row, number) {
                Ok(line) => {
                    eprintln!(
                        "{:>2} {}: {:.2} us a call {}",
                        row.number,
                        row.name(),
                        line.account.times.average_ns() / 1e3,
                        line.bad()
                    );
                    (self.tell)(&line.json());
                    lines.push(line);
                }
                Err(why) => {
                    eprintln!("{:>2} {}: failed: {why}", row.number, row.name());
                    (self.tell)(&json!({"row": row.number, "what": row.name(), "failed": why}));
                }
            }
        }
        lines
    }

    fn row(&self, row: &Row, number: usize) -> Result<Line, String> {
        let name = format!("bench-row-{number}");
        let run = if row.kept() {
            self.full.run()
        } else if row.proxied() {
            self.bare.run()
        } else {
            self.nobody()
        };
        let file = (row.sink == Some(Sink::File)).then(|| self.dir.path().join(&name));
        let sink = file.as_deref().unwrap_or(Path::new("/dev/null"));
        let command = stage::program_command(row, self.amount, sink, &name)?;
        let account: program::Account = self.stage(run).play(command, sink)?;
        let mut lost = 0;
        if let Some(file) = &file {
            lost = lost.max(missing(account.times.calls, lines_of(file)?)?);
        }
        if row.kept() {
            lost = lost.max(missing(account.times.calls, self.full.kept(&name)?)?);
        }
        Ok(Line { row: *row, account, lost })
    }

    /// Measures the loggers that `wanted` selects.
    pub fn loggers(&self, wanted: impl Fn(&str) -> bool) -> Vec<Measured> {
        let mut all = Vec::new();
        for &threads in &self.amount.threads {
            for known in PEERS.iter().filter(|known| wanted(known.name)) {
                match self.logger(known, threads) {
                    Ok(one) => {
                        let per_s = count(one.account.sustained_per_s);
                        eprintln!(
                            "{:<13} {threads:>2} threads: {:.1} ns a call, {per_s}/s {}",
                            one.name,
                            one.account.cpu_ns,
                            one.bad()
                        );
                        (self.tell)(&one.json());
                        all.push(one);
                    }
                    Err(why) => {
                        eprintln!("{:<13} {threads:>2} threads: failed: {why}", known.name);
                        (self.tell)(&json!({"logger": known.name, "threads": threads, "failed": why}));
                    }
                }
            }
        }
        all
    }

    fn logger(&self, known: &Known, threads: usize) -> Result<Measured, String> {
        let sink = self.dir.path().join(format!("{}-{threads}", known.name));
        // A program reports its errors on standard error.
        let said = self.dir.path().join("said");
        let ask = cost::Ask::of(known.name, threads, self.amount, &sink);
        let archived = known.name == ours::NAME;
        let run = if archived { self.full.run() } else { self.nobody() };
        let command = if known.name.starts_with("spdlog") {
            spdlog::command(&self.place.spdlog, &ask)?
        } else {
            stage::cost_command(&ask)?
        };
        let account: cost::Account = self.stage(run).play(command, &said)?;
        let found = if known.text {
            lines_of(&sink)?
        } else if archived {
            self.full.kept(&ours::name(threads))?
        } else {
            account.logged
        };
        // A gigabyte of text is removed early.
        let _ = fs::remove_file(&sink);
        let lost = missing(account.logged, found)?;
        Ok(Measured { name: known.name, threads, account, lost })
    }

    /// Measures with a distant collector. Returns `None` if that is not possible.
    pub fn network(&self) -> Option<network::Account> {
        match network::measure(self.amount, self.place, &self.dir.path().join("network")) {
            Ok(found) => {
                (self.tell)(&json!({"network": found}));
                Some(found)
            }
            Err(why) => {
                eprintln!("\nbench-call: NOT MEASURED: a collector 1 ms away: {why}\n");
                (self.tell)(&json!({"network": null, "not_measured": why}));
                None
            }
        }
    }
}

fn lines_of(path: &Path) -> Result<u64, String> {
    fs::File::open(path).and_then(marks::lines).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_found_twice_are_an_error() {
        assert_eq!((missing(5, 5), missing(5, 3)), (Ok(0), Ok(2)));
        assert!(missing(5, 6).is_err());
    }
}
