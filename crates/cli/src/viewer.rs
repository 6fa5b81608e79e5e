//! The viewer of `tampu log view`: the log on the whole terminal, to be read, filtered, searched and saved.
//!
//! What is shown and what a key does is a value, [`state::Viewer`]: it takes records and keys and gives back what it wants done
//! ([`state::Effect`]); it knows no terminal, no bus and no file, so every key is tested as a function. Drawing is another
//! function of it, onto a buffer that a test can read. What comes in, from the bus, the archive or files, comes from threads of
//! its own through one bounded queue, so neither a slow disk nor a slow collector holds up a key.
//!
//! | subject | module |
//! |-|-|
//! | the records kept, which of them are shown, in which order | [`rows`] |
//! | which are shown: level, mode, rules; what is searched for | [`rules`] |
//! | a line that is typed | [`prompt`] |
//! | everything together, and what keys do | [`state`], `keys` |
//! | how it looks | [`draw`], `panels` |
//! | where records come from | [`feed`] |

pub mod draw;
pub mod feed;
mod keys;
mod panels;
pub mod prompt;
pub mod rows;
pub mod rules;
pub mod state;

#[cfg(test)]
mod tests;
