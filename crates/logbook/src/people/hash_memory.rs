//! The memory of password hashing: blocks that are allocated once and used again.
//!
//! Argon2 needs 19 MiB for each hash. An allocator keeps freed memory in an arena of the thread that freed it, so a block for each
//! hash would stay in memory once for each thread. The blocks therefore belong to the process, one for each hash at a time.

use argon2::Block;
use parking_lot::Mutex;

/// Blocks that are kept: as many as passwords are hashed at a time.
pub const KEPT: usize = 2;

/// Blocks that no hash uses.
static FREE: Mutex<Vec<Vec<Block>>> = Mutex::new(Vec::new());

/// Runs `hash` with `count` units of memory of 1 KiB. At most `usual` of them are kept for the next hash.
pub fn with_blocks<T>(count: usize, usual: usize, hash: impl FnOnce(&mut [Block]) -> T) -> T {
    // The lock must not be held while a block is allocated.
    let kept = FREE.lock().pop();
    let mut blocks = kept.unwrap_or_default();
    if blocks.len() < count {
        blocks.resize(count, Block::default());
    }
    let hashed = hash(&mut blocks[..count]);
    if blocks.len() <= usual {
        let mut free = FREE.lock();
        if free.len() < KEPT {
            free.push(blocks);
        }
    }
    hashed
}
