//! Faults of mapped files: a page whose file was shortened becomes an empty page of this process.
//!
//! A store to a page behind the end of its file, or a load from it, raises SIGBUS, which ends the process. Every process
//! of the same user can shorten a file in the run directory. A hub maps files of many processes, and must outlive them
//! all. So it calls [`survive_truncation`] once. From then on the handler of SIGBUS puts an anonymous page of zeros in
//! the place of the missing one, and marks the mapping as lost. The owner of the mapping learns that from `is_lost`.
//!
//! Decision: a handler, because it covers each kind of file without a cost for the intact ones. Rejected: sealed memory,
//! which has no path that a process of another language can open. Rejected: a copy by `pread`, which would cost a system
//! call for each record and acknowledgement.
//!
//! Invariants:
//! - The table holds exactly the ranges that live [`Space`](crate::space::Space)s own. A range is entered after it is
//!   mapped and left before it is unmapped. So the handler replaces pages of this crate's mappings alone.
//! - The handler runs in the thread that touched the page, which borrows the `Space`: it cannot be unmapped meanwhile.
//! - The handler makes no allocation and takes no lock: it loads atomics and calls `mmap`.
//! - Tables are never freed, so the handler reads them without a lock.
//! - Any other SIGBUS goes to the handler that was there before, or ends the process as before.
//!
//! To the protocols on top, a lost page is the same as a writer that overwrites everything with zeros: they distrust the
//! bytes of other processes anyway.

use std::{
    ffi::{c_int, c_void},
    io,
    mem::MaybeUninit,
    ptr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
};

/// Ranges in one table.
const RANGES: usize = 256;
/// `si_code` of an address that has no page: the file is too short.
const BUS_ADRERR: c_int = 2;

/// The addresses of one mapping; free while `start` is 0.
pub(crate) struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
    lost: AtomicBool,
}

struct Ranges {
    ranges: [Range; RANGES],
    next: AtomicPtr<Ranges>,
}

impl Range {
    const fn free() -> Range {
        Range { start: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) }
    }

    /// Reports if a page of the mapping was replaced, so its bytes are no longer those of the file.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    fn holds(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        // The entry may be in other hands meanwhile.
        start != 0 && (start..end).contains(&address) && self.start.load(Ordering::Acquire) == start
    }
}

impl Ranges {
    const fn new() -> Ranges {
        Ranges { ranges: [const { Range::free() }; RANGES], next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Ranges> {
        // SAFETY: null, or a table that `add` leaked: it lives for ever, and is only read through shared references.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

static FIRST: Ranges = Ranges::new();
/// Free entries of all tables; `None` before the first use.
static FREE: Mutex<Option<Vec<&'static Range>>> = Mutex::new(None);
/// Pages that were replaced.
static LOST: AtomicU64 = AtomicU64::new(0);
/// The handler that was there before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
/// Bytes of a page.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// Enters the addresses of a new mapping.
pub(crate) fn enter(start: usize, length: usize) -> &'static Range {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    let free = free.get_or_insert_with(|| FIRST.ranges.iter().collect());
    let range = free.pop().unwrap_or_else(|| {
        let added: &'static Ranges = Box::leak(Box::new(Ranges::new()));
        let mut last = &FIRST;
        while let Some(next) = last.next() {
            last = next;
        }
        last.next.store(ptr::from_ref(added).cast_mut(), Ordering::Release);
        free.extend(&added.ranges[1..]);
        &added.ranges[0]
    });
    range.lost.store(false, Ordering::Relaxed);
    range.end.store(start + length, Ordering::Release);
    range.start.store(start, Ordering::Release);
    range
}

/// Takes the addresses out, before they are unmapped.
pub(crate) fn leave(range: &'static Range) {
    range.start.store(0, Ordering::Release);
    FREE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().push(range);
}

/// Installs the handler for this process: a mapped file that another process shortens costs its content, not the
/// process. Further calls do nothing.
pub fn survive_truncation() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    PAGE.store(rustix::param::page_size(), Ordering::Release);
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null action asks for the present one, which the kernel writes to `before`.
    if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed bytes are a value of this C struct, and the call above has filled it.
    let _ = BEFORE.set(unsafe { before.assume_init() });
    // SAFETY: zeroed bytes are a value of this C struct.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = replace_page;
    action.sa_sigaction = handler as usize;
    // A thread whose stack is at its end has another one for signals.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that SA_SIGINFO demands, and does only what a handler may (see the module).
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    *installed = true;
    Ok(())
}

/// Returns the number of pages that were replaced since the process began.
pub fn lost_pages() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// The handler of SIGBUS.
extern "C" fn replace_page(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t`, whose address is set for SIGBUS.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    if code != BUS_ADRERR || !replace(address) {
        pass_on(signal, info, context);
    }
}

/// Puts a page of zeros where the file has none. Returns false if the address is in no mapping of this crate.
fn replace(address: usize) -> bool {
    let mut table = Some(&FIRST);
    let mut found = false;
    while let Some(ranges) = table {
        for range in ranges.ranges.iter().filter(|range| range.holds(address)) {
            range.lost.store(true, Ordering::Release);
            found = true;
        }
        table = ranges.next();
    }
    if !found {
        return false;
    }
    let page = PAGE.load(Ordering::Acquire);
    let start = ptr::without_provenance_mut::<c_void>(address & !(page - 1));
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    // SAFETY: the page lies in a live mapping of this crate, by the table. Its owner keeps the addresses, and reads its
    // bytes as memory that others change at any time.
    let placed = unsafe { libc::mmap(start, page, protection, flags, -1, 0) };
    LOST.fetch_add(1, Ordering::Relaxed);
    placed != libc::MAP_FAILED
}

/// Leaves a signal to the handler that was there before.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(before) = BEFORE.get() else { return };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: restores an action that was installed before. The instruction then faults again, and ends the process.
            unsafe { libc::sigaction(signal, ptr::from_ref(before), ptr::null_mut()) };
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler that was installed with SA_SIGINFO has this signature.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: a handler that was installed without SA_SIGINFO has this signature.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::Command, sync::atomic::AtomicU64 as Word};

    use super::*;
    use crate::{Mapping, MirroredRing, Overwritten, RingMemory, RingView, create_unnamed};

    #[test]
    fn a_mapping_outlives_its_file() {
        survive_truncation().unwrap();
        let file = create_unnamed("test", 8192).unwrap();
        let (writer, reader) = (Mapping::read_write(&file, 8192).unwrap(), Mapping::read_only(&file, 8192).unwrap());
        writer.word(4096).store(7, Ordering::Relaxed);
        assert!(reader.word(4096).load(Ordering::Relaxed) == 7 && !reader.is_lost());
        let before = lost_pages();
        file.set_len(0).unwrap();
        assert_eq!(reader.word(4096).load(Ordering::Relaxed), 0);
        writer.word(8).store(8, Ordering::Relaxed);
        assert_eq!(writer.word(8).load(Ordering::Relaxed), 8, "the writer goes on in memory of its own");
        assert!(reader.is_lost() && writer.is_lost() && lost_pages() >= before + 2);
        drop((writer, reader));
        // The entries are free again, and a later mapping at the same place is intact.
        let file = create_unnamed("test", 8192).unwrap();
        assert!(!Mapping::read_write(&file, 8192).unwrap().is_lost());
    }

    #[test]
    fn rings_outlive_their_files() {
        survive_truncation().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ring");
        let mut ring = RingMemory::create(&path, 4096, 8192).unwrap();
        let view = RingView::open(&path, 4096).unwrap();
        assert!(ring.write(0, b"abcd"));
        assert_eq!(view.with(0, 0, 4, <[u8]>::to_vec), Ok(b"abcd".to_vec()));
        std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(view.with(0, 0, 4, <[u8]>::to_vec), Err(Overwritten), "zeros are not taken for the sample");
        assert!(view.is_lost());
        assert!(!ring.write(0, b"efgh") && ring.is_lost(), "the writer learns it");
        let file = create_unnamed("test", 8192).unwrap();
        let mirrored = MirroredRing::<Word>::new(&file, 4096, 4096).unwrap();
        mirrored.header().store(1, Ordering::Relaxed);
        file.set_len(0).unwrap();
        assert_eq!(mirrored.header().load(Ordering::Relaxed), 0);
        // SAFETY: no code writes meanwhile.
        assert_eq!(unsafe { mirrored.published(4090, 12) }, [0; 12]);
        assert!(mirrored.is_lost());
    }

    #[test]
    fn more_mappings_than_one_table_holds_are_known() {
        survive_truncation().unwrap();
        let file = create_unnamed("test", 4096).unwrap();
        let mappings: Vec<Mapping> = (0..3 * RANGES).map(|_| Mapping::read_only(&file, 4096).unwrap()).collect();
        file.set_len(0).unwrap();
        assert!(mappings.iter().all(|mapping| mapping.word(0).load(Ordering::Relaxed) == 0 && mapping.is_lost()));
    }

    /// Not a test: a process with a mapping that is not this crate's.
    #[test]
    fn victim() {
        if std::env::var_os("TAMPU_TEST_FAULT").is_none() {
            return;
        }
        survive_truncation().unwrap();
        let file = create_unnamed("test", 4096).unwrap();
        let (protection, flags) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
        // SAFETY: the kernel chooses the place.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), 4096, protection, flags, &file, 0) }.unwrap();
        file.set_len(0).unwrap();
        // SAFETY: mapped above; the load ends the process.
        let _ = unsafe { start.cast::<u8>().read_volatile() };
    }

    #[test]
    fn the_mappings_of_others_fault_as_before() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "fault::tests::victim"]).env("TAMPU_TEST_FAULT", "1");
        assert_eq!(child.output().unwrap().status.signal(), Some(libc::SIGBUS));
    }
}
