//! Storage of batches that cannot be read: each is kept aside with the reason, and the other batches proceed.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
};

use parking_lot::Mutex;
use tampu_types::BatchHeader;

/// The directory of rejected batches: each in a file of its own, header and all, and a line a batch in `reasons.jsonl`.
pub(crate) struct Rejected {
    dir: PathBuf,
    limit: u64,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    batches: u64,
    kept: u64,
    /// Size of the directory; `None` until it has been read.
    bytes: Option<u64>,
}

impl Rejected {
    pub(crate) fn new(dir: PathBuf, limit: u64) -> Rejected {
        Rejected { dir, limit, counts: Mutex::default() }
    }

    /// Rejected, and kept of them.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let counts = self.counts.lock();
        (counts.batches, counts.kept)
    }

    /// Counts a sample that cannot be read and keeps it if there is room.
    pub(crate) fn put(&self, header: &BatchHeader, sample: &[u8], why: &str) {
        let mut counts = self.counts.lock();
        counts.batches += 1;
        let present = *counts.bytes.get_or_insert_with(|| self.present());
        let mut bytes = Vec::new();
        header.encode(sample.len() as u32 + 4, &mut bytes);
        bytes.extend_from_slice(&(sample.len() as u32).to_le_bytes());
        bytes.extend_from_slice(sample);
        if present + bytes.len() as u64 > self.limit {
            return;
        }
        // If this write fails too, only the count remains: the collector continues.
        if self.keep(header, &bytes, why).is_ok() {
            counts.kept += 1;
            counts.bytes = Some(present + bytes.len() as u64);
        }
    }

    fn present(&self) -> u64 {
        let Ok(entries) = fs::read_dir(&self.dir) else { return 0 };
        entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    fn keep(&self, header: &BatchHeader, bytes: &[u8], why: &str) -> std::io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        let name = format!("{}-{}-{}.batch", header.incarnation, header.stream, header.first);
        fs::write(self.dir.join(&name), bytes)?;
        let reason = serde_json::json!({
            "file": name, "source": header.source.as_str(), "type": header.type_id, "version": header.type_version, "why": why,
        });
        let mut reasons = OpenOptions::new().create(true).append(true).open(self.dir.join("reasons.jsonl"))?;
        writeln!(reasons, "{reason}")
    }
}
