//! Bounds of the logbook, its HTTP, its mail and its search.

use super::bound::Bound;

mod accounts;
mod connections;
mod content;
mod mail;
mod pdf;
mod requests;
mod waiting;

/// The bounds of the parts of the logbook, in the order of the page.
pub(super) const BOUNDS: &[&[Bound]] =
    &[connections::BOUNDS, accounts::BOUNDS, requests::BOUNDS, pdf::BOUNDS, mail::BOUNDS, waiting::BOUNDS, content::BOUNDS];
