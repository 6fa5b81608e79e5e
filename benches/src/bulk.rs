//! Bulk data beside what carries blocks otherwise: a raw socket loop, iperf3, libzmq, and a question with its answer for each block,
//! which is what the paper's CORBA call was.
//!
//! | subject | module |
//! |-|-|
//! | the ways to carry blocks | [`carrier`] |
//! | the raw loops, and questions on the bus | [`peer`] |
//! | ours; iperf3 | [`perf`], [`iperf`] |
//! | one row, measured several times | [`row`] |
//! | ALMA's load; a wire of 1 Gbit/s | [`alma`], [`gigabit`] |
//! | what the memory carries; times along a straight line | [`memory`], [`linear`] |
//! | what we want to reach | [`goal`], [`verdict`] |
//! | the paper's figures | [`figures`] |

pub mod alma;
pub mod carrier;
pub mod figures;
pub mod gigabit;
pub mod goal;
pub mod iperf;
pub mod linear;
pub mod memory;
pub mod peer;
pub mod perf;
pub mod row;
pub mod verdict;
