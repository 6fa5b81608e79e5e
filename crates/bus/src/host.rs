//! Incarnations of processes on this host: creating them, and asking the kernel if one has ended.

use std::{
    fs,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use tampu_types::Incarnation;

/// State of a process, as far as this host can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs, though it may be hung.
    Alive,
    /// It has ended.
    Dead,
    /// It runs on another host, so its state is unknown.
    Unknown,
}

/// Returns the first 32 bits of the kernel's boot id; the host name's hash if there is no boot id. It is read once.
pub fn boot() -> u32 {
    static BOOT: OnceLock<u32> = OnceLock::new();
    *BOOT.get_or_init(read_boot)
}

fn read_boot() -> u32 {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if let Some(boot) = id.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        return boot;
    }
    let name = rustix::system::uname().nodename().to_bytes().to_vec();
    // FNV-1a: it has to differ only between hosts without a boot id.
    name.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns a new incarnation of this process; each call gives another.
pub fn incarnation() -> Incarnation {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let before = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1))).unwrap_or(now);
    Incarnation { boot: boot(), pid: std::process::id(), start: now.max(before + 1) }
}

/// Returns the state of an incarnation.
pub fn fate(incarnation: Incarnation) -> Fate {
    if incarnation.boot != boot() {
        return Fate::Unknown;
    }
    let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", incarnation.pid)) else { return Fate::Dead };
    // The name in parentheses may contain any character, so fields are counted from the last parenthesis.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    if matches!(fields.next(), Some("Z" | "X")) {
        return Fate::Dead;
    }
    let started = fields.nth(18).and_then(|ticks| ticks.parse::<u64>().ok()).map(started_ns);
    // The kernel counts starts in hundredths of a second and boot in whole seconds. A process number is not reused that fast.
    const SLACK: u64 = 3_000_000_000;
    if started.is_some_and(|started| started > incarnation.start + SLACK) { Fate::Dead } else { Fate::Alive }
}

/// Reports if an incarnation of this host has ended: it belongs to another boot, or its process is gone.
pub fn is_over(incarnation: Incarnation) -> bool {
    incarnation.boot != boot() || fate(incarnation) == Fate::Dead
}

fn started_ns(ticks_since_boot: u64) -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let boot_seconds = stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok()).unwrap_or(0);
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    boot_seconds * 1_000_000_000 + ticks_since_boot * (1_000_000_000 / ticks_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_differ_and_their_end_is_seen() {
        let (one, two) = (incarnation(), incarnation());
        assert!(one.start < two.start);
        assert_eq!(fate(one), Fate::Alive);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let life = Incarnation { pid: child.id(), ..incarnation() };
        child.wait().unwrap();
        assert_eq!(fate(life), Fate::Dead);
        assert_eq!(fate(Incarnation { start: 0, ..one }), Fate::Dead, "the number was used again");
        assert_eq!(fate(Incarnation { boot: !one.boot, ..one }), Fate::Unknown);
        assert!(!is_over(one) && is_over(life) && is_over(Incarnation { boot: !one.boot, ..one }));
    }
}
