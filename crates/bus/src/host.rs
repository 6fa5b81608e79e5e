//! Incarnations of processes on this host: creating them, and asking the kernel if one has ended.
//!
//! The kernel counts the start of a process in ticks since the boot, the start in an incarnation is UTC. A step of the clock
//! moves one against the other. So the last bits of that time are those of the ticks ([`MARK`]), and tell a process from a later
//! one with its number whatever the clock does.

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

/// Bits of an incarnation's start that are those of its process's start in ticks since the boot: about a millisecond.
const MARK: u64 = (1 << 20) - 1;

/// Returns a new incarnation of this process; each call gives another.
pub fn incarnation() -> Incarnation {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let pid = std::process::id();
    let mark = Running::of(pid).map_or(0, |running| running.ticks) & MARK;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let marked = |last: u64| now.max(last.saturating_add(MARK + 1)) & !MARK | mark;
    let before = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(marked(last))).unwrap_or(0);
    Incarnation { boot: boot(), pid, start: marked(before) }
}

/// A process in the kernel's table.
struct Running {
    has_ended: bool,
    /// Its start in ticks since the boot.
    ticks: u64,
}

impl Running {
    fn of(pid: u32) -> Option<Running> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain any character, so fields are counted from the last parenthesis.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let has_ended = matches!(fields.next(), Some("Z" | "X"));
        Some(Running { has_ended, ticks: fields.nth(18)?.parse().ok()? })
    }
}

/// Returns the state of an incarnation.
pub fn fate(incarnation: Incarnation) -> Fate {
    if incarnation.boot != boot() {
        return Fate::Unknown;
    }
    let Some(running) = Running::of(incarnation.pid) else { return Fate::Dead };
    if running.has_ended {
        return Fate::Dead;
    }
    if running.ticks & MARK == incarnation.start & MARK {
        return Fate::Alive;
    }
    // Another process, or an incarnation whose maker has not marked it.
    // The kernel counts starts in hundredths of a second and boot in whole seconds. A process number is not reused that fast.
    const SLACK: u64 = 3_000_000_000;
    if started_ns(running.ticks) > incarnation.start + SLACK { Fate::Dead } else { Fate::Alive }
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
        assert_eq!(fate(Incarnation { start: one.start & MARK ^ 1, ..one }), Fate::Dead, "the number was used again");
        // After the clock was set forward, or back.
        for step in [3_600_000_000_000, -3_600_000_000_000_i64] {
            let before = Incarnation { start: one.start.wrapping_add_signed(step) & !MARK | one.start & MARK, ..one };
            assert_eq!(fate(before), Fate::Alive, "{step}");
        }
        assert_eq!(fate(Incarnation { boot: !one.boot, ..one }), Fate::Unknown);
        assert!(!is_over(one) && is_over(life) && is_over(Incarnation { boot: !one.boot, ..one }));
    }
}
