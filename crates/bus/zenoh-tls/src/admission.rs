//! Rules of a program about the hosts that may connect.
//!
//! The engine has no place for them, so they are found by the file of the listener's certificate. They are asked for each
//! new connection, and again every [`LOOK`] for open ones: a host that is shut out loses its connections.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

/// Period of the looks at open connections.
pub(crate) const LOOK: Duration = Duration::from_secs(2);

/// Reports if the host with this certificate name may connect, or is told why not.
pub trait HostRule: Send + Sync {
    /// Returns the reason for which the host may not connect.
    fn refusal(&self, host: &str) -> Option<String>;
}

static RULES: Mutex<Vec<(PathBuf, Weak<dyn HostRule>)>> = Mutex::new(Vec::new());

/// Makes listeners that show this certificate ask the rule, as long as somebody holds it.
pub fn ask_for_hosts(certificate: &Path, rule: &Arc<dyn HostRule>) {
    let mut rules = RULES.lock().unwrap_or_else(PoisonError::into_inner);
    rules.retain(|(of, held)| of != certificate && held.strong_count() > 0);
    rules.push((certificate.to_owned(), Arc::downgrade(rule)));
}

/// Returns the reason for which a host may not connect to a listener with this certificate.
pub(crate) fn refusal(certificate: &Path, host: &str) -> Option<String> {
    let rule = {
        let rules = RULES.lock().unwrap_or_else(PoisonError::into_inner);
        rules.iter().find(|(of, _)| of == certificate).and_then(|(_, rule)| rule.upgrade())
    };
    rule.and_then(|rule| rule.refusal(host))
}
