//! Writes segments as this release makes them: `cargo run -p tampu-archive --example segment_testdata -- testdata/log-segment/vN`,
//! once a version; the tests then read them for ever.

use std::path::Path;

use tampu_archive::{LocalArchive, Options};

#[path = "../tests/support/mod.rs"]
mod support;
use support::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("into which directory?")?;
    let dir = Path::new(&dir);
    std::fs::create_dir_all(dir)?;
    let archive = LocalArchive::open(dir, Options { roll: 1, ..options() })?;
    for commit in 0..2 {
        let records: Vec<_> = (0..20).map(|number| record(life(1), 0, commit * 20 + number)).collect();
        append(&archive, life(1), 0, commit, &records)?;
        flush(&archive);
    }
    let lines = all(&archive).iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    std::fs::write(dir.join("records.jsonl"), lines.join("\n") + "\n")?;
    drop(archive);
    std::fs::remove_file(dir.join("archive.lock"))?;
    Ok(())
}
