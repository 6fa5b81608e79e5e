//! Options of elogd.cfg that people at a page notice, each with its effect.

#[path = "../support/desk.rs"]
mod desk;
#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod browsing;
mod files;
mod shown;
mod threads;
mod writing;
