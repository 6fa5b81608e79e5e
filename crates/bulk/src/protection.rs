//! Protection of a flow between two hosts: the setting of each end, and the level that follows from it.
//!
//! The level of a connection is the higher one of both ends. So an end may demand a level, and no end gets less than it
//! demands. Both levels above none are sealed alike: encryption costs less time than a tag over readable data would.
//! [`Protection::Auto`] demands nothing between two ends of one host, whose traffic does not leave it, and
//! encryption between hosts.

pub use crate::message::ProtectionLevel;

tampu_types::named_enum! {
    /// Protection that one end of a flow demands.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Protection("protection") {
        /// Nothing between two ends of one host, encryption between hosts.
        #[default]
        Auto => "auto",
        /// This end demands nothing. The other end may still demand a level.
        None => "none",
        /// Nobody on the network can change, repeat or add data.
        Authenticated => "authenticated",
        /// The same, and nobody on the network can read data.
        Encrypted => "encrypted",
    }
}

impl Protection {
    /// Returns the level that this setting demands. `one_host` is true if the traffic stays on one host.
    pub fn level(self, one_host: bool) -> ProtectionLevel {
        match self {
            Protection::Auto if one_host => ProtectionLevel::None,
            Protection::None => ProtectionLevel::None,
            Protection::Authenticated => ProtectionLevel::Authenticated,
            Protection::Auto | Protection::Encrypted => ProtectionLevel::Encrypted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_demands_encryption_between_hosts_alone() {
        assert_eq!(Protection::default(), Protection::Auto);
        assert_eq!(Protection::Auto.level(true), ProtectionLevel::None);
        assert_eq!(Protection::Auto.level(false), ProtectionLevel::Encrypted);
        for one_host in [true, false] {
            assert_eq!(Protection::None.level(one_host), ProtectionLevel::None);
            assert_eq!(Protection::Authenticated.level(one_host), ProtectionLevel::Authenticated);
            assert_eq!(Protection::Encrypted.level(one_host), ProtectionLevel::Encrypted);
        }
        assert!(ProtectionLevel::None < ProtectionLevel::Authenticated);
        assert!(ProtectionLevel::Authenticated < ProtectionLevel::Encrypted);
    }
}
