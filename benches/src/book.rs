//! Benchmark of the logbook over HTTP, on a hub that runs as a user starts it. It measures the time and the cost of
//! searches, and the delay of other requests.
//!
//! | part | module |
//! |-|-|
//! | an ELOG site's files, generated from a seed | [`site`] |
//! | a hub with its logbook, and the server of its database | [`place`] |
//! | requests | [`http`] |
//! | the measurements | [`plan`] |
//! | the goals | [`goal`] |

pub mod goal;
pub mod http;
pub mod place;
pub mod plan;
pub mod site;
