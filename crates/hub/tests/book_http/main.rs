//! The logbook over HTTP, as programs and browsers use it: a real hub, real sockets.

mod access;
mod admission;
mod books;
mod bounds;
mod checked;
mod console;
mod dialect;
mod directory;
mod document;
mod elog_access;
mod entries;
mod feeds;
mod files;
mod forms;
mod logins;
mod mail_in;
mod notify;
mod pushes;
mod registrations;
mod routes;
mod schema;
mod seen;
mod sessions;
mod signing;
mod site;
mod time_steps;
