//! The floor under loans: processes that share memory and nothing else.
//!
//! There are no names, no order beyond one ring, no discovery and no notifications. A writer fills a slot, readers
//! check it, and both sleep 20 us when they have to wait. It shows the limit of memory and processors, with which a bus
//! for large samples can be compared.

use std::{
    fs::OpenOptions,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use memmap2::{MmapOptions, MmapRaw};

use crate::{
    payload::Message,
    process::{RoleMessage, say},
    role::{self, Inbox, Outgoing, Speed},
};

const SLOTS: u64 = 8;
const LINE: usize = 64;
/// Size in bytes of the control words, each in its own cache line. The first counts published samples; the others count
/// the samples that each reader has read.
const CONTROL: usize = 4096;
const MOST_READERS: usize = CONTROL / LINE - 1;
const NAP: Duration = Duration::from_micros(20);

struct Memory {
    map: MmapRaw,
    size: usize,
}

impl Memory {
    fn open(path: &Path, size: usize, create: bool) -> Result<Memory, String> {
        let size = size.next_multiple_of(LINE);
        let file = OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path);
        let file = file.map_err(|e| format!("{}: {e}", path.display()))?;
        let length = CONTROL + size * SLOTS as usize;
        file.set_len(length as u64).map_err(|e| e.to_string())?;
        let map = MmapOptions::new().len(length).map_raw(&file).map_err(|e| e.to_string())?;
        Ok(Memory { map, size })
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        // SAFETY: `index` is at most MOST_READERS, so the word lies in the first page, aligned to a line; all use is atomic.
        unsafe { &*self.map.as_mut_ptr().add(index * LINE).cast::<AtomicU64>() }
    }

    fn slot(&self, number: u64) -> *mut u8 {
        // SAFETY: the slot's number is below SLOTS, and the mapping holds SLOTS slots of this size.
        unsafe { self.map.as_mut_ptr().add(CONTROL + (number % SLOTS) as usize * self.size) }
    }
}

struct Out {
    memory: Memory,
    readers: usize,
    published: u64,
}

impl Outgoing for Out {
    fn publish(&mut self, message: &Message) -> Result<(), String> {
        let done = || (1..=self.readers).map(|reader| self.memory.word(reader).load(Ordering::Acquire)).min().unwrap_or(u64::MAX);
        while self.published >= done().saturating_add(SLOTS) {
            thread::sleep(NAP);
        }
        // SAFETY: every reader has finished with this slot (above) and reads it again only after the store below.
        message.write(unsafe { std::slice::from_raw_parts_mut(self.memory.slot(self.published), message.size) });
        self.published += 1;
        self.memory.word(0).store(self.published, Ordering::Release);
        Ok(())
    }
}

pub fn writer(dir: &Path, readers: usize, size: usize, speed: Speed) -> Result<(), String> {
    if readers > MOST_READERS {
        return Err(format!("at most {MOST_READERS} readers"));
    }
    let path = dir.join("memory");
    let memory = Memory::open(&path, size, true)?;
    say(&RoleMessage::At(path.display().to_string()));
    role::write(Out { memory, readers, published: 0 }, size, speed)
}

pub fn reader(at: &str, number: usize, size: usize) -> Result<(), String> {
    let memory = Memory::open(Path::new(at), size, false)?;
    let inbox = Arc::new(Inbox::new(size));
    let to = Arc::clone(&inbox);
    thread::spawn(move || {
        let mut next = 0;
        loop {
            while memory.word(0).load(Ordering::Acquire) <= next {
                thread::sleep(NAP);
            }
            // SAFETY: the slot is published (above), and the writer does not change it before the store below.
            to.take(unsafe { std::slice::from_raw_parts(memory.slot(next), size) });
            next += 1;
            memory.word(number + 1).store(next, Ordering::Release);
        }
    });
    role::read(&inbox)
}
