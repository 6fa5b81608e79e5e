//! Writes an archive of events as this release makes it, most of it in Parquet files: `cargo run -p tampu-event --example
//! event_archive_testdata -- testdata/event-archive/vN`, once a version; the tests then read it for ever.

use std::path::Path;

use tampu_archive::{Stop, upkeep::Upkeep};

#[path = "../tests/support/kept.rs"]
mod kept;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("into which directory?")?;
    let dir = Path::new(&dir);
    std::fs::create_dir_all(dir)?;
    let archive = kept::open(dir);
    for commit in 0..3 {
        kept::add(&archive, &kept::events(1 + 12 * commit));
        if commit < 2 {
            // The events after this compaction stay in a segment.
            archive.upkeep(&Upkeep::Compact, &Stop::default(), &|_| true)?;
        }
    }
    std::fs::write(dir.join("events.jsonl"), kept::lines(&archive).join("\n") + "\n")?;
    drop(archive);
    std::fs::remove_file(dir.join("archive.lock"))?;
    Ok(())
}
