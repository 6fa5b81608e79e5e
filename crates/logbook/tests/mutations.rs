//! The demands of the fuzz targets, with seeded mutations on the stable toolchain.

#[path = "../../../fuzz/src/book.rs"]
mod demands;
#[path = "../../../fuzz/src/mutations.rs"]
mod mutations;

use mutations::hold;

#[test]
fn queries() {
    hold("book_query", demands::query);
}

#[test]
fn texts() {
    hold("book_shown", demands::shown);
}

#[test]
fn graphs_of_archives() {
    hold("eln_metadata", demands::eln_metadata);
}

#[test]
fn entries_of_other_logbooks() {
    hold("book_foreign", demands::foreign);
}
