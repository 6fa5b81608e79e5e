//! What is where on the bus; `spec/events.md` has the table.

use tampu_bus::{Qos, TypeTag};
use tampu_types::{
    Incarnation, SourceName, TopicName,
    event::{DECLARATION_TYPE, EVENT_TYPE, VERSION},
    name::{BadTopic, escape},
};

/// Where every server declares what it has.
pub const NAMES: &str = "event-names";
/// All streams that servers share among their attributes.
pub const ALL_SHARED: &str = "event/*";
/// All streams of single attributes.
pub const ALL_OWN: &str = "event-own/**";

/// The service that describes attributes.
pub const LIST: &str = "event/list";
/// The service that tells current values.
pub const GET: &str = "event/get";
/// The service that sets criteria and periods.
pub const CONF: &str = "event/conf";
/// The service that tells why events come or do not.
pub const DOCTOR: &str = "event/doctor";

/// An event.
pub const EVENT: TypeTag = TypeTag { id: EVENT_TYPE, version: VERSION };
/// A declaration.
pub const DECLARATION: TypeTag = TypeTag { id: DECLARATION_TYPE, version: VERSION };

/// The stream a server's attributes share.
pub fn shared(source: &SourceName) -> String {
    format!("event/{}", escape(source.as_str()))
}

/// The stream of one attribute of a server.
pub fn own(source: &SourceName, attribute: u32) -> String {
    format!("event-own/{}/{attribute}", escape(source.as_str()))
}

/// The service by which one life of a server is asked to write current values into their streams.
pub fn refresh(incarnation: Incarnation) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("event/refresh/{incarnation}"))
}

/// Shared streams: a late reader needs no more history than what was written while it was on its way.
pub fn shared_qos() -> Qos {
    Qos { keep: 1 << 20, ..Qos::default() }
}

/// Streams of single attributes hold long values, of which a few are enough.
pub fn own_qos() -> Qos {
    Qos::default()
}

/// Declarations: everybody who comes reads all of them, and nobody may hold a server up for it.
pub fn names_qos() -> Qos {
    Qos { keep: NAMES_KEPT, cache: 2 * NAMES_KEPT, max_wait: std::time::Duration::from_millis(5), ..Qos::default() }
}

/// Bytes of declarations that late readers find; all are written again before half of it has gone by.
pub const NAMES_KEPT: usize = 64 << 20;
