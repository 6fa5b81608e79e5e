//! A forgotten password: the request for a link, and the link, which sets a new password once.
//!
//! The store keeps the digest of the link's secret. A link ends after [`LIFE`], with the use of any link, with a new
//! password, and with its user. A newer link leaves it valid: anybody can ask for one, and must not end the user's.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tampu_types::Time;

use super::user::User;

/// The kind of the store's records, which are named by the login.
pub const KIND: &str = "password-reset";
/// The time for which a link can be used.
pub const LIFE: Duration = Duration::from_secs(30 * 60);
/// The time in which a user gets one mail at most.
pub const PAUSE: Duration = Duration::from_secs(120);
/// Requests of one address within [`WITHIN`].
pub const OF_ONE_ADDRESS: usize = 5;
/// The time in which requests of an address are counted.
pub const WITHIN: Duration = Duration::from_secs(3600);
/// Requests that are worked on at a time.
pub const MAX_WORKING: usize = 4;

/// A link for a user.
#[derive(Debug, Clone)]
pub struct ResetLink {
    pub user: User,
    /// The secret of the link, which the store does not have.
    pub secret: String,
}

/// Links of a user that are kept: as many as can be made within [`LIFE`].
pub(super) const MOST_LINKS: usize = LIFE.as_secs().div_ceil(PAUSE.as_secs()) as usize;

/// The links of a user as they are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PendingResets {
    #[serde(flatten)]
    pub newest: PendingReset,
    /// Older links that can still be used, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<PendingReset>,
}

impl PendingResets {
    /// Puts a new link before the present ones, without those that have ended.
    pub fn with(present: Option<PendingResets>, newest: PendingReset) -> PendingResets {
        let older = present.into_iter().flat_map(|old| [old.newest].into_iter().chain(old.earlier));
        let live = |link: &PendingReset| link.generation == newest.generation && link.is_within(LIFE, newest.made);
        let earlier = older.filter(live).take(MOST_LINKS - 1).collect();
        PendingResets { newest, earlier }
    }

    /// Returns the link with this digest. Digests of secrets are compared, whose time says nothing about the secret.
    pub fn find(&self, digest: &str) -> Option<&PendingReset> {
        std::iter::once(&self.newest).chain(&self.earlier).find(|link| link.digest == digest)
    }
}

/// A link as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PendingReset {
    /// The digest of the secret.
    pub digest: String,
    /// The generation of the user when the link was made.
    pub generation: u32,
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    pub made: Time,
}

impl PendingReset {
    /// Returns true if the link was made within a time.
    pub fn is_within(&self, time: Duration, now: Time) -> bool {
        let age = now.0.saturating_sub(self.made.0);
        // A link from the future was made before the clock was set back.
        age >= 0 && u128::from(age.unsigned_abs()) < time.as_nanos()
    }
}
