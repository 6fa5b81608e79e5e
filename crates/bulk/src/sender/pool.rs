//! Memory pool for blocks. A block is filled, sent, and used again when all receivers have acknowledged it.
//!
//! So no page is touched for the first time while data flows, and nothing is copied.

use std::{
    collections::VecDeque,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::shm::Region;

/// Pool of free buffers.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Mutex<Free>,
    /// Most free bytes.
    limit: usize,
}

/// Free buffers, the one used last at the end. A window of short frames leaves thousands.
#[derive(Debug, Default)]
struct Free {
    buffers: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Pool {
    pub fn new(limit: usize) -> Arc<Pool> {
        Arc::new(Pool { free: Mutex::default(), limit })
    }

    /// Returns a block of this length. Its content is undefined: zeros, or an earlier block.
    pub fn block(self: &Arc<Pool>, length: usize) -> Block {
        let mut free = self.free.lock();
        // The buffer used last is most likely in a cache; much larger ones are left to larger blocks.
        let fits = |buffer: &Vec<u8>| buffer.capacity() >= length && buffer.capacity() / 2 <= length.max(4096);
        let fitting = free.buffers.iter().rposition(fits);
        let mut buffer = fitting.and_then(|index| free.buffers.remove(index)).unwrap_or_default();
        free.bytes -= buffer.capacity();
        drop(free);
        buffer.resize(length, 0);
        Block { memory: Memory::Own { buffer, pool: self.clone() } }
    }

    fn give_back(&self, buffer: Vec<u8>) {
        let mut free = self.free.lock();
        free.bytes += buffer.capacity();
        free.buffers.push_back(buffer);
        while free.bytes > self.limit && free.buffers.len() > 1 {
            free.bytes -= free.buffers.pop_front().map_or(0, |oldest| oldest.capacity());
        }
    }
}

/// Block of memory to fill and send.
#[derive(Debug)]
pub struct Block {
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    Own { buffer: Vec<u8>, pool: Arc<Pool> },
    Shared(Region),
}

impl Block {
    /// Makes a block that all receivers on this host read in place.
    pub(crate) fn shared(region: Region) -> Block {
        Block { memory: Memory::Shared(region) }
    }

    /// Shortens the block to so many bytes.
    pub fn truncate(&mut self, length: usize) {
        match &mut self.memory {
            Memory::Own { buffer, .. } => buffer.truncate(length),
            Memory::Shared(region) => region.truncate(length),
        }
    }

    /// Converts the block to shared bytes. The memory is used again when the last clone is dropped.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Own { buffer, .. } => buffer,
            Memory::Shared(region) => region,
        }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Own { buffer, .. } => buffer,
            Memory::Shared(region) => region,
        }
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Memory::Own { buffer, pool } = &mut self.memory {
            pool.give_back(std::mem::take(buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_and_what_waits_is_bounded() {
        let pool = Pool::new(10_000);
        let block = pool.block(4096);
        let place = block.as_ptr();
        let bytes = block.freeze();
        let slice = bytes.slice(10..20);
        drop(bytes);
        assert_eq!(pool.free.lock().bytes, 0, "part of it is in use");
        drop(slice);
        assert_eq!(pool.block(4000).as_ptr(), place);
        let blocks: Vec<Block> = (0..10).map(|_| pool.block(4096)).collect();
        drop(blocks);
        let free = pool.free.lock();
        assert!(free.buffers.len() <= 3);
        assert_eq!(free.bytes, free.buffers.iter().map(Vec::capacity).sum::<usize>());
    }
}
