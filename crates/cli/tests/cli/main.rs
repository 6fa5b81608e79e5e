//! The command line as a person uses it: real processes, real sockets, directories of their own.

mod attach;
mod faults;
mod files;
mod killed;
mod levels;
mod live;
mod site;
mod usage;
