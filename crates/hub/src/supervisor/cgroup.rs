//! Memory limits by cgroup v2: a group of its own for each role, below the group that the hub was started in.
//!
//! ```text
//! <the hub's group>/                 systemd: Delegate=yes
//!   supervisor/                      the process of `tampu up`
//!   book/      memory.max = limit    the process of the role
//! ```
//! The hub divides its group only if it is alone in it and may write to it. So a hub that was started in a shell leaves
//! the session's group alone. A role that needs more memory is killed by the kernel, and nothing else is.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::part::HubPart;

/// Place where cgroup v2 is mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// Name of the supervisor's own group.
const SUPERVISOR: &str = "supervisor";

/// A group that the hub has divided.
#[derive(Debug)]
pub(super) struct Cgroup {
    root: PathBuf,
}

impl Cgroup {
    /// Divides the group of this process. An error is the reason why this is impossible, for the log.
    pub(super) fn divide() -> Result<Cgroup, String> {
        let text = fs::read_to_string("/proc/self/cgroup").map_err(|why| format!("/proc/self/cgroup: {why}"))?;
        let path = own_path(&text).ok_or("this host has no cgroup v2")?;
        Cgroup::divide_at(Path::new(MOUNT).join(path.trim_start_matches('/')), std::process::id())
    }

    fn divide_at(root: PathBuf, pid: u32) -> Result<Cgroup, String> {
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        if !read("cgroup.controllers").split_whitespace().any(|name| name == "memory") {
            return Err(format!("{} has no controller of memory", root.display()));
        }
        // The root of the whole host has no type.
        if !root.join("cgroup.type").exists() {
            return Err(format!("{} is the host's own group", root.display()));
        }
        let processes = read("cgroup.procs");
        if processes.split_whitespace().any(|other| other != pid.to_string()) {
            return Err(format!("{} has other processes", root.display()));
        }
        let failed = |why: io::Error| format!("{} is not delegated to this user: {why}", root.display());
        let own = root.join(SUPERVISOR);
        make(&own).and_then(|()| fs::write(own.join("cgroup.procs"), pid.to_string())).map_err(failed)?;
        fs::write(root.join("cgroup.subtree_control"), "+memory").map_err(failed)?;
        Ok(Cgroup { root })
    }

    /// Puts the process of a role into the role's group, with this limit of memory.
    pub(super) fn hold(&self, part: HubPart, pid: u32, memory: u64) -> io::Result<()> {
        let group = self.root.join(part.name());
        make(&group)?;
        fs::write(group.join("memory.max"), memory.to_string())?;
        // Memory on a disk would make the role slow before it ends. A kernel without swap has no such file.
        let _ = fs::write(group.join("memory.swap.max"), "0");
        fs::write(group.join("cgroup.procs"), pid.to_string())
    }
}

/// Returns the path of this process in cgroup v2, from `/proc/self/cgroup`.
fn own_path(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => Err(why),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with the files of a group. The kernel makes those of the groups below; a directory has none.
    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| fs::write(dir.path().join(name), text).unwrap());
        dir
    }

    #[test]
    fn the_group_of_v2_is_the_line_that_begins_with_zero() {
        assert_eq!(own_path("1:name=systemd:/\n0::/system.slice/tampu.service\n"), Some("/system.slice/tampu.service"));
        assert_eq!(own_path("4:memory:/x\n"), None);
    }

    #[test]
    fn a_group_that_is_not_the_hubs_own_is_left_alone() {
        let memory = ("cgroup.controllers", "cpu memory pids\n");
        let domain = ("cgroup.type", "domain\n");
        for (files, why) in [
            (&[domain, ("cgroup.controllers", "cpu\n")][..], "no controller of memory"),
            (&[memory, ("cgroup.procs", "7\n")], "the host's own group"),
            (&[memory, domain, ("cgroup.procs", "7\n8\n")], "has other processes"),
        ] {
            let dir = group(files);
            let error = Cgroup::divide_at(dir.path().to_owned(), 7).unwrap_err();
            assert!(error.contains(why), "{error}");
            assert!(!dir.path().join(SUPERVISOR).exists());
        }
    }

    #[test]
    fn a_delegated_group_is_divided_by_role() {
        let dir = group(&[("cgroup.controllers", "memory\n"), ("cgroup.type", "domain\n"), ("cgroup.procs", "7\n")]);
        let cgroup = Cgroup::divide_at(dir.path().to_owned(), 7).unwrap();
        cgroup.hold(HubPart::Book, 9, 1 << 30).unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!((read("supervisor/cgroup.procs"), read("cgroup.subtree_control")), ("7".into(), "+memory".into()));
        assert_eq!((read("book/cgroup.procs"), read("book/memory.max")), ("9".into(), "1073741824".into()));
    }
}
