//! The bus that keeps its promises: order, exact loss, bounded waiting, life.

pub mod clock;
pub mod engine;
pub mod run_dir;
