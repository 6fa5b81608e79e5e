//! The cases, by what they are about.

pub mod asking;
pub mod bounds;
pub mod direct;
pub mod history;
pub mod life;
pub mod loans;
pub mod names;
pub mod order;
pub mod presence;
pub mod receipts;
pub mod sharing;
