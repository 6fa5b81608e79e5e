//! Bulk data beside other carriers of blocks: a raw socket loop, iperf3, libzmq, and a request with a response for each
//! block. The last corresponds to the paper's CORBA call.
//!
//! | subject | module |
//! |-|-|
//! | the ways to carry blocks | [`carrier`] |
//! | the raw loops, and requests on the bus | [`peer`] |
//! | Tampu; iperf3 | [`perf`], [`iperf`] |
//! | one row, measured several times | [`row`] |
//! | ALMA's load; a wire of 1 Gbit/s | [`alma`], [`gigabit`] |
//! | bandwidth of the memory; linear growth of times | [`memory`], [`linear`] |
//! | goals | [`goal`], [`verdict`] |
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
pub mod sample;
pub mod verdict;
