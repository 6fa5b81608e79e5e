//! The files of a role, and their Landlock rules.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

use tampu_log::logger::local::Output;
use tampu_logbook::{mail::settings::MailInAddress, store::postgres::files_of};

use super::calls::Held;
use crate::{config::Config, login::settings::LoginSettings, part::HubPart};

/// Newest rules that this program uses; an older kernel enforces those that it knows.
const ABI_USED: ABI = ABI::V6;

/// Files of the system: clocks and zones, names of users, groups and hosts, libraries that look names up, and what
/// the kernel reports. Landlock lets a process read `/proc` of others only as far as they are in the same sandbox.
const SYSTEM: [&str; 18] = [
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/dev/urandom",
    "/dev/random",
    "/usr/share/zoneinfo",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ssl",
    "/usr/lib",
    "/usr/lib64",
    "/lib",
];

/// The files that a role may use, with all that is below them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Files and directories that are only read.
    pub read: Vec<PathBuf>,
    /// Files and directories that are also written.
    pub write: Vec<PathBuf>,
}

impl Places {
    /// Returns the files of a role. `run` is the domain's run-time directory.
    pub fn of(config: &Config, part: HubPart, run: PathBuf) -> Places {
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        let mut write = vec![run, PathBuf::from("/dev/null")];
        // The settings of the log are read again, and editors replace the file.
        read.extend(
            config
                .file
                .as_deref()
                .map(|file| if file.parent() == Some(Path::new("/etc")) { file.to_owned() } else { directory_of(file) }),
        );
        for output in [&config.log_flags.output, &config.log.output].into_iter().flatten() {
            // A file that is moved away is made again.
            if let Output::File(path) = output {
                write.push(directory_of(path));
            }
        }
        // Certificates are read again when their files are replaced.
        if matches!(part, HubPart::Book | HubPart::Metrics) {
            read.push(config.certificates().path().to_owned());
        }
        // Every role reads the rules, and editors replace the file. A named file is changed by its owner alone.
        let policy = directory_of(&config.policy_file());
        if part == HubPart::Book && config.access.policy.is_none() {
            write.push(policy)
        } else {
            read.push(policy)
        }
        if part == HubPart::Book {
            let book = &config.book;
            read.extend([&book.certificate, &book.certificate_key].into_iter().flatten().map(|path| directory_of(path)));
            read.extend(book.postgres.as_deref().map(files_of).unwrap_or_default());
            // With a database, it has attachments on their way there.
            write.push(config.book_dir());
            read.extend(book.login.iter().flat_map(LoginSettings::files));
            write.extend(book.login.iter().flat_map(LoginSettings::written));
            let mail = &config.mail;
            if mail.host.is_some() {
                write.push(config.mail_dir());
                if let Some(MailInAddress::Socket(path)) = mail.input.as_ref().map(|input| &input.listen) {
                    write.push(directory_of(path));
                }
                // Both files are read again, and may be replaced.
                read.extend([&mail.certificates, &mail.password_file].into_iter().flatten().map(|path| directory_of(path)));
            }
            read.extend(book.webhook_certificates.as_deref().map(directory_of));
            read.extend(book.elog_themes.clone());
            if let Some(follow) = &book.follow {
                read.push(follow.logbooks.clone());
                // The password file stands beside the configuration.
                read.extend(follow.config.as_deref().map(directory_of));
            }
        }
        Places { read, write }
    }

    /// Restricts this thread and all threads that it starts. Places that do not exist have no rule.
    pub(super) fn enforce(&self) -> Result<Held, String> {
        const NAME: &str = "Landlock";
        let text = |why: &dyn std::fmt::Display| why.to_string();
        // Without the right to move files between directories, a logbook cannot keep attachments.
        if Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::Refer).is_err() {
            return Ok(Err(NAME));
        }
        let all = AccessFs::from_all(ABI_USED);
        let reading = AccessFs::from_read(ABI_USED) & !AccessFs::Execute;
        let writing = all & !AccessFs::Execute;
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)
            .and_then(|rules| rules.scope(Scope::Signal))
            .and_then(|rules| rules.create())
            .map_err(|why| text(&why))?;
        let rules = self.read.iter().try_fold(rules, |rules, path| with(rules, path, reading)).map_err(|why| text(&why))?;
        let rules = self.write.iter().try_fold(rules, |rules, path| with(rules, path, writing)).map_err(|why| text(&why))?;
        let status = rules.restrict_self().map_err(|why| text(&why))?;
        let LandlockStatus::Available { effective_abi, .. } = status.landlock else { return Ok(Err(NAME)) };
        match status.ruleset {
            RulesetStatus::NotEnforced => Ok(Err(NAME)),
            _ => Ok(Ok(format!("Landlock ABI {} keeps it to its files", effective_abi as i32))),
        }
    }
}

/// Adds a rule for one place. A file gets the rights that files can have.
fn with(
    rules: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(place) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(ABI_USED) };
    rules.add_rule(PathBeneath::new(place, access))
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::follow::FollowSettings;

    #[test]
    fn a_followed_elog_its_themes_and_a_log_file_are_places_of_the_book() {
        let mut config = Config::parse("[log]\noutput = \"/var/log/hub/book.log\"\n", Path::new("t.toml")).unwrap();
        config.file = Some("/etc/tampu/tampu.toml".into());
        config.book.dir = Some("/srv/book".into());
        config.book.elog_themes = Some("/opt/themes".into());
        config.book.follow = Some(FollowSettings {
            config: Some("/opt/elog/elogd.cfg".into()),
            logbooks: "/srv/logbooks".into(),
            ..FollowSettings::default()
        });
        let has = |paths: &[PathBuf], path: &str| paths.contains(&PathBuf::from(path));
        let book = Places::of(&config, HubPart::Book, "/run/tampu/lab".into());
        assert!(["/etc/tampu", "/opt/themes", "/opt/elog", "/srv/logbooks"].iter().all(|path| has(&book.read, path)), "{book:?}");
        assert!(["/run/tampu/lab", "/srv/book", "/var/log/hub"].iter().all(|path| has(&book.write, path)), "{book:?}");
        let inputs = Places::of(&config, HubPart::Inputs, "/run/tampu/lab".into());
        assert!(!has(&inputs.write, "/srv/book") && !has(&inputs.read, "/srv/logbooks"), "{inputs:?}");
        config.book.postgres = Some("host=db".into());
        let book = Places::of(&config, HubPart::Book, "/run".into());
        assert!(has(&book.write, "/srv/book") && !has(&book.write, &std::env::temp_dir().to_string_lossy()), "{book:?}");
    }
}
