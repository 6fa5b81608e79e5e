//! The hub: the roles of one installation put together.
