//! Log records end to end: `bench-log`.
//!
//! | subject | module |
//! |-|-|
//! | the cells of a run: what is measured with what | [`plan`] |
//! | one measured cell | [`row`] |
//! | the paper's two tests and its figures | [`paper`] |
//! | what we want to reach | [`goal`] |
//! | the tables | [`report`] |

pub mod goal;
pub mod paper;
pub mod plan;
pub mod report;
pub mod row;
