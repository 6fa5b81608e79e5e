//! The command line as a person uses it: real processes, real sockets, directories of their own.

mod archive;
mod attach;
mod book;
mod book_hub;
mod bulk;
mod events;
mod export;
mod faults;
mod files;
mod history;
mod inputs;
mod killed;
mod levels;
mod live;
mod replay;
mod routes;
mod ship;
mod site;
mod skewed;
mod spool;
mod tail;
mod tango;
mod terminal;
mod usage;
mod view;
