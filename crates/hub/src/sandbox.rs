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
    os::unix::fs::MetadataExt,
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
    run: PathBuf,
    made: Option<(u64, u64)>,
}

impl Confinement {
    /// Returns true if the run-time directory was removed and made again. The rules are about the old one, so the role
    /// can meet nobody until it starts again.
    pub fn is_outdated(&self) -> bool {
        let there = identity(&self.run);
        there.is_some() && there != self.made
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
    let (run, made) = (dir.path().to_owned(), identity(dir.path()));
    let places = Places::of(config, part, run.clone());
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
    Ok(Some(Confinement { remark: format!("sandbox: {}", words.join("; ")), run, made }))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Restrictions hold for one thread, so a test needs no process of its own.
    fn confined(config: &Config, test: impl FnOnce(Option<Confinement>) + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| test(apply(config, HubPart::Book).unwrap())).join().unwrap();
        });
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
        let held = Confinement { remark: String::new(), run: run.clone(), made: identity(&run) };
        assert!(!held.is_outdated());
        // The old one still exists elsewhere, so its number is not used again.
        fs::rename(&run, dir.path().join("old")).unwrap();
        assert!(!held.is_outdated(), "nothing can be done before it is there again");
        fs::create_dir(&run).unwrap();
        assert!(held.is_outdated());
    }
}
