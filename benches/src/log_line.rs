//! Log records end to end: `bench-log`.
//!
//! | subject | module |
//! |-|-|
//! | the cells of a run: system and conditions | [`plan`] |
//! | one measured cell | [`row`] |
//! | the paper's two tests and its figures | [`paper`] |
//! | goals | [`goal`] |
//! | the tables | [`report`] |

pub mod goal;
pub mod paper;
pub mod plan;
pub mod report;
pub mod row;
