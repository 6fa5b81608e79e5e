//! Attribute events: `bench-event`.
//!
//! | subject | module |
//! |-|-|
//! | the cells of a run: system and conditions | [`plan`] |
//! | one measured cell | [`row`] |
//! | Tampu, through `tampu perf event` | [`ours`] |
//! | real Tango, through `peers/tango_table.py` | [`tango`] |
//! | the paper's table | [`paper`] |
//! | goals | [`goal`] |
//! | the tables | [`report`] |

pub mod goal;
pub mod ours;
pub mod paper;
pub mod plan;
pub mod report;
pub mod row;
pub mod tango;
