//! Blocks of memory that a sender lends: filled by the program and sent without a copy.

use tampu_bulk::sender::Block;

use super::sender::{SenderHandle, sender};
use crate::failure::{Failure, guarded};

/// Lends a block of this length.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_block_new(handle: *const SenderHandle, length: usize) -> *mut Block {
    guarded(std::ptr::null_mut(), || {
        if isize::try_from(length).is_err() {
            return Err(Failure::Length(length));
        }
        // SAFETY: by the caller.
        Ok(Box::into_raw(Box::new(unsafe { sender(handle) }?.flow().block(length))))
    })
}

/// Returns the memory of a block.
///
/// # Safety
/// `block` is NULL or was lent and not sent or freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_block_data(block: *mut Block) -> *mut u8 {
    // SAFETY: by the caller.
    guarded(std::ptr::null_mut(), || Ok(unsafe { block.as_mut() }.ok_or(Failure::Null("the block"))?.as_mut_ptr()))
}

/// Sends the beginning of a block, and takes the block back.
///
/// # Safety
/// `handle` is NULL or open; `block` is NULL or was lent by it and not sent or freed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_block_send(handle: *const SenderHandle, block: *mut Block, length: usize) -> i32 {
    guarded(-1, || {
        if block.is_null() {
            return Err(Failure::Null("the block"));
        }
        // SAFETY: the pointer is from `tampu_bulk_block_new`, and this is the caller's last use.
        let mut block = *unsafe { Box::from_raw(block) };
        // SAFETY: by the caller.
        let handle = unsafe { sender(handle) }?;
        if length > block.len() {
            let value = length.to_string();
            return Err(Failure::Odd { what: "the length", value, possible: "at most that of the block" });
        }
        block.truncate(length);
        handle.flow().send(block.freeze())?;
        Ok(0)
    })
}

/// Takes back a block that is not sent.
///
/// # Safety
/// `block` is NULL or was lent and not sent or freed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_block_free(block: *mut Block) {
    guarded((), || {
        if !block.is_null() {
            // SAFETY: the pointer is from `tampu_bulk_block_new`, and this is the caller's last use.
            drop(unsafe { Box::from_raw(block) });
        }
        Ok(())
    });
}
