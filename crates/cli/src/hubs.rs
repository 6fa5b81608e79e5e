//! The running hubs of this host, by the run-time directory.

use std::ffi::OsStr;

use tampu_bus::{connect::Settings, run_dir::RunDir};
use tampu_types::{Domain, Incarnation};

/// Returns true if this host has a hub, or processes to meet, of the settings' domain.
pub fn has_one(settings: &Settings) -> bool {
    settings.run_dir.domain(&settings.domain).is_ok_and(|dir| dir.node_answers() || !dir.meeting_sockets().is_empty())
}

/// Returns true if this host has a hub, or another process to meet, of the settings' domain.
pub fn has_another(settings: &Settings) -> bool {
    settings.run_dir.domain(&settings.domain).is_ok_and(|dir| {
        let sockets = dir.meeting_sockets();
        dir.node_answers() || sockets.iter().any(|socket| !is_own(socket.file_stem().unwrap_or_default()))
    })
}

/// Returns true if a socket of this name belongs to this process. Each session makes a new incarnation for its socket,
/// so only the process number identifies it.
fn is_own(stem: &OsStr) -> bool {
    let maker = stem.to_str().and_then(|text| text.parse::<Incarnation>().ok());
    maker.is_some_and(|maker| maker.pid == std::process::id())
}

/// Returns the domains of this user with a running hub on this host, in order.
pub fn running(run_dir: &RunDir) -> Vec<Domain> {
    run_dir.live_hubs().into_iter().filter_map(|hub| Domain::new(hub.domain).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_socket_of_this_process_is_its_own() {
        let one = tampu_bus::host::incarnation();
        let other = tampu_bus::host::incarnation();
        assert_ne!(one, other);
        assert!(is_own(one.to_string().as_ref()) && is_own(other.to_string().as_ref()));
        let foreign = Incarnation { pid: one.pid + 1, ..one };
        assert!(!is_own(foreign.to_string().as_ref()) && !is_own("meeting".as_ref()));
    }
}
