//! Numbers of things, in words, as in the findings of a hub.

pub use tampu_hub::plural::counted;
