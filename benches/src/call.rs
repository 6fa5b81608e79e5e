//! Cost of a log call to the thread that makes it.
//!
//! Each measured program runs in a process of its own, which the bench starts in a [`role`]. The log's text uses its
//! standard output and error, so the process leaves its account in a file. Each call is timed by the processor's
//! time-stamp counter. Processor time of a call is measured in rounds of their own, without reading a clock between the
//! calls.
//!
//! | subject | module |
//! |-|-|
//! | the time-stamp counter | [`tsc`] |
//! | summaries of many timed calls | [`summary`] |
//! | threads that make calls: at once, in bursts, by the clock of the processor | [`gang`] |
//! | ACS's published figures and their rows | [`paper`] |
//! | a client program and a container that log, and their accounts | [`program`] |
//! | a hub to log to | [`hub`] |
//! | a hub that is a millisecond away | [`network`], [`delay`] |
//! | other loggers, and the floor | [`peer`] |
//! | the cost of a logger, by all methods | [`cost`] |
//! | amounts of calls, programs to run, marks of measured records | [`amount`], [`paths`], [`marks`] |
//! | the whole sequence of measurements | [`scene`] |
//! | results, and the tables | [`found`], [`report`] |
//! | the start of a process, and its role | [`stage`], [`role`] |
//! | goals | [`goal`] |

pub mod amount;
pub mod cost;
pub mod delay;
pub mod found;
pub mod gang;
pub mod goal;
pub mod hub;
pub mod marks;
pub mod network;
pub mod paper;
pub mod paths;
pub mod peer;
pub mod program;
pub mod report;
pub mod role;
pub mod scene;
pub mod stage;
pub mod summary;
pub mod tsc;
