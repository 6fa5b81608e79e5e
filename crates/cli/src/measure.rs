//! Resource usage of processes by the kernel's accounts, and the speed of a disk.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    time::{Duration, Instant},
};

/// Resource usage of one process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Processor time in all its threads.
    pub cpu: Duration,
    /// Resident memory, bytes.
    pub rss: u64,
    /// Resident memory with shared pages divided among their processes, bytes; 0 if the kernel does not report it.
    pub pss: u64,
    /// Number of open sockets.
    pub sockets: usize,
}

/// Returns the usage of a process so far; `None` if there is no such process, or it belongs to another user.
pub fn usage(pid: u32) -> Option<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold any character, so fields are counted from the last parenthesis.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let ticks = number(11)? + number(12)?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Usage {
        cpu: Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / per_second)),
        rss: number(21)? * rustix::param::page_size() as u64,
        pss: pss(pid).unwrap_or(0),
        sockets: sockets(pid),
    })
}

/// Returns the resident memory of this process in bytes. Unlike [`usage`] it walks no page tables, so it can be asked often.
pub fn resident() -> u64 {
    let pages = |statm: String| statm.split_whitespace().nth(1)?.parse::<u64>().ok();
    let pages = fs::read_to_string("/proc/self/statm").ok().and_then(pages);
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

fn pss(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kb| kb * 1024)
}

fn sockets(pid: u32) -> usize {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    let is_socket =
        |entry: &fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
    files.flatten().filter(is_socket).count()
}

/// Measures the speed of synced writes to a directory's disk, in bytes a second.
pub fn disk_speed(directory: &Path, total: usize) -> io::Result<f64> {
    fs::create_dir_all(directory)?;
    let path = directory.join(format!(".tampu-speed-{}", std::process::id()));
    let result = write_through(&path, total);
    let _ = fs::remove_file(&path);
    result
}

fn write_through(path: &Path, total: usize) -> io::Result<f64> {
    // Not zeros: some disks and file systems treat those specially.
    let piece: Vec<u8> = (0..1usize << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut file = File::create(path)?;
    let begun = Instant::now();
    let mut written = 0;
    while written < total {
        file.write_all(&piece)?;
        written += piece.len();
        if written % (16 << 20) == 0 {
            file.sync_data()?;
        }
    }
    file.sync_data()?;
    Ok(written as f64 / begun.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_costs_something() {
        let used = usage(std::process::id()).unwrap();
        assert!(used.rss > 0 && resident() > 0);
        assert_eq!(usage(u32::MAX), None);
    }

    #[test]
    fn a_disk_has_a_speed_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        assert!(disk_speed(directory.path(), 1 << 20).unwrap() > 0.0);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
