//! Settings of a site for its topics: `[[topic]]` in a file.
//!
//! ```toml
//! [[topic]]
//! topics = "log/*"
//! cache = 134217728
//! ```
//!
//! | beats the ones before | source | form |
//! |-|-|-|
//! | | the service that opens a stream | [`Qos`](crate::Qos) in its code |
//! | 1 | the site | `[[topic]]` of all hubs, sorted by name, the hub of this host last ([`SiteSettings`]) |
//! | 2 | the program | `[[topic]]` in the file that `TAMPU_LOG_CONFIG` names, or [`Settings::qos`](crate::connect::Settings::qos) |
//! | 3 | the environment | the file that `TAMPU_QOS` names |
//!
//! The site's settings may change while a program runs. A stream takes the new values of the fields that can change
//! ([`Field::is_live`]); the others hold for streams that are opened later.
//!
//! Decision: each program reads the settings and applies them itself, as it does with the access rules. A stream needs
//! them when it is opened, and a question to a hub would make a program wait for one. Rejected: settings on a topic of
//! the bus alone, for the same reason; on a host, the node writes them into a file instead.

mod field;
mod heard;
mod patch;
mod program;
mod site;
mod table;

pub use field::{FIELDS, Field};
pub use heard::HeardHubs;
pub use patch::{BadTopicSetting, QosPatch};
pub use program::BadSettingsFile;
pub(crate) use program::{from_file, from_file_of_program};
pub(crate) use site::settings_file;
pub use site::{BadHubSettings, HubSettings, SITE_QOS, SITE_QOS_TYPE, SiteSettings, publish_settings};
pub use table::{Explained, QosTable, Subject};
