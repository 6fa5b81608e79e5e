//! The demands of the fuzz target `bulk_seal`, with seeded mutations on the stable toolchain.

use tampu_bulk::{frame, message, seal};

#[path = "../../../fuzz/src/seal.rs"]
mod demands;
#[path = "../../../fuzz/src/mutations.rs"]
mod mutations;

#[test]
fn nothing_opens_but_what_was_sealed() {
    mutations::hold("bulk_seal", demands::sealed);
}
