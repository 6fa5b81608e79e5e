//! Support for the tests of ELOG's files and pages.

#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]

pub mod html;
pub mod site;

#[path = "../../../logbook/tests/support/mod.rs"]
mod books;

pub use books::{entry, found, ids, shift_book};
