//! Sandbox of the roles that read bytes from outside: the book, the inputs and the page for Prometheus.
//!
//! | mechanism | effect |
//! |-|-|
//! | Landlock | files outside of the lists of [`places`] can neither be read nor written; no signals to other processes |
//! | seccomp | [`calls`] that a role never needs fail, such as `execve`, `ptrace` and `mount` |
//!
//! Decision: a list of denied calls, not one of allowed ones. A list of allowed calls ends a role when its libraries or
//! the C library change, and the collector's neighbours must not die of an update. Rejected: bubblewrap and namespaces,
//! which need another program or rights that a hub's user may not have.
//!
//! A sandbox applies to the calling thread and the threads that it starts. So the process calls [`apply`] first of all.

use std::{
    fs,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use tampu_bus::run_dir::RunDir;

use mode::SandboxMode;

use crate::{config::Config, part::HubPart};

mod calls;
pub mod mode;
mod places;

pub use places::Places;

/// Errors of a required sandbox, and of rules that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The kernel has not everything.
    #[error("sandbox = \"required\", and this kernel has no {missing}; use sandbox = \"auto\"")]
    Missing {
        /// The mechanism that is missing.
        missing: &'static str,
    },
    /// The kernel rejected the rules.
    #[error("the sandbox cannot be made: {what}: {why}; sandbox = \"off\" starts without it")]
    Rules {
        /// The mechanism that failed.
        what: &'static str,
        /// The reason for the failure.
        why: String,
    },
}

/// A sandbox that holds.
#[derive(Debug)]
pub struct Confinement {
    /// Effect on this kernel, in words for the log.
    pub remark: String,
    watched: Vec<Watched>,
}

/// A path whose rule is about the file or directory that was there.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    made: Option<(u64, u64)>,
    /// True if the role needs a new one as soon as it is removed.
    is_written: bool,
}

impl Watched {
    fn new(path: &Path, is_written: bool) -> Watched {
        Watched { path: path.to_owned(), made: identity(path), is_written }
    }

    fn is_replaced(&self) -> bool {
        let there = identity(&self.path);
        there != self.made && (self.is_written || there.is_some())
    }
}

impl Confinement {
    /// Returns a path that leads to another file or directory than the sandbox has a rule for. The role can use the new
    /// one when it starts again. Without the run-time directory it meets nobody.
    pub fn replaced(&self) -> Option<&Path> {
        self.watched.iter().find(|watched| watched.is_replaced()).map(|watched| &*watched.path)
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Restricts this thread and all threads that it starts.
pub fn apply(config: &Config, part: HubPart) -> Result<Option<Confinement>, SandboxError> {
    if config.sandbox == SandboxMode::Off || !part.is_exposed() {
        return Ok(None);
    }
    let run = config.run.clone().map_or_else(RunDir::from_env, RunDir::at);
    let dir = run.domain(&config.domain).map_err(|why| SandboxError::Rules { what: "Landlock", why: why.to_string() })?;
    let places = Places::of(config, part, dir.path().to_owned());
    for path in &places.write_files {
        // A rule is for a file that exists.
        let opened = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        opened.map_err(|why| SandboxError::Rules { what: "Landlock", why: format!("{}: {why}", path.display()) })?;
    }
    let files = places.read_files.iter().map(|path| Watched::new(path, false));
    let files = files.chain(places.write_files.iter().map(|path| Watched::new(path, true)));
    let watched = [Watched::new(dir.path(), false)].into_iter().chain(files).collect();
    let result = [
        places.enforce().map_err(|why| SandboxError::Rules { what: "Landlock", why })?,
        calls::deny().map_err(|why| SandboxError::Rules { what: "seccomp", why })?,
    ];
    if config.sandbox == SandboxMode::Required
        && let Some(missing) = result.iter().find_map(|held| held.as_ref().err())
    {
        return Err(SandboxError::Missing { missing });
    }
    let words = result.map(|held| held.unwrap_or_else(|missing| format!("no {missing}, which this kernel lacks")));
    Ok(Some(Confinement { remark: format!("sandbox: {}", words.join("; ")), watched }))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Restrictions hold for one thread, so a test needs no process of its own.
    fn confined_as(part: HubPart, config: &Config, test: impl FnOnce(Option<Confinement>) + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| test(apply(config, part).unwrap())).join().unwrap();
        });
    }

    fn confined(config: &Config, test: impl FnOnce(Option<Confinement>) + Send) {
        confined_as(HubPart::Book, config, test);
    }

    #[test]
    fn a_confined_role_reads_its_own_secrets_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let etc = dir.path().join("etc");
        fs::create_dir(&etc).unwrap();
        let at = |name: &str| etc.join(name).to_string_lossy().into_owned();
        let text = format!(
            "[network]\nkey_file = \"{}\"\n[access]\npolicy = \"{}\"\n[book]\ncertificate = \"{}\"\n\
             certificate_key = \"{}\"\n[[book.login]]\nname = \"lab\"\n[book.login.proxy]\nsecret_file = \"{}\"\n",
            at("domain.key"),
            at("policy.toml"),
            at("site.crt"),
            at("site.key"),
            at("proxy.secret")
        );
        let isolated = Config::isolated(dir.path());
        let mut config = Config::parse(&text, Path::new("tampu.toml")).unwrap();
        (config.data, config.run, config.file) = (isolated.data, isolated.run, Some(etc.join("tampu.toml")));
        for name in ["tampu.toml", "domain.key", "policy.toml", "site.crt", "site.key", "proxy.secret"] {
            fs::write(etc.join(name), "secret").unwrap();
        }
        let certificates = config.certificates();
        let of_mast = certificates.of_host("mast");
        for directory in [certificates.path(), certificates.authority_dir(), of_mast.path()] {
            fs::create_dir_all(directory).unwrap();
        }
        let bundled = [certificates.authority_key(), of_mast.host_key()];
        for file in bundled.iter().chain([&certificates.host_key()]) {
            fs::write(file, "secret").unwrap();
        }
        let closed = ["tampu.toml", "domain.key", "policy.toml"].map(|name| etc.join(name));
        let of_book = ["site.crt", "site.key", "proxy.secret"].map(|name| etc.join(name));
        for part in [HubPart::Inputs, HubPart::Metrics, HubPart::Book] {
            confined_as(part, &config, |held| {
                // A kernel without Landlock still has seccomp.
                if !held.unwrap().remark.contains("Landlock ABI") {
                    return;
                }
                let opens = |path: &PathBuf| fs::read(path).is_ok();
                for path in bundled.iter().chain(&closed) {
                    assert!(!opens(path), "{part} reads {}", path.display());
                }
                assert!(fs::read_dir(&etc).is_err() && fs::read_dir(certificates.authority_dir()).is_err(), "{part}");
                for path in &of_book {
                    assert_eq!(opens(path), part == HubPart::Book, "{part}: {}", path.display());
                }
                assert_eq!(opens(&certificates.host_key()), part != HubPart::Inputs, "{part}");
            });
        }
    }

    #[test]
    fn a_confined_book_reads_its_data_and_no_other_files_and_runs_no_program() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::isolated(dir.path());
        fs::create_dir_all(config.book_dir()).unwrap();
        let shadow = dir.path().join("shadow");
        fs::write(&shadow, "root:secret").unwrap();
        confined(&config, |held| {
            let remark = held.unwrap().remark;
            // A kernel without Landlock still has seccomp.
            if remark.contains("Landlock ABI") {
                assert_eq!(fs::read(&shadow).unwrap_err().kind(), std::io::ErrorKind::PermissionDenied, "{remark}");
                assert!(fs::write(dir.path().join("new"), "x").is_err() && fs::read_dir("/root").is_err());
                assert!(fs::read_dir(config.book_dir()).is_ok() && fs::read("/proc/sys/kernel/random/boot_id").is_ok());
            }
            fs::write(config.book_dir().join("entry"), "text").unwrap();
            assert!(remark.contains("seccomp"), "{remark}");
            let error = Command::new("/bin/true").spawn().unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
        });
        assert_eq!(fs::read_to_string(&shadow).unwrap(), "root:secret", "other threads are free");
    }

    #[test]
    fn a_sandbox_that_is_off_confines_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { sandbox: SandboxMode::Off, ..Config::isolated(dir.path()) };
        confined(&config, |held| {
            assert!(held.is_none());
            assert!(Path::new("/").read_dir().is_ok());
        });
    }

    #[test]
    fn a_sandbox_is_outdated_once_the_run_time_directory_was_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        fs::create_dir(&run).unwrap();
        let held = Confinement { remark: String::new(), watched: vec![Watched::new(&run, false)] };
        assert_eq!(held.replaced(), None);
        // The old one still exists elsewhere, so its number is not used again.
        fs::rename(&run, dir.path().join("old")).unwrap();
        assert_eq!(held.replaced(), None, "nothing can be done before it is there again");
        fs::create_dir(&run).unwrap();
        assert_eq!(held.replaced(), Some(&*run));
        // A file that is written has to be made again.
        let log = dir.path().join("hub.log");
        fs::write(&log, "").unwrap();
        let held = Confinement { remark: String::new(), watched: vec![Watched::new(&log, true)] };
        assert_eq!(held.replaced(), None);
        fs::rename(&log, dir.path().join("hub.log.1")).unwrap();
        assert_eq!(held.replaced(), Some(&*log));
    }
}
