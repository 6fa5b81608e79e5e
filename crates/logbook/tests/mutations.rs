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
