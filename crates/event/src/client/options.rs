//! Options of a subscription: attributes, kinds of events, delivery and filter.

use tampu_types::event::{AttributePattern, Kinds};

use crate::filter::Filter;

/// Options of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscribeOptions {
    /// Names and patterns of attributes, in any number.
    pub attributes: Vec<AttributePattern>,
    /// Kinds of events to deliver. Changes of the source, gaps and new configurations are always delivered.
    pub kinds: Kinds,
    /// True if the current value is delivered first.
    pub first: bool,
    /// True if samples lost on a link are requested again. If false, newer values replace them, and no writer waits for
    /// this reader.
    pub reliable: bool,
    /// True if long values are read in their server's memory; see [`SubscribeOptions::in_place`].
    pub in_place: bool,
    /// True if the subscription has readers of its own; see [`SubscribeOptions::alone`].
    pub alone: bool,
    /// Conditions on the readings to deliver.
    pub filter: Filter,
}

impl SubscribeOptions {
    /// Makes options for changes of these attributes, with the current value first.
    pub fn of(attributes: impl IntoIterator<Item = AttributePattern>) -> SubscribeOptions {
        SubscribeOptions {
            attributes: attributes.into_iter().collect(),
            kinds: Kinds::CHANGE,
            first: true,
            reliable: true,
            in_place: false,
            alone: false,
            filter: Filter::default(),
        }
    }

    /// Sets the kinds of events.
    pub fn kinds(mut self, kinds: Kinds) -> SubscribeOptions {
        self.kinds = kinds;
        self
    }

    /// Sets the conditions on readings.
    pub fn filter(mut self, filter: Filter) -> SubscribeOptions {
        self.filter = filter;
        self
    }

    /// Leaves out the current value.
    pub fn without_first(mut self) -> SubscribeOptions {
        self.first = false;
        self
    }

    /// Disables requests for lost samples, for displays that only need the newest value.
    pub fn unreliable(mut self) -> SubscribeOptions {
        self.reliable = false;
        self
    }

    /// Gives the subscription readers of its own, so that its callback may wait. A wait holds the servers back as any slow
    /// reader does, and delays no other subscription of this client. It costs a thread for each server.
    pub fn alone(mut self) -> SubscribeOptions {
        self.alone = true;
        self
    }

    /// Returns whether a server on another host can leave out readings for this subscription alone.
    pub(crate) fn is_judged_at_source(&self) -> bool {
        self.begins_together() && !self.filter.at_source().is_default()
    }

    /// Returns whether a current value that the server sends again is delivered, so that both go on from one value.
    pub(crate) fn begins_together(&self) -> bool {
        self.first && self.reliable
    }

    /// Lets callbacks read long numeric values in the memory of their server on this host, without a copy. This
    /// requires that all subscriptions of this client to the attribute have this option. A server that no longer waits
    /// for this reader may reclaim the memory during the callback. Then a [`tampu_types::event::Reason::Gap`] with the
    /// event's number follows at once, and the callback's result must be discarded. Streams, tables of latest values and
    /// filters keep values, so a subscription with one of these gets checked copies all the same.
    pub fn in_place(mut self) -> SubscribeOptions {
        self.in_place = true;
        self
    }
}
