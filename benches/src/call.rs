//! What a log call costs the one who logs.
//!
//! Everything that is measured runs in a process of its own, started by the bench in a [`role`]: its standard output and error
//! go where the log's text goes, so it leaves its account in a file. Each call is timed by the processor's time-stamp counter;
//! what a call costs in processor time is measured in rounds of their own, without a look at any clock between the calls.
//!
//! | subject | module |
//! |-|-|
//! | the time-stamp counter | [`tsc`] |
//! | what many timed calls amount to | [`summary`] |
//! | threads that make calls: at once, in bursts, by the clock of the processor | [`gang`] |
//! | ACS's published figures and the rows they stand in | [`paper`] |
//! | a client program and a container that log, and what came of it | [`program`] |
//! | a hub to log to | [`hub`] |
//! | a hub that is a millisecond away | [`network`], [`delay`] |
//! | other loggers, and the floor | [`peer`] |
//! | what a logger costs, in all ways | [`cost`] |
//! | all of it, one after the other | [`scene`] |
//! | what came of it, and the tables | [`found`], [`report`] |
//! | how a process is told what to do | [`role`] |
//! | what we want to reach | [`goal`] |

pub mod cost;
pub mod delay;
pub mod found;
pub mod gang;
pub mod goal;
pub mod hub;
pub mod network;
pub mod paper;
pub mod peer;
pub mod program;
pub mod report;
pub mod role;
pub mod scene;
pub mod summary;
pub mod tsc;
