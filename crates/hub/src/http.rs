//! HTTP in the hub: one server for every service. The API, ELOG's pages and the metrics are services on it.
//!
//! | subject | module |
//! |-|-|
//! | sockets and time limits | [`server`] |
//! | limits of concurrent work | [`admission`] |
//! | open connections, and the share of each address | [`connections`] |
//! | requests and answers for an observer | [`exchange`] |
//! | catalogue of routes, services | [`route`], [`mounts`] |
//! | the OpenAPI document, made from the catalogue | [`openapi`] |
//! | sockets, and the TLS handshake | `socket` |
//! | the address of the client | [`client_address`] |
//! | authentication of a request | [`auth`] |
//! | bodies of requests and responses | [`body`] |
//! | the space on the disk that long bodies leave free | [`free_space`] |
//! | connections that leave HTTP; WebSocket | [`tunnel`], [`websocket`] |
//! | answers in steps of time | [`time_steps`] |
//! | percent-encoded paths and queries; headers | [`address`], [`headers`] |
//! | error responses by RFC 9457 | [`problem`] |

pub mod address;
pub mod admission;
pub mod answers;
pub mod auth;
pub mod body;
pub mod change_rate;
pub mod client_address;
pub mod connections;
pub mod exchange;
pub mod free_space;
pub mod headers;
pub mod mounts;
pub mod openapi;
pub mod port_holder;
pub mod problem;
pub mod route;
pub mod server;
mod socket;
pub mod time_steps;
pub mod tunnel;
pub mod websocket;
