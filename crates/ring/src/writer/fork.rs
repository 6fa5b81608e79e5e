//! Resources that a child process must not inherit: the parent's rings and the parent's locks.
//!
//! Decision: a hook that the C library runs in the child of every `fork`. It removes the ring from the only thread of
//! the child, so the call itself needs no check. The child's next record finds no ring and begins an incarnation of its
//! own. Rejected: a comparison of process numbers in each call. It costs time, and a thread-local copy of the number is
//! inherited as well.
//!
//! `exec` needs nothing: mappings, close-on-exec descriptors and thread-local variables end with the old program. Its
//! unread records are recovered as those of a dead process. `vfork` must call `exec`, so nothing is logged between. A
//! raw `clone` that copies the process without the C library runs no hook: such a child must not log.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::RawFd,
    sync::{
        Once,
        atomic::{AtomicI32, AtomicU64, Ordering},
    },
};

use crate::writer::current;

/// Number of forks between the first process and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The process in which a value was made, as distinct from its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

impl Generation {
    pub fn now() -> Generation {
        Generation(GENERATION.load(Ordering::Relaxed))
    }

    pub fn is_now(self) -> bool {
        self == Generation::now()
    }
}

/// A locked descriptor and the file it was of, so that a number used again is not closed by mistake.
struct Entry {
    descriptor: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

const FREE: i32 = -1;
const TAKEN: i32 = -2;

static LOCKED: [Entry; 64] =
    [const { Entry { descriptor: AtomicI32::new(FREE), device: AtomicU64::new(0), inode: AtomicU64::new(0) } }; 64];

/// The hook is there from the first call on.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the hook only makes calls that are allowed between fork and exec: stores, `fstat`, `close`.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Makes children close this descriptor. If the table is full they keep it, and a dead parent looks alive until they
/// end.
pub(crate) fn close_in_children(descriptor: RawFd) -> io::Result<()> {
    watch();
    let (device, inode) = identity(descriptor).ok_or_else(io::Error::last_os_error)?;
    let claim = |entry: &&Entry| entry.descriptor.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if let Some(entry) = LOCKED.iter().find(claim) {
        entry.device.store(device, Ordering::Relaxed);
        entry.inode.store(inode, Ordering::Relaxed);
        entry.descriptor.store(descriptor, Ordering::Release);
    }
    Ok(())
}

/// The descriptor is about to be closed.
pub(crate) fn forget(descriptor: RawFd) {
    for entry in &LOCKED {
        let _ = entry.descriptor.compare_exchange(descriptor, FREE, Ordering::AcqRel, Ordering::Relaxed);
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    current::leave_ring();
    for entry in &LOCKED {
        let descriptor = entry.descriptor.swap(FREE, Ordering::Acquire);
        let expected = (entry.device.load(Ordering::Relaxed), entry.inode.load(Ordering::Relaxed));
        if descriptor >= 0 && identity(descriptor) == Some(expected) {
            // SAFETY: the comparison shows that this is still the locked file; its owner in this child never uses it
            // (`files/lock.rs`).
            unsafe { libc::close(descriptor) };
        }
    }
}

fn identity(descriptor: RawFd) -> Option<(u64, u64)> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `found` is large enough for what fstat writes; it is read only where fstat succeeded.
    unsafe {
        if libc::fstat(descriptor, found.as_mut_ptr()) != 0 {
            return None;
        }
        let found = found.assume_init();
        Some((found.st_dev, found.st_ino))
    }
}
