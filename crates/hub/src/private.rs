//! Access to the directories of data: for the hub's user alone, or also for a group of readers.
//!
//! A hub closes the directories that are its own, at each start: an archive made by an earlier release, or by hand, may be open.
//! The process's umask closes the files in them; the program around the hub sets it ([`umask`]).

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use tampu_workers::host::group_id;

use crate::config::{Config, ConfigError, Role};

/// Mode of a directory of the hub's user alone.
const OWNER: u32 = 0o700;
/// Mode of a directory whose files a group may read. New files and directories in it get the group.
const GROUP: u32 = 0o2750;

/// An error of closing the directories of data.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// The group is unknown.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A directory cannot be made.
    #[error("the data directory {path} cannot be written: {why}; name another one with --data DIR (or TAMPU_DATA_DIR)")]
    Make { path: PathBuf, why: io::Error },
    /// A directory cannot be given to the group.
    #[error("{path} cannot be given to the group '{group}' (data_group): {why}; make the hub's user a member of the group")]
    Group { path: PathBuf, group: String, why: io::Error },
}

/// The umask of a hub with this configuration.
pub fn umask(config: &Config) -> u32 {
    if config.data_group.is_some() { 0o027 } else { 0o077 }
}

/// Makes and closes the directories that the roles of this hub write. Returns remarks for the log.
pub(crate) fn close(config: &Config) -> Result<Vec<String>, PrivateError> {
    let group = config.data_group.as_ref().map(|name| known(name)).transpose()?;
    let mut remarks = Vec::new();
    for directory in directories(config) {
        make(&directory)?;
        match (&group, &config.data_group) {
            (Some(group), Some(name)) => {
                // The way to it from the root of the data, where that is not open already.
                let way = directory.ancestors().skip(1).filter(|path| path.starts_with(&config.data));
                let closed = way.filter(|path| !is_passable(path, *group));
                for path in closed.chain([&*directory]) {
                    share(path, *group).map_err(|why| PrivateError::Group { path: path.into(), group: name.clone(), why })?;
                }
            }
            _ => remarks.extend(close_one(&directory)),
        }
    }
    Ok(remarks)
}

/// Makes a directory that only the hub's user can read, unless it is there.
pub(crate) fn make(path: &Path) -> Result<(), PrivateError> {
    let made = DirBuilder::new().recursive(true).mode(OWNER).create(path);
    made.map_err(|why| PrivateError::Make { path: path.to_owned(), why })
}

fn known(group: &str) -> Result<u32, ConfigError> {
    let why = || format!("there is no group '{group}'; make it with 'groupadd {group}', or name another one");
    group_id(group).ok_or_else(|| ConfigError::Value { setting: "data_group".to_owned(), why: why() })
}

/// The directories that belong to this hub alone.
fn directories(config: &Config) -> Vec<PathBuf> {
    let has = |role| config.roles.contains(&role);
    let mut directories = Vec::new();
    let spools = has(Role::Node) && config.spool.enabled;
    if has(Role::Collector) || spools && config.spool.dir.is_none() {
        directories.push(config.domain_data());
    }
    // Parts elsewhere report by themselves that they cannot be made; the hub runs without them.
    let elsewhere = [
        (spools && config.spool.dir.is_some()).then(|| config.spool_dir()),
        has(Role::Book).then(|| config.book_dir()),
        (has(Role::Book) && config.mail.host.is_some()).then(|| config.mail_dir()),
    ];
    directories.extend(
        elsewhere.into_iter().flatten().filter(|path| DirBuilder::new().recursive(true).mode(OWNER).create(path).is_ok()),
    );
    directories
}

/// Returns whether the members of the group can go through a directory.
fn is_passable(path: &Path, group: u32) -> bool {
    fs::metadata(path).is_ok_and(|found| {
        let (mode, is_of_group) = (found.mode(), found.gid() == group);
        is_of_group && mode & 0o010 != 0 || !is_of_group && mode & 0o001 != 0
    })
}

/// Lets the members of the group read.
fn share(path: &Path, group: u32) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.gid() != group {
        chown(path, None, Some(group))?;
    }
    // Changing the group may clear the bit that new files inherit it by.
    fs::set_permissions(path, Permissions::from_mode(GROUP))
}

/// Closes a directory to everybody else. Returns a remark if it was open.
fn close_one(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.mode() & 0o777;
    if mode & 0o077 == 0 {
        return None;
    }
    let path_text = path.display();
    let closed = fs::set_permissions(path, Permissions::from_mode(OWNER))
        .and_then(|()| fs::metadata(path))
        .is_ok_and(|metadata| metadata.mode() & 0o077 == 0);
    Some(if closed {
        format!("{path_text} was open to other users (mode {mode:o}) and is closed; data_group lets a group read")
    } else {
        format!("other users can read {path_text} (mode {mode:o}), and the hub cannot close it; run chmod 700 {path_text}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn an_open_directory_is_closed_with_a_remark_and_a_closed_one_without() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::isolated(dir.path());
        let (data, book) = (config.domain_data(), config.book_dir());
        fs::create_dir_all(&data).unwrap();
        fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
        let remarks = close(&config).unwrap();
        assert_eq!((mode(&data), mode(&book)), (0o700, 0o700));
        assert!(remarks.len() == 1 && remarks[0].contains("was open to other users (mode 755) and is closed"), "{remarks:?}");
        assert_eq!(close(&config).unwrap(), [""; 0]);
        assert_eq!(umask(&config), 0o077);
    }

    #[test]
    fn the_data_root_is_made_for_one_user() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::isolated(dir.path());
        close(&config).unwrap();
        assert_eq!(mode(&config.data), 0o700);
    }

    #[test]
    fn a_group_reaches_the_logbook_of_a_hub_without_an_archive() {
        let dir = tempfile::tempdir().unwrap();
        let own = rustix::process::getegid().as_raw();
        let roles = vec![Role::Book];
        let config = Config { data_group: Some(own.to_string()), roles, ..Config::isolated(dir.path()) };
        assert_eq!(close(&config).unwrap(), [""; 0]);
        let book = config.book_dir();
        for path in book.ancestors().take_while(|path| path.starts_with(&config.data)) {
            assert_eq!((mode(path) & 0o2050, fs::metadata(path).unwrap().gid()), (0o2050, own), "{}", path.display());
        }
        assert_eq!(mode(&config.domain_data()), 0o2750, "it lies on the way");
    }

    #[test]
    fn a_group_may_read_where_the_configuration_names_one() {
        let dir = tempfile::tempdir().unwrap();
        let own = rustix::process::getegid().as_raw();
        let config = Config { data_group: Some(own.to_string()), ..Config::isolated(dir.path()) };
        assert_eq!(close(&config).unwrap(), [""; 0]);
        for path in [&config.data, &config.domain_data(), &config.book_dir()] {
            assert_eq!((mode(path), fs::metadata(path).unwrap().gid()), (0o2750, own), "{}", path.display());
        }
        assert_eq!(umask(&config), 0o027);
        let unknown = Config { data_group: Some("no such group".to_owned()), ..config };
        let error = close(&unknown).unwrap_err().to_string();
        assert!(error.starts_with("data_group: there is no group 'no such group'"), "{error}");
    }
}
