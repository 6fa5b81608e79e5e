//! The check of the run-time directory's life: systemd's logind removes directories of a user who has logged out.
//!
//! `$XDG_RUNTIME_DIR` goes at the last logout of a user without lingering. With `RemoveIPC=yes`, the default, so do the user's
//! files in `/dev/shm`. A hub in tmux or under nohup lives on then, without its sockets and rings.

use std::{fs, path::Path};

use tampu_bus::run_dir::Origin;
use tampu_workers::host::user_name;

/// The smallest number of a user that logs in. logind leaves system users alone.
const FIRST_USER: u32 = 1000;

/// The facts that decide.
#[derive(Debug, Clone, Copy)]
struct Facts {
    is_system_user: bool,
    lingers: bool,
    removes_ipc: bool,
}

/// Returns the danger and the way out if logind would remove the directory at logout.
pub(super) fn check(origin: &Origin) -> Option<(&'static str, String)> {
    if !Path::new("/run/systemd/system").exists() {
        return None;
    }
    let user = user_name().unwrap_or_default();
    let facts = Facts {
        is_system_user: rustix::process::geteuid().as_raw() < FIRST_USER,
        lingers: Path::new("/var/lib/systemd/linger").join(&user).exists(),
        removes_ipc: removes_ipc(&fs::read_to_string("/etc/systemd/logind.conf").unwrap_or_default()),
    };
    let why = removed_at_logout(origin, facts)?;
    let way_out = format!("loginctl enable-linger {user}, or run the hub as a service (examples/tampu.service)");
    Some((why, way_out))
}

fn removed_at_logout(origin: &Origin, facts: Facts) -> Option<&'static str> {
    if facts.is_system_user || facts.lingers {
        return None;
    }
    match origin {
        Origin::Session => Some("logind removes the run-time directory at the last logout: no lingering"),
        Origin::SharedMemory if facts.removes_ipc => {
            Some("logind removes the run-time directory at the last logout: RemoveIPC=yes, no lingering")
        }
        _ => None,
    }
}

/// Returns the effect of `RemoveIPC` in logind's configuration.
fn removes_ipc(config: &str) -> bool {
    let value = config.lines().filter_map(|line| line.trim().strip_prefix("RemoveIPC=")).next_back();
    !value.is_some_and(|value| matches!(value.trim().to_ascii_lowercase().as_str(), "no" | "false" | "off" | "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_goes_at_logout_is_named_with_the_reason() {
        let user = Facts { is_system_user: false, lingers: false, removes_ipc: true };
        assert!(removed_at_logout(&Origin::SharedMemory, user).is_some_and(|why| why.contains("RemoveIPC")));
        assert!(removed_at_logout(&Origin::Session, user).is_some_and(|why| why.contains("lingering")));
        assert_eq!(removed_at_logout(&Origin::Named, user), None);
        for safe in [Facts { is_system_user: true, ..user }, Facts { lingers: true, ..user }] {
            assert_eq!(removed_at_logout(&Origin::SharedMemory, safe), None, "{safe:?}");
        }
        assert_eq!(removed_at_logout(&Origin::SharedMemory, Facts { removes_ipc: false, ..user }), None);
        assert!(removes_ipc("[Login]\n#RemoveIPC=no\n") && !removes_ipc("RemoveIPC=yes\nRemoveIPC=no\n"));
    }
}
