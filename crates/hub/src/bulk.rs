//! Bulk data, as far as a hub has to do with it: the account of transfers it has heard of, and what a site sets for flows. The data
//! itself never comes here.

pub mod settings;
mod transfers;

pub use transfers::TransfersError;
pub(crate) use transfers::{Counts, Transfers};
