//! Statistics of the logging of a process.

use crate::{
    failure::{Failure, guarded},
    handle::{Handle, logger},
};

/// `tampu_log_statistics`. A later release appends fields: the caller passes the size that it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct StatisticsOfC {
    pub dropped: u64,
    pub published: u64,
    pub bytes: u64,
    pub waited: u64,
    pub high_water: u64,
    pub by_level: [u64; 10],
}

/// Fills in the counters of all loggers of this process. Returns 0, or -1 on failure.
///
/// # Safety
/// `handle` is NULL or open; `statistics` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_stats(handle: *const Handle, statistics: *mut StatisticsOfC, size: usize) -> i32 {
    guarded(-1, || {
        if statistics.is_null() {
            return Err(Failure::Null("the statistics"));
        }
        // SAFETY: by the caller.
        let found = unsafe { logger(handle) }?.stats();
        let told = StatisticsOfC {
            dropped: found.dropped,
            published: found.published,
            bytes: found.bytes,
            waited: found.waited,
            high_water: found.high_water,
            by_level: found.by_level,
        };
        let known = size.min(size_of::<StatisticsOfC>());
        // SAFETY: by the caller `size` bytes may be written; they are plain integers. Unknown fields are 0.
        unsafe {
            statistics.cast::<u8>().write_bytes(0, size);
            std::ptr::from_ref(&told).cast::<u8>().copy_to_nonoverlapping(statistics.cast(), known);
        }
        Ok(0)
    })
}
