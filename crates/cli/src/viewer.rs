//! The viewer of `tampu log view`: the log on the whole terminal, with filters, searches and saving.
//!
//! The content and the actions of keys are a value, [`state::Viewer`]. It accepts records and keys, and returns the
//! requested actions ([`state::Effect`]). It knows no terminal, no bus and no file, so every key is tested as a
//! function. Drawing is another function of it, onto a buffer that a test can read. Records from the bus, the archive
//! or files come from separate threads through one bounded queue. So neither a slow disk nor a slow collector delays a
//! key.
//!
//! | subject | module |
//! |-|-|
//! | the kept records, the visible ones, their order | [`rows`] |
//! | filters: level, mode, rules; search patterns | [`rules`] |
//! | a line that is typed | [`prompt`] |
//! | the whole state, and the actions of keys | [`state`], `keys` |
//! | appearance | [`draw`], `panels` |
//! | sources of records | [`feed`] |

pub mod draw;
pub mod feed;
mod keys;
mod panels;
pub mod prompt;
pub mod rows;
pub mod rules;
pub mod state;
pub mod theme;

#[cfg(test)]
mod tests;
