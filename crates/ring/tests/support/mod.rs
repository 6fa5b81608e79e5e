//! Helpers of the tests of the rings.

#![allow(dead_code)]

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tampu_ring::{Entry, EntryContent, Rings, Settings, Source};
use tampu_types::{Domain, Incarnation, SourceName};

/// The level of a warning.
pub const WARNING: u8 = 6;
/// Nobody waits in a test that wants to see losses.
pub const NO_WAIT: Duration = Duration::ZERO;
/// As long as it takes: what is waited for comes.
pub const LONG: Duration = Duration::from_secs(3600);

/// Settings with a life of their own; the sizes are small.
pub fn settings(directory: Option<PathBuf>) -> Settings {
    static START: AtomicU64 = AtomicU64::new(1);
    let start = START.fetch_add(1, Ordering::Relaxed);
    let source = Source {
        domain: Domain::new("test").unwrap(),
        name: SourceName::new("CONTROL/DV01").unwrap(),
        process: "test".to_owned(),
        host: "here".to_owned(),
        incarnation: Incarnation { boot: boot(), pid: std::process::id(), start },
    };
    Settings { ring_bytes: 4096, max_rings: 4, ..Settings::new(directory, source) }
}

/// This boot, so that the processor's counter can be compared over the end of a process.
fn boot() -> u32 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    u32::from_str_radix(&id[..8], 16).unwrap()
}

/// Writes a record the fast way, where it will do.
pub fn write_now(rings: &Rings, bytes: &[u8], site: u32, voice: u32) -> bool {
    // SAFETY: the rings are borrowed; as many bytes are copied as there are.
    unsafe {
        let Some(room) = rings.pool().room(bytes.len()) else { return false };
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), room.place(), bytes.len());
        room.commit(site, voice);
    }
    true
}

/// Logs bytes as a logger does, the fast way first; says whether they were taken.
pub fn log(rings: &Rings, bytes: &[u8], wait: Duration) -> bool {
    if write_now(rings, bytes, 1, 2) {
        return true;
    }
    let Ok(mut slot) = rings.claim(bytes.len(), WARNING, wait) else { return false };
    assert_eq!(slot.put(bytes), bytes.len());
    slot.commit(1, 2);
    true
}

/// The payload of a record.
pub fn payload(entry: &Entry<'_>) -> Vec<u8> {
    match entry.what {
        EntryContent::Record { payload, .. } => payload.to_vec(),
        other => panic!("{other:?}"),
    }
}
