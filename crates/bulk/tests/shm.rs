//! The transfers of `suite/transfers.rs`, through shared memory.

mod support;

use tampu_bulk::message::{Cause, Transport};

/// The transport of the data.
pub const WAY: Transport = Transport::Shm;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

/// The causes in the reports of a skipped receiver.
pub const CAUSES: &[Cause] = &[Cause::Slow];

include!("suite/transfers.rs");

#[test]
fn a_block_from_elsewhere_arrives_while_blocks_that_are_filled_have_all_of_the_memory() {
    let (_receiver, sender, told) = pair(
        |_| (),
        |flow| {
            flow.window = 1 << 20;
            flow.frame = 64 << 10;
        },
    );
    let flow = &sender.flows()[0];
    assert!(flow.wait_for(1, WAIT));
    let filled: Vec<_> = (0..40)
        .map(|_| {
            let mut block = flow.block(64 << 10);
            block.fill(0xee);
            block
        })
        .collect();
    flow.start(&[7; 1000]).unwrap();
    flow.send(pattern(1, 300_000)).unwrap();
    assert!(flow.stop().unwrap().complete());
    let seen = told.take_until_stop();
    assert_eq!(seen[0], Told::Start(vec![7; 1000]));
    assert!(bytes_of(&seen) == pattern(1, 300_000));
    drop(filled);
}
