//! The command `tampu doctor`.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::Args;
use serde::Serialize;
use tampu_bus::{clock::discipline, connect::Settings, run_dir::Origin};
use tampu_hub::{
    book::settings::BookSettings,
    certificates::SHORT_LIFE,
    config::Config,
    setting_changes::{ChangeError, SettingChanges},
    site::health::{self, Grade},
};
use tampu_tls::{CertificateDir, CertificateInfo};
use tampu_types::{ClockState, Level, Time};

use crate::{
    commands::{log::stat::sources::describe_spool, up::HubArgs},
    context::Context,
    failure::{Failure, Outcome, written},
    measure,
    output::table::printable,
    paint::Paint,
    plural::counted,
};

mod guests;
mod logout;
mod roles;

/// Check this host: directories, hub, clock, disk, memory, limits
///
/// Every line is ok, warn or fail, with the way out. Exit code 1 if one fails. With --site, the hosts of the domain are checked instead: nodes,
/// versions, clocks, disks, spools, processes that do not answer, readers that lag or lose.
#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    hub: HubArgs,
    /// Check all hosts of the domain instead of this one
    #[arg(long)]
    site: bool,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    Fail,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    state: State,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    way_out: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, state: State::Ok, found: found.into(), way_out: None }
    }

    fn warn(check: &'static str, found: impl Into<String>, way_out: impl Into<String>) -> Finding {
        Finding { check, state: State::Warn, found: found.into(), way_out: Some(way_out.into()) }
    }

    fn fail(check: &'static str, found: impl Into<String>, way_out: impl Into<String>) -> Finding {
        Finding { check, state: State::Fail, found: found.into(), way_out: Some(way_out.into()) }
    }
}

/// Free space below which a warning is shown, bytes.
const LITTLE_SPACE: u64 = 2 << 30;
/// Speed of a disk below which it cannot store a million records a second, bytes a second.
const SLOW_DISK: f64 = 300e6;
/// A node of many processes needs about this many files.
const FEW_FILES: u64 = 4096;
/// Bytes written to measure a disk.
const PROBE: usize = 64 << 20;

impl Doctor {
    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        if self.site {
            return self.conclude(context, self.site(context)?);
        }
        let config = connect.config()?;
        let settings = self.hub.load(connect)?;
        let (data, certificates) = (settings.domain_data(), settings.certificates());
        let checks: [&dyn Fn() -> Vec<Finding>; 9] = [
            &|| run_dir(&config),
            &|| hub(context, &config),
            &|| self::certificates(&certificates),
            &|| guests(&config, &settings.book),
            &|| changed_settings(&settings).into_iter().collect(),
            &|| vec![clock()],
            &|| disk(&data),
            &|| vec![memory(&config)],
            &|| vec![files()],
        ];
        self.conclude(context, checks.into_iter().flat_map(|check| check()))
    }

    /// Checks the hosts of the domain.
    fn site(&self, context: &Context) -> Result<Vec<Finding>, Failure> {
        let connect = &context.common.connect;
        let participant = connect.join_hub("tampu-doctor")?;
        let found = health::check(&participant).map_err(|error| connect.call_failed(&error))?;
        let finding = |(check, grade, found, way_out): health::Finding| match grade {
            Grade::Ok => Finding::ok(check, found),
            Grade::Warn => Finding::warn(check, found, way_out),
            Grade::Fail => Finding::fail(check, found, way_out),
        };
        Ok(found.into_iter().map(finding).collect())
    }

    /// Shows each finding as soon as it is there.
    fn conclude(&self, context: &Context, findings: impl IntoIterator<Item = Finding>) -> Outcome {
        let paint = Paint::for_stdout(context.common.color);
        let mut failed = 0;
        for finding in findings {
            failed += u32::from(finding.state == State::Fail);
            show(&finding, self.json, paint, &mut std::io::stdout().lock())?;
        }
        if failed > 0 { Err(Failure::Failed(format!("{} failed", counted(u64::from(failed), "check")))) } else { Ok(()) }
    }
}

/// Writes a finding. Names of hubs and their reasons come from other processes.
fn show(finding: &Finding, json: bool, paint: Paint, out: &mut impl Write) -> Outcome {
    if json {
        let line = serde_json::to_string(finding).map_err(|error| Failure::failed("a finding as JSON", error))?;
        return written(writeln!(out, "{line}"));
    }
    let (color, word) = match finding.state {
        State::Ok => (paint.level(Level::Info), "ok  "),
        State::Warn => (paint.level(Level::Warning), "warn"),
        State::Fail => (paint.level(Level::Error), "fail"),
    };
    written(writeln!(out, "{color}{word}{} {:<10} {}", paint.end(), finding.check, printable(&finding.found)))?;
    match &finding.way_out {
        Some(way_out) => written(writeln!(out, "                {}{}{}", paint.dim(), printable(way_out), paint.end())),
        None => Ok(()),
    }
}

fn run_dir(config: &Settings) -> Vec<Finding> {
    match config.run_dir.domain(&config.domain) {
        Ok(dir) => {
            let found = format!("{} is ours alone; {}", dir.path().display(), config.run_dir.origin());
            let restored = dir.restored();
            let dir = match config.run_dir.origin() {
                Origin::Temporary(_) => Finding::warn("run dir", found, "set TAMPU_RUN_DIR to a directory on a tmpfs"),
                _ => Finding::ok("run dir", found),
            };
            let logout = logout::check(config.run_dir.origin()).map(|(why, way_out)| Finding::warn("logout", why, way_out));
            let restored = restored.map(|time| {
                let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
                let at = Time::from_unix(seconds, 0).to_acs();
                let way_out = "see who removes it (a logout without lingering, rm, mv); restart programs that started before: \
                    their log records have no shelter until then";
                Finding::warn("run dir", format!("it vanished, and the node made it anew at {at}"), way_out)
            });
            [Some(dir), logout, restored].into_iter().flatten().collect()
        }
        Err(error) => vec![Finding::fail("run dir", error.to_string(), "choose a directory of your own with TAMPU_RUN_DIR")],
    }
}

fn hub(context: &Context, config: &Settings) -> Vec<Finding> {
    let connect = &context.common.connect;
    let place = match &config.hub {
        Some(hub) => hub.to_string(),
        None => {
            let answers = config.run_dir.domain(&config.domain).is_ok_and(|dir| dir.node_answers());
            if !answers {
                let way_out = "start one with 'tampu up', or name another with --hub ADDRESS; if a hub runs here all the same, its \
                    run-time directory was removed: restart it";
                return vec![Finding::warn("hub", format!("no node of the domain '{}' on this host", config.domain), way_out)];
            }
            "this host's node".to_owned()
        }
    };
    let participant = match connect.join("tampu-doctor") {
        Ok(participant) => participant,
        Err(failure) => {
            let text = failure.text().unwrap_or_default().to_owned();
            return vec![Finding::fail("hub", text, "check its address, the domain and the key")];
        }
    };
    let mut findings = vec![Finding::ok("hub", format!("{place} answers, domain '{}'", config.domain))];
    findings.push(match tampu_log::collector::ask::status(&participant, Duration::from_secs(5)) {
        Ok(status) => {
            let archive = &status["archive"];
            let found =
                format!("{} answers, {} records kept", status["collector"].as_str().unwrap_or("a collector"), archive["records"]);
            match archive["stuck"].as_str() {
                Some(why) => {
                    Finding::fail("collector", format!("{found}, but nothing can be written: {why}"), "make room on its disk")
                }
                None => Finding::ok("collector", found),
            }
        }
        Err(error) => Finding::warn("collector", error.to_string(), "start a hub with the role collector: tampu up"),
    });
    let hubs = tampu_hub::roles::ask(&participant, Duration::from_secs(5)).unwrap_or_default();
    findings.extend(hubs.iter().map(roles::describe).map(|(found, way_out)| match way_out {
        Some(way_out) => Finding::warn("roles", found, way_out),
        None => Finding::ok("roles", found),
    }));
    let spools = tampu_log::spool::reports(&participant, Duration::from_secs(5)).unwrap_or_default();
    findings.extend(spools.iter().map(spool));
    findings
}

fn spool(spool: &serde_json::Value) -> Finding {
    let name = spool["spool"].as_str().unwrap_or("a spool");
    let place = spool["directory"].as_str().unwrap_or("its directory");
    let faults = spool["faults"].as_array().map_or(0, Vec::len);
    match describe_spool(spool) {
        Some(found) if !spool["stuck"].is_null() => Finding::fail("spool", found, format!("make room on the disk of {place}")),
        Some(found) => Finding::warn("spool", found, "waiting records go to a collector as soon as one runs: tampu up"),
        None if faults > 0 => {
            let found = format!("{name}: {faults} places of its files were found damaged");
            Finding::warn("spool", found, format!("the log names them; set-aside files are in {place}"))
        }
        None => Finding::ok("spool", format!("{name} is empty")),
    }
}

/// Checks that no logbook is open to guests by mistake.
fn guests(config: &Settings, book: &BookSettings) -> Vec<Finding> {
    let found = guests::check(config, book).map(|(found, way_out)| match way_out {
        Some(way_out) => Finding::warn("guests", found, way_out),
        None => Finding::ok("guests", found),
    });
    found.into_iter().collect()
}

/// Checks the settings that administrators have changed while the hub ran.
fn changed_settings(config: &Config) -> Option<Finding> {
    const NAME: &str = "settings";
    match SettingChanges::open(config) {
        Ok(changes) => match changes.in_force().changes.len() as u64 {
            0 => None,
            number => {
                let are = if number == 1 { "overrides" } else { "override" };
                Some(Finding::ok(NAME, format!("{} {are} the configuration ('tampu settings')", counted(number, "change"))))
            }
        },
        Err(ChangeError::File { path, why }) if why.kind() == io::ErrorKind::PermissionDenied => {
            let found = format!("{} can be read by the hub's user alone", path.display());
            Some(Finding::warn(NAME, found, "run this as the hub's user"))
        }
        Err(why) => {
            let way_out = "a hub that runs keeps its settings and does not start again: 'tampu settings reset --offline'";
            Some(Finding::fail(NAME, why.to_string(), way_out))
        }
    }
}

/// Checks the life of this host's certificates, if there are any.
fn certificates(directory: &CertificateDir) -> Vec<Finding> {
    const NAME: &str = "cert";
    if !directory.has_host() {
        return Vec::new();
    }
    if let Err(error) = directory.check() {
        return vec![Finding::fail(NAME, error.to_string(), "only the hub's user may read the keys")];
    }
    let life = |(path, way_out): (PathBuf, &str)| match CertificateInfo::read(&path) {
        Err(error) => Finding::fail(NAME, error.to_string(), way_out),
        Ok(info) => {
            let seconds = info.seconds_left(SystemTime::now());
            let found = format!("{} of '{}': {} days left", path.display(), info.common_name, seconds.div_euclid(86_400));
            match seconds {
                ..=0 => Finding::fail(NAME, format!("{} of '{}' has expired", path.display(), info.common_name), way_out),
                _ if seconds < SHORT_LIFE.as_secs() as i64 => Finding::warn(NAME, found, way_out),
                _ => Finding::ok(NAME, found),
            }
        }
    };
    let renewal = "renew it with 'tampu cert renew' on the host with the authority, and copy the files of other hosts to them";
    let authority = "renew it with 'tampu cert renew --authority', and copy the files of other hosts to them";
    [(directory.host(), renewal), (directory.authority(), authority)].map(life).into()
}

fn clock() -> Finding {
    let discipline = discipline::of_this_host();
    let tai = match discipline.tai_offset {
        0 => "TAI is not known".to_owned(),
        offset => format!("TAI is UTC {offset:+} s"),
    };
    match discipline.state {
        ClockState::Synchronised => {
            let error = discipline.error.map(|error| format!(" within {error:?}")).unwrap_or_default();
            Finding::ok("clock", format!("the kernel reports a reference{error}, {tai}"))
        }
        ClockState::Free | ClockState::Stepped => {
            let found = format!("runs free: times of different hosts will not agree; {tai}");
            Finding::warn("clock", found, "run chrony, ntpd or ptp4l")
        }
        ClockState::Unknown => {
            Finding::warn("clock", "the kernel does not report its state", "run chrony, ntpd or ptp4l here or on the host")
        }
    }
}

fn disk(data: &Path) -> Vec<Finding> {
    let there = existing(data);
    let mut findings = Vec::new();
    match rustix::fs::statvfs(&there) {
        Ok(stat) => {
            let free = stat.f_bavail * stat.f_frsize;
            let found = format!("{}: {:.1} GB free", data.display(), free as f64 / 1e9);
            findings.push(if free < LITTLE_SPACE {
                Finding::warn("data", found, "make room, or choose another place with --data DIR")
            } else {
                Finding::ok("data", found)
            });
        }
        Err(error) => {
            findings.push(Finding::fail("data", format!("{}: {error}", data.display()), "choose another place with --data DIR"))
        }
    }
    findings.push(match measure::disk_speed(&there, PROBE) {
        Ok(speed) => {
            let found = format!("{:.0} MB/s synced", speed / 1e6);
            if speed < SLOW_DISK {
                let limit = speed / 300.0 / 1e3;
                Finding::warn("disk", found, format!("about {limit:.0} k records/s can be kept; a faster disk takes more"))
            } else {
                Finding::ok("disk", found)
            }
        }
        Err(error) => {
            Finding::fail("disk", format!("cannot write in {}: {error}", there.display()), "choose another place with --data DIR")
        }
    });
    findings
}

/// The nearest directory above that exists: where the data would be made.
fn existing(path: &Path) -> PathBuf {
    path.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

fn memory(config: &Settings) -> Finding {
    const TMPFS: i64 = 0x0102_1994;
    let place = existing(config.run_dir.path());
    match rustix::fs::statfs(&place) {
        Ok(stat) if stat.f_type != TMPFS => Finding::warn(
            "memory",
            format!("{} is on a disk: loans between processes are slower there", place.display()),
            "set TAMPU_RUN_DIR (or XDG_RUNTIME_DIR) to a directory on a tmpfs, as /dev/shm/tampu-$UID",
        ),
        Ok(stat) => {
            let free = stat.f_bavail * stat.f_bsize as u64;
            let found = format!("{} is memory, {:.1} GB free", place.display(), free as f64 / 1e9);
            if free < 256 << 20 {
                Finding::warn("memory", found, "give the tmpfs more room (mount -o remount,size=...)")
            } else {
                Finding::ok("memory", found)
            }
        }
        Err(error) => Finding::fail("memory", format!("{}: {error}", place.display()), "choose another with TAMPU_RUN_DIR"),
    }
}

fn files() -> Finding {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|line| line.split_whitespace().next())
        .map(|soft| soft.parse::<u64>().unwrap_or(u64::MAX));
    match soft {
        Some(soft) if soft < FEW_FILES => Finding::warn(
            "limits",
            format!("{soft} open files"),
            format!("a node of many processes needs more: ulimit -n {FEW_FILES}"),
        ),
        Some(soft) => Finding::ok("limits", format!("{soft} open files")),
        None => Finding::warn("limits", "the kernel does not report them", "mount /proc"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::When;

    #[test]
    fn what_others_say_cannot_drive_the_terminal() {
        let finding = Finding::fail("hub", "a\x1b[2J\u{202e}b\nc", "run \u{9b}31m");
        let mut out = Vec::new();
        show(&finding, false, Paint::for_stdout(When::Never), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "fail hub        a\\x1b[2J\\u{202e}b⏎c\n                run \\x9b31m\n");
    }
}
