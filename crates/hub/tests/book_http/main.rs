//! The logbook over HTTP, as programs and browsers use it: a real hub, real sockets.

mod access;
mod bounds;
mod dialect;
mod document;
mod entries;
mod files;
mod pushes;
mod routes;
mod schema;
mod sessions;
mod site;
mod turns;
