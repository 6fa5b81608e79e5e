//! The demands of the fuzz targets, with seeded mutations on the stable toolchain.

#[path = "../../../fuzz/src/elog.rs"]
mod demands;
#[path = "../../../fuzz/src/mutations.rs"]
mod mutations;

use mutations::hold;

#[test]
fn days_of_entries() {
    hold("elog_entries", demands::elog_entries);
}

#[test]
fn configurations() {
    hold("elog_config", demands::elog_config);
}

#[test]
fn users() {
    hold("elog_users", demands::elog_users);
}

#[test]
fn forms() {
    hold("book_multipart", demands::multipart);
}

#[test]
fn imports_through_forms() {
    hold("book_import", demands::imported);
}

#[test]
fn expressions_of_elog() {
    hold("elog_expression", demands::elog_expression);
}

#[test]
fn addresses_of_elog() {
    hold("elog_address", demands::elog_address);
}
