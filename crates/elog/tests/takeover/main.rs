//! Needs of real sites on the day after their takeover: everything as elogd does it.

#[path = "../support/desk.rs"]
mod desk;
#[path = "../support/html.rs"]
mod html;

mod access;
mod clients;
mod dates;
mod lists;
mod posting;
