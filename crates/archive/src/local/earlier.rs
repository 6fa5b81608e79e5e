//! Backups of earlier releases, whose manifests have no archive id.
//!
//! Decision: files decide. A Parquet file is known by its name, size and checksum, a segment by its header, which has
//! its time of creation, and by its first records. One shared file shows that a backup is this archive's; one file of
//! the same name with other content shows that it is not. Rejected: ids of records, because two collectors of one domain
//! hold records of the same processes.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
    path::Path,
    sync::atomic::Ordering,
};

use crate::{
    local::{
        dirs::segments_dir,
        state::{ArchiveState, Contents},
    },
    manifest::{self, State},
    wal::segment::{SEGMENTS, Segment},
};

/// Bytes of two segments that are compared.
const COMPARED: u64 = 1 << 20;

/// Verdict on a backup without an id.
pub(crate) enum Verdict {
    /// It shares files with the archive.
    Ours,
    /// It belongs to something else, or nothing shows that it belongs to this archive; with the reason.
    NotOurs(String),
}

/// Judges a backup whose manifest has no id.
pub(crate) fn judge(shared: &ArchiveState, target: &Path) -> io::Result<Verdict> {
    let bytes = std::fs::read(target.join(manifest::NAME))?;
    let domain = &shared.options.domain;
    let there = match manifest::read(&bytes, domain, shared.content.layout().name) {
        Ok(read) => read.state,
        Err(why) => return Ok(Verdict::NotOurs(format!("its manifest is not this archive's: {why}"))),
    };
    let own = shared.manifest().state.clone();
    let Contents { segments, .. } = shared.contents();
    let mut shares = any_shared(&own, &there);
    for segment in &segments {
        shares = shares.and(shared_segment(segment, target)?);
    }
    Ok(match shares {
        Shares::Some => Verdict::Ours,
        Shares::Differs(name) => Verdict::NotOurs(format!("it belongs to another archive: its {name} is a different file")),
        Shares::Nothing => Verdict::NotOurs(format!(
            "it looks like a backup of domain '{domain}' from an earlier release, which wrote no archive id, and it shares \
             no file with this archive"
        )),
    })
}

/// Result of a comparison of files of the same name.
enum Shares {
    /// At least one file is the same, and none differs.
    Some,
    /// No file is in both.
    Nothing,
    /// This file differs.
    Differs(String),
}

impl Shares {
    fn and(self, other: Shares) -> Shares {
        match (self, other) {
            (Shares::Differs(name), _) | (_, Shares::Differs(name)) => Shares::Differs(name),
            (Shares::Nothing, Shares::Nothing) => Shares::Nothing,
            _ => Shares::Some,
        }
    }
}

/// Compares the Parquet files of two manifests.
fn any_shared(own: &State, there: &State) -> Shares {
    let both = there.files.iter().filter_map(|(name, entry)| Some((name, entry, own.files.get(name)?)));
    both.fold(Shares::Nothing, |shares, (name, entry, of_own)| {
        shares.and(if (entry.bytes, &entry.crc32c) == (of_own.bytes, &of_own.crc32c) {
            Shares::Some
        } else {
            Shares::Differs(name.clone())
        })
    })
}

/// Compares the beginning of a segment with that of the backup. The backup may have been made when it was shorter.
fn shared_segment(segment: &Segment, target: &Path) -> io::Result<Shares> {
    let name = SEGMENTS.file_name(segment.number);
    let file = match File::open(segments_dir(target).join(&name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Shares::Nothing),
        Err(error) => return Err(error),
    };
    let committed = segment.committed.load(Ordering::Acquire);
    let mut there = Vec::new();
    file.take(COMPARED).read_to_end(&mut there)?;
    if there.is_empty() || there.len() as u64 > committed {
        return Ok(Shares::Differs(name));
    }
    let mut own = vec![0; there.len()];
    segment.file.read_exact_at(&mut own, 0)?;
    Ok(if own == there { Shares::Some } else { Shares::Differs(name) })
}
