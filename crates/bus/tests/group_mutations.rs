//! Demands on the decoder of a multicast group's datagrams, for changed bytes. The fuzz target in `fuzz/` looks further.
//! `TAMPU_SEED=n` repeats a run.

#[path = "../../../fuzz/src/group.rs"]
mod demands;
#[path = "../../../fuzz/src/mutations.rs"]
mod mutations;

use tampu_bus::group::datagram;

#[test]
fn nothing_opens_but_what_was_sealed() {
    mutations::hold("group", demands::datagrams);
}
