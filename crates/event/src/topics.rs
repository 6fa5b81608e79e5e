//! Topics and services of events on the bus; `spec/events.md` has the table.

use tampu_bus::{Qos, TypeTag};
use tampu_types::{
    Incarnation, SourceName, TopicName,
    event::{DECLARATION_TYPE, EVENT_TYPE, VERSION},
    name::{BadTopic, escape},
};

/// Topic on which every server declares its attributes.
pub const NAMES: &str = "event-names";
/// Topic filter of all separate streams of attributes.
pub const ALL_OWN: &str = "event-own/**";

/// Service that describes attributes.
pub const LIST: &str = "event/list";
/// Service that returns current values.
pub const GET: &str = "event/get";
/// Service that sets criteria and periods.
pub const CONF: &str = "event/conf";
/// Service that returns facts about present or missing events.
pub const DOCTOR: &str = "event/doctor";

/// Type of event samples.
pub const EVENT: TypeTag = TypeTag { id: EVENT_TYPE, version: VERSION };
/// Type of declaration samples.
pub const DECLARATION: TypeTag = TypeTag { id: DECLARATION_TYPE, version: VERSION };

/// Returns the stream that a server's attributes share.
pub fn shared(source: &SourceName) -> String {
    format!("event/{}", escape(source.as_str()))
}

/// Returns the stream of a server for the processes of one host. It has the events of small attributes that a process there
/// wants. It is for other hosts, and for a process that reads more servers than it has workers.
pub fn of_host(source: &SourceName, boot: u32) -> String {
    format!("event/{}/{boot:08x}", escape(source.as_str()))
}

/// Returns the topic filter of the streams of all servers for one host.
pub fn all_of_host(boot: u32) -> String {
    format!("event/*/{boot:08x}")
}

/// Returns the separate stream of an attribute of a server.
pub fn own(source: &SourceName, attribute: u32) -> String {
    format!("event-own/{}/{attribute}", escape(source.as_str()))
}

/// Returns the service by which one incarnation of a server writes current values into its streams.
pub fn refresh(incarnation: Incarnation) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("event/refresh/{incarnation}"))
}

/// Returns the quality of service of shared streams. A late reader needs only the samples that were written while it
/// was connecting.
pub fn shared_qos() -> Qos {
    Qos { keep: 1 << 20, ..Qos::default() }
}

/// Returns the quality of service of separate streams. They hold long values, of which a few are enough.
pub fn own_qos() -> Qos {
    Qos::default()
}

/// Returns the quality of service of declarations: every new reader reads all of them, and no reader may block a
/// server.
pub fn names_qos() -> Qos {
    Qos { keep: NAMES_KEPT, cache: 2 * NAMES_KEPT, max_wait: std::time::Duration::from_millis(5), ..Qos::default() }
}

/// Bytes of declarations that late readers find. All are written again before half of this has been written since.
pub const NAMES_KEPT: usize = 64 << 20;
