//! The logbook over HTTP, at a hub as a person starts it: what its searches take, what they cost, and whether others wait for them.
//!
//! | part | module |
//! |-|-|
//! | an ELOG site's files, of a seed | [`site`] |
//! | a hub with its logbook, and the server of its database | [`place`] |
//! | requests | [`http`] |
//! | what is measured | [`plan`] |
//! | what is to be reached | [`goal`] |

pub mod goal;
pub mod http;
pub mod place;
pub mod plan;
pub mod site;
