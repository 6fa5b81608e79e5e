//! C's callbacks as a receiver's handler.

use std::{
    cell::RefCell,
    ffi::{c_char, c_void},
    sync::{Arc, Condvar, Mutex, PoisonError},
};

use tampu_bulk::{
    handler::{CallbackError, Data, End, Handler, Start},
    message::Fault,
    receiving::LostRange,
};

use crate::{
    callback::inside,
    failure::{Failure, guarded},
    string::{self, for_c},
};

/// `tampu_bulk_transfer_start`: a transfer begins.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct StartOfC {
    pub transfer: u64,
    pub sender: *const c_char,
    pub parameter: *const u8,
    pub length: usize,
}

/// `tampu_bulk_piece`: a piece of its data.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct DataOfC {
    pub transfer: u64,
    pub offset: u64,
    pub bytes: *const u8,
    pub length: usize,
    pub end_of_block: i32,
}

/// `tampu_bulk_end`: the result of a transfer.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct EndOfC {
    pub transfer: u64,
    pub bytes: u64,
    pub offset: u64,
    pub lost_bytes: u64,
    pub seconds: f64,
    pub complete: i32,
    pub stopped: i32,
}

/// `tampu_bulk_lost_range`: lost bytes.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct LostOfC {
    pub from: u64,
    pub to: u64,
    pub frames: u64,
    pub cause: i32,
    pub why: *const c_char,
}

/// `tampu_bulk_fault_note`: a fault of the transfer.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct FaultOfC {
    pub kind: i32,
    pub count: u32,
    pub text: *const c_char,
}

/// A callback with a result: 0 for success.
type Answering<T> = Option<unsafe extern "C" fn(*mut c_void, *const T) -> i32>;
/// A callback without a result.
type Callback<T> = Option<unsafe extern "C" fn(*mut c_void, *const T)>;

/// `tampu_bulk_handler`. A later release appends callbacks: the caller passes the size that it knows.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct HandlerOfC {
    pub context: *mut c_void,
    pub start: Answering<StartOfC>,
    pub data: Answering<DataOfC>,
    pub stop: Answering<EndOfC>,
    pub lost: Callback<LostOfC>,
    pub fault: Callback<FaultOfC>,
    pub protection: i32,
    pub reserved: i32,
}

/// Result of a callback that rejects the rest of the transfer.
const GIVE_UP: i32 = 2;

thread_local! {
    /// Reason that the running callback stored for its failure.
    static WHY: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Takes the reason that the running callback has stored.
pub(super) fn explained() -> Option<String> {
    WHY.take()
}

/// Stores the reason for the coming failure of a callback.
///
/// # Safety
/// `text` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_explain(text: *const c_char) {
    guarded((), || {
        // SAFETY: by the caller.
        let text = unsafe { string::text(text) }.into_owned();
        WHY.with(|why| why.try_borrow_mut().map(|mut why| *why = Some(text))).map_err(|_| Failure::InCallback)
    });
}

/// A flag that is set after the last callback has returned.
#[derive(Debug, Default)]
pub(super) struct Done {
    over: Mutex<bool>,
    changed: Condvar,
}

impl Done {
    /// Returns true if no callback runs and none will be called.
    pub fn is_over(&self) -> bool {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no callback runs and none will be called.
    pub fn wait(&self) {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*over {
            over = self.changed.wait(over).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A receiver's handler that calls C.
pub(super) struct Callbacks {
    calls: HandlerOfC,
    done: Arc<Done>,
}

// SAFETY: by the header the caller promises that the context may be used in another thread, by one call at a time. All other fields
// are Send.
unsafe impl Send for Callbacks {}

impl Callbacks {
    /// # Safety
    /// The functions are as the header declares them, and may be called with the context, in any thread, until `done`
    /// is called.
    pub unsafe fn new(calls: HandlerOfC, done: Arc<Done>) -> Callbacks {
        Callbacks { calls, done }
    }

    /// Calls a callback with a result.
    fn answer<T>(&self, call: Answering<T>, what: &'static str, with: &T) -> Result<(), CallbackError> {
        let Some(call) = call else { return Ok(()) };
        WHY.set(None);
        // SAFETY: by the promise to `new`; the pointed-to value outlives the call.
        let answer = inside(|| unsafe { call(self.calls.context, with) });
        let text = || WHY.take().unwrap_or_else(|| format!("the callback for {what} returned {answer}"));
        match answer {
            0 => Ok(()),
            GIVE_UP => Err(CallbackError::give_up(text())),
            _ => Err(CallbackError::failed(text())),
        }
    }

    /// Calls a callback without a result.
    fn tell<T>(&self, call: Callback<T>, with: &T) {
        let Some(call) = call else { return };
        // SAFETY: as above.
        inside(|| unsafe { call(self.calls.context, with) });
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        *self.done.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.done.changed.notify_all();
    }
}

impl Handler for Callbacks {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        let sender = for_c(&start.sender.source);
        let told = StartOfC {
            transfer: start.transfer,
            sender: sender.as_ptr(),
            parameter: start.parameter.as_ptr(),
            length: start.parameter.len(),
        };
        self.answer(self.calls.start, "the start", &told).map(|()| 0)
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        let told = DataOfC {
            transfer: data.transfer,
            offset: data.offset,
            bytes: data.bytes.as_ptr(),
            length: data.bytes.len(),
            end_of_block: data.end_of_block.into(),
        };
        self.answer(self.calls.data, "data", &told)
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        let told = EndOfC {
            transfer: end.transfer,
            bytes: end.bytes,
            offset: end.offset,
            lost_bytes: end.lost_bytes,
            seconds: end.took.as_secs_f64(),
            complete: end.complete.into(),
            stopped: end.stopped.into(),
        };
        self.answer(self.calls.stop, "the stop", &told)
    }

    fn lost(&mut self, lost: &LostRange) {
        let why = for_c(lost.cause);
        let told = LostOfC {
            from: lost.from,
            to: lost.to.unwrap_or(u64::MAX),
            frames: lost.frames,
            cause: lost.cause as i32,
            why: why.as_ptr(),
        };
        self.tell(self.calls.lost, &told);
    }

    fn fault(&mut self, fault: &Fault) {
        let text = for_c(fault);
        self.tell(self.calls.fault, &FaultOfC { kind: fault.kind as i32, count: fault.count, text: text.as_ptr() });
    }
}
