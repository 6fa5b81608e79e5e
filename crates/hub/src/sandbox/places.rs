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
    /// Files that are read, in directories that the role may not read. A new one at their place needs a new rule.
    pub read_files: Vec<PathBuf>,
    /// The same for files that are written.
    pub write_files: Vec<PathBuf>,
}

/// Paths whose directories have secrets that a role must not read.
struct Secrets(Vec<PathBuf>);

impl Secrets {
    fn kept_from(config: &Config, part: HubPart) -> Secrets {
        let mut paths = vec![config.domain_data(), config.certificates().authority_dir().to_owned()];
        paths.extend([&config.file, &config.joined_by, &config.network.key_file].into_iter().flatten().cloned());
        if part != HubPart::Book {
            paths.extend([&config.book.certificate_key, &config.mail.password_file].into_iter().flatten().cloned());
            paths.extend(config.book.login.iter().flat_map(LoginSettings::files));
        }
        Secrets(paths.iter().map(|path| whole(path)).collect())
    }

    /// Returns the directory of a file that may be replaced by a new one; `None` if it has secrets.
    fn directory_of(&self, path: &Path) -> Option<PathBuf> {
        let directory = directory_of(path);
        let whole = whole(&directory);
        (!self.0.iter().any(|secret| secret.starts_with(&whole))).then_some(directory)
    }
}

/// Returns the path without links and from the root, as far as it exists.
fn whole(path: &Path) -> PathBuf {
    let directory = || Some(directory_of(path).canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(directory).or_else(|| std::path::absolute(path).ok()).unwrap_or_else(|| path.to_owned())
}

impl Places {
    /// Returns the files of a role. `run` is the domain's run-time directory.
    pub fn of(config: &Config, part: HubPart, run: PathBuf) -> Places {
        let secrets = Secrets::kept_from(config, part);
        let mut places = Places {
            read: SYSTEM.iter().map(PathBuf::from).collect(),
            write: vec![run, PathBuf::from("/dev/null")],
            ..Places::default()
        };
        for output in [&config.log_flags.output, &config.log.output].into_iter().flatten() {
            // A file that is moved away is made again.
            if let Output::File(path) = output {
                match secrets.directory_of(path) {
                    Some(directory) => places.write.push(directory),
                    None => places.write_files.push(path.clone()),
                }
            }
        }
        // Certificates are read again when their files are replaced.
        if matches!(part, HubPart::Book | HubPart::Metrics | HubPart::Gateway) {
            let directory = config.certificates();
            for file in [directory.authority(), directory.host(), directory.host_key()] {
                places.read_replaceable(&secrets, &file);
            }
        }
        if let (HubPart::Gateway, Some(tokens)) = (part, &config.gateway.tokens) {
            places.read_replaceable(&secrets, tokens);
        }
        if part == HubPart::Book {
            places.of_book(config, &secrets);
        }
        places
    }

    /// Adds a file that may be replaced by a new one.
    fn read_replaceable(&mut self, secrets: &Secrets, path: &Path) {
        match secrets.directory_of(path) {
            Some(directory) if self.read.contains(&directory) => {}
            Some(directory) => self.read.push(directory),
            None => self.read_files.push(path.to_owned()),
        }
    }

    fn of_book(&mut self, config: &Config, secrets: &Secrets) {
        let book = &config.book;
        // The commands of the site change the rules there. A named file is changed by its owner alone.
        if config.access.policy.is_none() {
            self.write.push(directory_of(&config.policy_file()));
        }
        if config.access.change_settings {
            self.write.push(directory_of(&config.settings_file()));
        }
        self.read.extend(book.postgres.as_deref().map(files_of).unwrap_or_default());
        // With a database, it has attachments on their way there.
        self.write.push(config.book_dir());
        self.read.extend(book.login.iter().flat_map(LoginSettings::files));
        self.write.extend(book.login.iter().flat_map(LoginSettings::written));
        let mut replaced = vec![&book.certificate, &book.certificate_key, &book.webhook_certificates];
        let mail = &config.mail;
        if mail.host.is_some() {
            self.write.push(config.mail_dir());
            if let Some(MailInAddress::Socket(path)) = mail.input.as_ref().map(|input| &input.listen) {
                self.write.push(directory_of(path));
            }
            replaced.extend([&mail.certificates, &mail.password_file]);
        }
        replaced.into_iter().flatten().for_each(|path| self.read_replaceable(secrets, path));
        for login in book.login.iter().filter_map(|login| login.kerberos.as_ref()) {
            self.read_replaceable(secrets, &login.keytab);
        }
        self.read.extend(book.elog_themes.clone());
        self.read_files.extend(book.pdf_layout.iter().chain(&book.pdf_files).cloned());
        if let Some(follow) = &book.follow {
            self.read.push(follow.logbooks.clone());
            // The password file stands beside the configuration.
            follow.config.iter().for_each(|path| self.read_replaceable(secrets, path));
        }
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
        let (mut read, mut write) = (self.read.iter().chain(&self.read_files), self.write.iter().chain(&self.write_files));
        let rules = read.try_fold(rules, |rules, path| with(rules, path, reading)).map_err(|why| text(&why))?;
        let rules = write.try_fold(rules, |rules, path| with(rules, path, writing)).map_err(|why| text(&why))?;
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
        assert!(["/opt/themes", "/opt/elog", "/srv/logbooks"].iter().all(|path| has(&book.read, path)), "{book:?}");
        assert!(!has(&book.read, "/etc/tampu"), "{book:?}");
        assert!(["/run/tampu/lab", "/srv/book", "/var/log/hub"].iter().all(|path| has(&book.write, path)), "{book:?}");
        let inputs = Places::of(&config, HubPart::Inputs, "/run/tampu/lab".into());
        assert!(!has(&inputs.write, "/srv/book") && !has(&inputs.read, "/srv/logbooks"), "{inputs:?}");
        config.book.postgres = Some("host=db".into());
        let book = Places::of(&config, HubPart::Book, "/run".into());
        assert!(has(&book.write, "/srv/book") && !has(&book.write, &std::env::temp_dir().to_string_lossy()), "{book:?}");
    }

    #[test]
    fn files_beside_the_configuration_are_places_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let text = "[log]\noutput = \"OUT/hub.log\"\n[network]\nkey_file = \"OUT/keys/domain.key\"\n[book]\n\
                    certificate = \"OUT/site.crt\"\ncertificate_key = \"OUT/keys/site.key\"\n\
                    webhook_certificates = \"OUT/other/hooks.pem\"\n";
        let text = text.replace("OUT", &dir.path().to_string_lossy());
        let mut config = Config::parse(&text, Path::new("t.toml")).unwrap();
        (config.file, config.data) = (Some(at("tampu.toml")), at("data"));
        ["keys", "other", "data"].iter().for_each(|name| std::fs::create_dir(at(name)).unwrap());
        let book = Places::of(&config, HubPart::Book, "/run/tampu/lab".into());
        assert_eq!(book.read_files, [at("site.crt"), at("keys/site.key")], "{book:?}");
        assert_eq!(book.write_files, [at("hub.log")]);
        assert!(book.read.contains(&at("other")), "{book:?}");
        for part in [HubPart::Inputs, HubPart::Metrics] {
            let places = Places::of(&config, part, "/run/tampu/lab".into());
            let all = [places.read, places.write, places.read_files, places.write_files].concat();
            let of_site = all.iter().filter(|path| path.starts_with(dir.path()) && !path.starts_with(at("data/local/cert")));
            assert_eq!(of_site.collect::<Vec<_>>(), [&at("hub.log")], "{part}");
        }
    }
}
