//! `tampu`: the command line, and the only main.
fn main() {}
