//! The roles of a hub, their processes and restarts.

use tampu_hub::roles::{RoleReport, RolesReport};

use crate::plural::counted;

/// Restarts after which a role is worth a look.
const MANY: u64 = 3;

/// The way out for a hub whose roles end again and again.
const LOOK: &str = "the log has the reasons: tampu log query --process 'hub*' --min-level Warning";

/// Describes the roles of one hub. The second text is the way out, if a role does not work or has restarted often.
pub(super) fn describe(hub: &RolesReport) -> (String, Option<&'static str>) {
    let state = |report: &RoleReport| {
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
    let roles: Vec<String> = hub.roles.iter().map(state).collect();
    let found = match hub.in_process {
        true => format!("{}: {} in process {}", hub.host, roles.join(", "), hub.pid),
        false => format!("{}: {}; supervisor is process {}", hub.host, roles.join("; "), hub.pid),
    };
    let is_ill = hub.roles.iter().any(|report| !report.up || report.restarts >= MANY);
    (found, is_ill.then_some(LOOK))
}

#[cfg(test)]
mod tests {
    use tampu_hub::part::HubPart;

    use super::*;

    fn role(role: HubPart, pid: Option<u32>, restarts: u64) -> RoleReport {
        RoleReport { role, pid, up: pid.is_some(), restarts }
    }

    #[test]
    fn roles_are_shown_with_their_processes_and_restarts() {
        let roles = vec![role(HubPart::Node, Some(7), 0), role(HubPart::Book, Some(9), 1)];
        let mut hub = RolesReport { host: "gns".to_owned(), pid: 5, in_process: false, roles };
        let (found, way_out) = describe(&hub);
        assert_eq!(found, "gns: node is process 7; book is process 9, 1 restart; supervisor is process 5");
        assert_eq!(way_out, None);
        hub.roles[1] = role(HubPart::Book, None, 4);
        let (found, way_out) = describe(&hub);
        assert!(found.contains("book has no process, does not work, 4 restarts"), "{found}");
        assert!(way_out.is_some());
        hub.in_process = true;
        hub.roles = vec![role(HubPart::Node, Some(5), 0), role(HubPart::Collector, Some(5), 0)];
        assert_eq!(describe(&hub).0, "gns: node, collector in process 5");
    }
}
