//! Joining the bus: the choice of the engine, its address and the credentials.
//!
//! [`Settings`] is an explicit value. Programs take it from their environment, tests make isolated ones, and
//! [`Settings::open`] returns the engine. No other crate names an engine: their differences stand behind
//! [`Engine`](crate::engine::Engine) and, for the hub's router, behind [`Node`].
//!
//! ```
//! use tampu_bus::{Participant, connect::Settings};
//! use tampu_types::SourceName;
//!
//! # let dir = tempfile::tempdir()?;
//! # let settings = Settings::isolated(dir.path());
//! # if false {
//! let settings = Settings::from_env()?;
//! # }
//! # if cfg!(feature = "zenoh") {
//! let participant = Participant::open(settings, SourceName::new("weather")?)?;
//! assert_eq!(participant.domain().as_str(), "local");
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | variable | meaning |
//! |-|-|
//! | `TAMPU_DOMAIN` | name of the installation; without it `local`, which never leaves the host |
//! | `TAMPU_RUN_DIR` | directory where the processes of this host meet |
//! | `TAMPU_HUB` | a hub elsewhere, instead of this host's node |
//! | `TAMPU_KEY`, `TAMPU_KEY_FILE` | key of the domain, or a file that holds it; required on the network |
//! | `TAMPU_CERTIFICATES` | directory of this host's certificates; TLS is used with them, and required beyond loopback addresses |
//! | `TAMPU_ENCRYPTION` | `none` for plain connections beyond loopback addresses |
//! | `TAMPU_DIRECT` | address at which this process accepts direct links from other hosts |
//! | `TAMPU_LOG_CONFIG`, `TAMPU_QOS` | files with `[[topic]]` ([`crate::topic_settings`]); the second one beats the first |
//! | `TAMPU_ENGINE` | name of the engine; without it that of this host's node, else the first one of this build |

pub mod encryption;
mod endpoint;
mod environment;
mod key;
mod leftovers;
mod node;
mod open;
mod settings;
mod standing;

pub use encryption::Encryption;
pub use endpoint::{BadEndpoint, Endpoint};
pub use environment::BadEnvironment;
pub use key::{BadKey, BadKeyFile, Key};
pub use node::{Node, NodeError, NodeSettings};
pub use open::{engine_names, is_target_of_engine};
pub use settings::{DEFAULT_DOMAIN, Lan, Settings};
