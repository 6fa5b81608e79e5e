//! A call allocates nothing, even where it formats, once its thread has a buffer for that; counted, not timed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, RefCell},
    fmt,
    mem::MaybeUninit,
};

use tampu_text::{Arguments, Payload, Recorder, Rendered, Statement, memory::Memory, statement};

/// Counts what the calling thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Has room for one call.
struct Slot(RefCell<[MaybeUninit<u8>; 1024]>);

impl Recorder for Slot {
    fn wants(&self, level: u8) -> bool {
        level > 1
    }

    fn record_call<A: Arguments>(&self, _: &'static Statement, payload: Payload<A>) {
        payload.write_to(&mut *self.0.borrow_mut());
    }
}

struct Angle(f64);

impl fmt::Display for Angle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} deg", self.0)
    }
}

#[test]
fn a_call_allocates_nothing() {
    let slot = Slot(RefCell::new([MaybeUninit::uninit(); 1024]));
    let owned = "owned".to_owned();
    let raw = || statement!(4, slot, "{} {:?} {:8.3}", 1, owned, 2.5; value = Some(3).is_some());
    let formatted = || statement!(4, slot, "{} {:?} {}", Angle(1.0), [1, 2], format_args!("{}", 7));
    assert_eq!(allocations(raw), 0);
    assert!(allocations(formatted) > 0, "the first call makes the thread's buffers, so allocations are seen");
    assert_eq!(allocations(formatted), 0);
    assert_eq!(allocations(|| statement!(1, slot, "{}", "disabled".to_owned())), 0);
}

#[test]
fn rendering_allocates_nothing() {
    let memory = Memory::default();
    statement!(4, memory, "{} {:?} {:.3} {:08x} {}", 1, "text", 2.5, 3, Angle(1.0); value = "v");
    let (call, mut rendered) = (memory.calls().remove(0), Rendered::default());
    rendered.render(&call.site, &call.payload).unwrap();
    assert_eq!(allocations(|| rendered.render(&call.site, &call.payload).unwrap()), 0);
}
