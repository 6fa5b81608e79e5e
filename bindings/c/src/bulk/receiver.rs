//! A receiver of one flow.

use std::{
    ffi::{CString, c_char},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tampu_bulk::{
    Name, Receiver, asking,
    directory::{self, Announced},
    handler::Handler,
    receiver::{FlowSettings, ReceiverSettings},
    settings::{Direction, FlowPatch, of_program},
};
use tampu_bus::engine::Guard;

use super::{
    callbacks::{Callbacks, Done, HandlerOfC},
    name,
    participant::{Member, member},
    protection_of,
};
use crate::{
    callback::running,
    failure::{Failure, guarded},
    string::optional,
    structure::given,
};

/// Bytes of a handler in the first release.
const HANDLER_FIRST: usize = 6 * size_of::<usize>();

/// Receiver behind a `tampu_bulk_receiver *`. Fields are dropped in order: the announcement on the bus first.
pub struct ReceiverHandle {
    announced: Mutex<Option<(Announced, Guard)>>,
    receiver: Arc<Receiver>,
    done: Arc<Done>,
    target: CString,
}

/// The arguments of a receiver, with the settings of the site.
pub(super) struct Place {
    pub stream: Name,
    pub flow: FlowSettings,
    pub settings: ReceiverSettings,
    pub calls: HandlerOfC,
}

/// Reads the arguments of a receiver.
///
/// # Safety
/// The texts are NULL or C strings; `handler` is NULL or has `size` bytes.
pub(super) unsafe fn place(
    stream: *const c_char,
    flow: *const c_char,
    listen: *const c_char,
    announce: *const c_char,
    handler: *const HandlerOfC,
    size: usize,
) -> Result<Place, Failure> {
    // SAFETY: by the caller.
    let (stream, flow, listen, announce, calls) = unsafe {
        let calls = given(handler, size, HANDLER_FIRST)?.ok_or(Failure::Null("the handler"))?;
        let names = (name(stream, "the stream's name")?, name(flow, "the flow's name")?);
        (names.0, names.1, optional(listen), optional(announce), calls)
    };
    let endpoint = listen.map(|listen| {
        let odd = |_| Failure::Odd {
            what: "the address to listen at",
            value: listen.clone(),
            possible: "give an IP address and a port",
        };
        listen.parse::<SocketAddr>().map_err(odd)
    });
    let said = FlowPatch {
        endpoint: endpoint.transpose()?,
        announce,
        protection: protection_of(calls.protection)?,
        ..FlowPatch::new(stream.clone(), flow.clone())
    };
    let values = of_program(Direction::Recv, &said)?;
    let flow = values.to_received(FlowSettings::new(flow));
    let settings = ReceiverSettings::default().at_place_of(&[values]);
    Ok(Place { stream, flow, settings, calls })
}

/// Opens a receiver, and announces it on the bus.
///
/// # Safety
/// `participant` is NULL or open; the texts are NULL or C strings; `handler` is NULL or has `size` bytes, and its
/// callbacks may be called as the header describes until the receiver is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_receiver_open(
    participant: *const Member,
    stream: *const c_char,
    flow: *const c_char,
    listen: *const c_char,
    announce: *const c_char,
    handler: *const HandlerOfC,
    size: usize,
) -> *mut ReceiverHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let (member, place) = unsafe { (member(participant)?, place(stream, flow, listen, announce, handler, size)?) };
        let Place { stream, flow, settings, calls } = place;
        let done = Arc::new(Done::default());
        // SAFETY: by the caller; closing waits for `done`, and the handle is open until then.
        let handler: Box<dyn Handler> = Box::new(unsafe { Callbacks::new(calls, done.clone()) });
        let flows = vec![(flow, handler)];
        let receiver = Arc::new(Receiver::open(member.identity.clone(), stream, settings, flows)?);
        let announced = match &member.bus {
            Some(bus) => {
                let serving = asking::serve_receiver(bus, &receiver)?;
                Some((directory::announce(bus, &receiver)?, serving))
            }
            None => None,
        };
        let target = CString::new(receiver.target().to_string()).unwrap_or_default();
        Ok(Box::into_raw(Box::new(ReceiverHandle { announced: Mutex::new(announced), receiver, done, target })))
    })
}

/// Returns the address for senders: `host:port/token`.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_receiver_target(handle: *const ReceiverHandle) -> *const c_char {
    // SAFETY: by the caller.
    guarded(std::ptr::null(), || Ok(unsafe { handle.as_ref() }.ok_or(Failure::Null("the receiver"))?.target.as_ptr()))
}

/// Pause between two checks whether senders have disconnected.
const TURN: Duration = Duration::from_millis(5);

/// Withdraws the receiver from the bus and waits until senders have their responses. Returns 1 if none is connected,
/// else 0.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_receiver_part(handle: *const ReceiverHandle, timeout_ms: u32) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let handle = unsafe { handle.as_ref() }.ok_or(Failure::Null("the receiver"))?;
        if running() {
            return Err(Failure::InCallback);
        }
        drop(handle.announced.lock().unwrap_or_else(PoisonError::into_inner).take());
        let until = Instant::now() + Duration::from_millis(timeout_ms.into());
        while handle.receiver.state().flows.iter().any(|flow| flow.connected) {
            if Instant::now() >= until {
                return Ok(0);
            }
            std::thread::sleep(TURN);
        }
        Ok(1)
    })
}

/// Closes a receiver. Returns 0 when no callback runs or will run, and -1 on failure.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or, if it returns 0, after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_receiver_close(handle: *mut ReceiverHandle) -> i32 {
    guarded(-1, || {
        if handle.is_null() {
            return Ok(0);
        }
        // Inside a callback this would wait for itself.
        if running() {
            return Err(Failure::InCallback);
        }
        // SAFETY: the pointer is from `tampu_bulk_receiver_open`, and this is the caller's last use.
        let ReceiverHandle { announced, receiver, done, .. } = *unsafe { Box::from_raw(handle) };
        drop(announced);
        drop(receiver);
        done.wait();
        Ok(0)
    })
}
