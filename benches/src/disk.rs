//! Speed of the disk, measured as a write-ahead log uses it: appended blocks, and `fdatasync` twenty times a second.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::payload::Message;

const BLOCK: usize = 1 << 20;
const SYNC_EVERY: Duration = Duration::from_millis(50);
/// Length in bytes at which the file is begun again, as segments are.
const LONGEST: u64 = 1 << 30;

/// Results of the measurement.
#[derive(Debug, Clone, Copy)]
pub struct Disk {
    /// 10^6 bytes a second that were written and synchronised.
    pub mb_per_s: f64,
    /// The median time of an `fdatasync`, in ms.
    pub sync_p50_ms: f64,
    pub sync_max_ms: f64,
}

/// Writes in the directory for about this long.
pub fn measure(dir: &Path, time: Duration) -> io::Result<Disk> {
    fs::create_dir_all(dir)?;
    let path = dir.join(format!("disk-{}.tmp", std::process::id()));
    let measured = write(&path, time);
    let removed = fs::remove_file(&path);
    let disk = measured?;
    removed?;
    Ok(disk)
}

/// Returns the kind of file system of a directory, because figures from memory and from a disk differ.
pub fn kind(dir: &Path) -> String {
    // linux/magic.h
    const KNOWN: [(i64, &str); 5] = [
        (0xef53, "ext4"),
        (0x0102_1994, "tmpfs, which is memory"),
        (0x5846_5342, "xfs"),
        (0x9123_683e, "btrfs"),
        (0x794c_7630, "overlay"),
    ];
    let Ok(found) = rustix::fs::statfs(dir) else { return "unknown".to_owned() };
    let name = KNOWN.iter().find(|(magic, _)| *magic == found.f_type);
    name.map_or_else(|| format!("{:#x}", found.f_type), |(_, name)| (*name).to_owned())
}

/// Makes a directory on the disk that holds the product's data by default. The directory for temporary files may be in
/// memory.
pub fn data_dir() -> io::Result<TempDir> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share"));
    let parent = data.or_else(home).unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&parent)?;
    tempfile::Builder::new().prefix("tampu-bench-").tempdir_in(parent)
}

/// Makes a directory in memory, like a run-time directory, or one for temporary files if there is no such file system.
pub fn run_dir() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("tampu-bench-").tempdir_in(parent)
}

fn write(path: &Path, time: Duration) -> io::Result<Disk> {
    let mut file = OpenOptions::new().create_new(true).append(true).open(path)?;
    let begun = Instant::now();
    let mut synced = begun;
    let mut syncs = Vec::new();
    let (mut written, mut length) = (0, 0);
    // The bytes differ from block to block, in case something below compresses.
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        block.clear();
        Message::new(written, 0, BLOCK).append(&mut block);
        file.write_all(&block)?;
        written += BLOCK as u64;
        length += BLOCK as u64;
        let over = begun.elapsed() >= time;
        if over || synced.elapsed() >= SYNC_EVERY {
            let before = Instant::now();
            file.sync_data()?;
            syncs.push(before.elapsed().as_secs_f64() * 1e3);
            synced = Instant::now();
        }
        if over {
            break;
        }
        if length >= LONGEST {
            file.set_len(0)?;
            length = 0;
        }
    }
    let mb_per_s = written as f64 / 1e6 / begun.elapsed().as_secs_f64();
    syncs.sort_unstable_by(f64::total_cmp);
    let sync_p50_ms = syncs.get(syncs.len() / 2).copied().unwrap_or_default();
    Ok(Disk { mb_per_s, sync_p50_ms, sync_max_ms: syncs.last().copied().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_measures_and_leaves_nothing() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let disk = measure(dir.path(), Duration::ZERO)?;
        assert!(disk.mb_per_s > 0.0 && disk.sync_max_ms >= disk.sync_p50_ms);
        assert_eq!(fs::read_dir(dir.path())?.count(), 0);
        Ok(())
    }
}
