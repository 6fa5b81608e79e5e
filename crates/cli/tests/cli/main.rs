//! The command line as a person uses it: real processes, real sockets, directories of their own.

mod faults;
mod files;
mod inputs;
mod killed;
mod levels;
mod live;
mod routes;
mod ship;
mod site;
mod usage;
