//! Options of a declaration: delivery, redundancy and priority.

/// Delivery of an attribute's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// Streamed without waiting; lost samples are sent again from the cache.
    #[default]
    Streamed,
    /// Acknowledged: [`super::Attribute::push_acknowledged`] returns the receivers of an event. The attribute has a
    /// separate stream, so that its readers are its subscribers.
    Acknowledged,
}

/// Options of a declaration beside the attribute's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributeOptions {
    /// Delivery of the attribute's events.
    pub delivery: Delivery,
    /// True if another process may own the attribute too, with the same option. Subscribers then get it from one of
    /// them.
    pub redundant: bool,
    /// True if its events travel before ordinary data where a link is busy. The attribute has a separate stream, so that its
    /// events keep their order.
    pub urgent: bool,
}
