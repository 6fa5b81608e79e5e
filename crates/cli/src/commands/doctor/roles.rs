//! The roles of a hub, their processes and restarts.

use tampu_hub::roles::{RoleReport, RolesReport};

use super::Finding;
use crate::plural::counted;

/// Restarts after which a role is worth a look.
const MANY: u64 = 3;

/// Returns the line of one hub.
pub(super) fn finding(hub: &RolesReport) -> Finding {
    let describe = |report: &RoleReport| {
        let mut text = report.role.name().to_owned();
        match report.pid {
            Some(pid) if !hub.in_process => text += &format!(" is process {pid}"),
            None => text += " has no process",
            _ => {}
        }
        if !report.up {
            text += ", does not work";
        }
        if report.restarts > 0 {
            text += &format!(", {}", counted(report.restarts, "restart"));
        }
        text
    };
    let roles: Vec<String> = hub.roles.iter().map(describe).collect();
    let found = match hub.in_process {
        true => format!("{}: {} in process {}", hub.host, roles.join(", "), hub.pid),
        false => format!("{}: {}; supervisor is process {}", hub.host, roles.join("; "), hub.pid),
    };
    let look = "the log has the reasons: tampu log query --process 'hub*' --min-level Warning";
    if hub.roles.iter().any(|report| !report.up || report.restarts >= MANY) {
        Finding::warn("roles", found, look)
    } else {
        Finding::ok("roles", found)
    }
}

#[cfg(test)]
mod tests {
    use tampu_hub::part::HubPart;

    use super::*;
    use crate::commands::doctor::State;

    fn role(role: HubPart, pid: Option<u32>, restarts: u64) -> RoleReport {
        RoleReport { role, pid, up: pid.is_some(), restarts }
    }

    #[test]
    fn roles_are_shown_with_their_processes_and_restarts() {
        let roles = vec![role(HubPart::Node, Some(7), 0), role(HubPart::Book, Some(9), 1)];
        let mut hub = RolesReport { host: "gns".to_owned(), pid: 5, in_process: false, roles };
        let line = finding(&hub);
        assert_eq!(line.found, "gns: node is process 7; book is process 9, 1 restart; supervisor is process 5");
        assert_eq!(line.state, State::Ok);
        hub.roles[1] = role(HubPart::Book, None, 4);
        let line = finding(&hub);
        assert!(line.found.contains("book has no process, does not work, 4 restarts"), "{}", line.found);
        assert_eq!(line.state, State::Warn);
        hub.in_process = true;
        hub.roles = vec![role(HubPart::Node, Some(5), 0), role(HubPart::Collector, Some(5), 0)];
        assert_eq!(finding(&hub).found, "gns: node, collector in process 5");
    }
}
