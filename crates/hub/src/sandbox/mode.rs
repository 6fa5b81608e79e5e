//! The setting that chooses a sandbox.

use serde::{Deserialize, Serialize};

tampu_types::named_enum! {
    /// The setting `sandbox`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SandboxMode("sandbox mode") {
        /// Uses what the kernel has, and logs it.
        #[default]
        Auto => "auto",
        /// Confines no role.
        Off => "off",
        /// Does not start a role without the whole sandbox.
        Required => "required",
    }
}
