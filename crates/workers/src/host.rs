//! Names of this host and of the user this process runs as, and numbers of groups.

mod group;
mod passwd;

pub use group::{group_id, groups_of};
pub use passwd::{Account, account};

/// Name of this host as the kernel has it, which may or may not include the domain.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Login name of the user: `USER` if it is set and not empty, else the name of the effective user in the user database.
/// `None` if neither knows one, as in a container with an arbitrary user id.
pub fn user_name() -> Option<String> {
    std::env::var("USER").ok().filter(|name| !name.is_empty()).or_else(passwd::effective_user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_user_have_names() {
        assert!(!host_name().is_empty());
        assert!(user_name().is_none_or(|name| !name.is_empty()));
        if rustix::process::geteuid().is_root() {
            assert_eq!(passwd::effective_user().as_deref(), Some("root"));
        }
    }
}
