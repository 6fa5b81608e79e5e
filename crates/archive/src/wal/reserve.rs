//! Space on the disk that an archive leaves free, so that what else is there, such as the logbook, goes on when logs fill it.

use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

use rustix::fs::statvfs;

/// Time for which a look at the disk is good.
const LOOK: Duration = Duration::from_secs(1);
/// The largest share of a disk that is reserved: on a small disk the archive has room, too.
const SHARE: u64 = 20;

/// The looks at the space that stays free.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// Time of the last look that found enough, and the bytes it asked for.
    looked: Option<(Instant, u64)>,
}

impl Reserve {
    /// Returns an error if less than this many bytes are free on the disk of this directory; 0 asks for none.
    pub(crate) fn check(&mut self, bytes: u64, dir: &Path) -> io::Result<()> {
        if bytes == 0 || self.looked.is_some_and(|(looked, of)| of == bytes && looked.elapsed() < LOOK) {
            return Ok(());
        }
        let (free, size) = space(dir)?;
        need(free, size, bytes)?;
        self.looked = Some((Instant::now(), bytes));
        Ok(())
    }
}

/// Returns the free bytes and the size of the disk of a directory.
fn space(dir: &Path) -> io::Result<(u64, u64)> {
    let disk = statvfs(dir)?;
    Ok((disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize)))
}

/// Returns the bytes that must become free on the disk of a directory for the reserve and a quarter more; 0 while the
/// reserve is free.
pub(crate) fn missing(dir: &Path, reserve: u64) -> io::Result<u64> {
    if reserve == 0 {
        return Ok(0);
    }
    let (free, size) = space(dir)?;
    Ok(missing_of(free, size, reserve))
}

fn missing_of(free: u64, size: u64, reserve: u64) -> u64 {
    let reserve = reserve.min(size / SHARE);
    if free >= reserve { 0 } else { (reserve + reserve / 4).saturating_sub(free) }
}

fn need(free: u64, size: u64, reserve: u64) -> io::Result<()> {
    let reserve = reserve.min(size / SHARE);
    if free >= reserve {
        return Ok(());
    }
    let why = format!("{} MiB are free, and collector.min_free_gb leaves {} MiB to others", free >> 20, reserve >> 20);
    Err(io::Error::new(io::ErrorKind::StorageFull, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_reserve_stays_free_and_is_never_more_than_a_twentieth() {
        assert!(need(10 * GIB, 1000 * GIB, GIB).is_ok());
        let error = need(GIB / 2, 1000 * GIB, GIB).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(error.to_string(), "512 MiB are free, and collector.min_free_gb leaves 1024 MiB to others");
        assert!(need(GIB / 20, GIB, GIB).is_ok() && need(GIB / 20 - 1, GIB, GIB).is_err());
        assert_eq!(missing_of(GIB, 1000 * GIB, GIB), 0);
        assert_eq!(missing_of(GIB - 1, 1000 * GIB, GIB), GIB / 4 + 1, "the reserve and a quarter more");
        assert_eq!(missing_of(0, 20 * GIB, 10 * GIB), GIB + GIB / 4);
        assert!(Reserve::default().check(0, Path::new("/nowhere")).is_ok());
        assert!(Reserve::default().check(1, Path::new("/tmp")).is_ok());
    }
}
