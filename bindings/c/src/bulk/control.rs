//! Control of senders and receivers by other programs: offers, and commands to offers.

use std::{
    ffi::{CString, c_char, c_void},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tampu_bulk::{
    Name, Receiver,
    control::{
        ControlCommand, ControlledReceiver, ControlledSender, OpenCommand, OwnWork, StartCommand, StartOrder, command,
        command_json, offer_receiver, offer_sender,
    },
    handler::Handler,
    sender::Flow,
};
use tampu_bus::{Participant, engine::Guard};

use super::{
    callbacks::{Callbacks, Done, HandlerOfC, explained},
    name,
    participant::{Member, member},
    receiver::{Place, place},
    sender::{SenderHandle, sender},
};
use crate::{
    callback::{inside, running},
    failure::{Failure, guarded, mention},
    string::{self, for_c, optional},
};

/// Result of a command that no program has answered.
const NOBODY: i32 = 1;

/// Callback of a start: 0 if all was sent.
type StartCall = unsafe extern "C" fn(*mut c_void, *const SenderHandle, *const c_char, *const c_char) -> i32;

/// Offer behind a `tampu_bulk_control *`. Fields are dropped in order: no command comes when the work of one ends.
pub struct ControlHandle {
    _offer: Guard,
    controlled: Controlled,
    /// The handlers of all openings.
    done: Arc<Mutex<Vec<Arc<Done>>>>,
}

enum Controlled {
    Sender(Arc<ControlledSender>, Flow),
    Receiver(Arc<ControlledReceiver>),
}

/// A callback and its arguments.
struct Call {
    start: StartCall,
    context: *mut c_void,
    sender: *const SenderHandle,
}

// SAFETY: by the header the caller promises that the context may be used in another thread, by one call at a time. A sender may be
// used in every thread.
unsafe impl Send for Call {}

impl Call {
    fn call(&self, order: &StartOrder<'_>) -> Result<(), String> {
        let (parameter, file) = (for_c(order.parameter), order.file.map(for_c));
        let file = file.as_ref().map_or(std::ptr::null(), |file| file.as_ptr());
        explained();
        // SAFETY: by the caller of `tampu_bulk_control_sender`; the texts outlive the call.
        let answer = inside(|| unsafe { (self.start)(self.context, self.sender, parameter.as_ptr(), file) });
        let why = (answer != 0).then(|| explained().unwrap_or_else(|| format!("the callback for the start returned {answer}")));
        // SAFETY: the sender is open until the offer ends.
        if let Some(sender) = unsafe { self.sender.as_ref() } {
            sender.give_up_open(why.as_deref().unwrap_or("the callback for the start left it open"));
        }
        why.map_or(Ok(()), Err)
    }
}

fn bus_of(of: Option<&Participant>, source: &str) -> Result<Participant, Failure> {
    of.cloned().ok_or_else(|| Failure::Alone(source.to_owned()))
}

/// Offers the control of a sender.
///
/// # Safety
/// `handle` is NULL or open until the offer is ended; `offered` is NULL or a C string; `start` may be called with `context`, in
/// any thread, until then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_sender(
    handle: *const SenderHandle,
    offered: *const c_char,
    start: Option<StartCall>,
    context: *mut c_void,
) -> *mut ControlHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let (own, offered) = unsafe { (sender(handle)?, name(offered, "the control's name")?) };
        let bus = bus_of(own.participant(), &own.sender().identity().source)?;
        let controlled = match start {
            None => ControlledSender::new(own.sender().clone()),
            Some(start) => {
                let call = Call { start, context, sender: handle };
                ControlledSender::starting(own.sender().clone(), move |order| call.call(order))
            }
        };
        let offer = offer_sender(&bus, offered, &controlled)?;
        let controlled = Controlled::Sender(controlled, own.flow().clone());
        Ok(Box::into_raw(Box::new(ControlHandle { _offer: offer, controlled, done: Arc::default() })))
    })
}

/// Callbacks of a receiver that is opened several times.
struct Calls(HandlerOfC);

// SAFETY: as of `Callbacks`, each of which is made from it.
unsafe impl Send for Calls {}

/// Offers the control of a receiver, which is closed at first.
///
/// # Safety
/// As for `tampu_bulk_receiver_open`; the callbacks may be called until the offer is ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_receiver(
    participant: *const Member,
    offered: *const c_char,
    stream: *const c_char,
    flow: *const c_char,
    listen: *const c_char,
    announce: *const c_char,
    handler: *const HandlerOfC,
    size: usize,
) -> *mut ControlHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let (member, offered, place) = unsafe {
            (member(participant)?, name(offered, "the control's name")?, place(stream, flow, listen, announce, handler, size)?)
        };
        let bus = bus_of(member.bus.as_ref(), &member.identity.source)?;
        let Place { stream, flow, settings, calls } = place;
        let (calls, identity, all) = (Calls(calls), member.identity.clone(), Arc::new(Mutex::new(Vec::new())));
        let (into, of) = (all.clone(), stream.clone());
        let open = move |asked: &OpenCommand| -> Result<Receiver, String> {
            // The whole value is captured: its members alone could not be sent.
            let Calls(calls) = &calls;
            asked.choose(std::slice::from_ref(&flow.name))?;
            let mut all = into.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|done: &Arc<Done>| !done.is_over());
            if !all.is_empty() {
                // They have the same context, and one of them may still run.
                return Err("callbacks of the last opening have not returned yet; try again".to_owned());
            }
            let done = Arc::new(Done::default());
            // SAFETY: by the caller; ending the offer waits for `done`.
            let handler: Box<dyn Handler> = Box::new(unsafe { Callbacks::new(*calls, done.clone()) });
            let flows = vec![(asked.narrow(flow.clone())?, handler)];
            all.push(done);
            drop(all);
            Receiver::open(identity.clone(), of.clone(), settings.clone(), flows).map_err(|why| why.to_string())
        };
        let controlled = ControlledReceiver::new(&bus, stream, open);
        let offer = offer_receiver(&bus, offered, &controlled)?;
        let controlled = Controlled::Receiver(controlled);
        Ok(Box::into_raw(Box::new(ControlHandle { _offer: offer, controlled, done: all })))
    })
}

/// Opens the receiver of an offer with its own settings, as the command does.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_open_own(handle: *const ControlHandle) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        match &unsafe { handle.as_ref() }.ok_or(Failure::Null("the control"))?.controlled {
            Controlled::Receiver(receiver) => receiver.open(&OpenCommand::default()).map_err(Failure::Control)?,
            Controlled::Sender(..) => {
                return Err(Failure::Control("it is a sender, and only a receiver can be opened".to_owned()));
            }
        }
        Ok(0)
    })
}

/// Work behind a `tampu_bulk_work *`.
pub struct WorkHandle(#[expect(dead_code, reason = "its end is its use")] OwnWork);

/// Notes work of the program on the flow of an offered sender.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_begin_work(handle: *const ControlHandle) -> *mut WorkHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        match &unsafe { handle.as_ref() }.ok_or(Failure::Null("the control"))?.controlled {
            Controlled::Sender(sender, flow) => Ok(Box::into_raw(Box::new(WorkHandle(sender.begin_work(flow))))),
            Controlled::Receiver(_) => {
                Err(Failure::Control("it is a receiver, and only a sender has work that can be stopped".to_owned()))
            }
        }
    })
}

/// Ends work that [`tampu_bulk_control_begin_work`] began.
///
/// # Safety
/// `work` is NULL or from [`tampu_bulk_control_begin_work`], and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_end_work(work: *mut WorkHandle) {
    guarded((), || {
        if !work.is_null() {
            // SAFETY: by the caller.
            drop(unsafe { Box::from_raw(work) });
        }
        Ok(())
    });
}

/// Ends an offer.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or, if it returns 0, after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_end(handle: *mut ControlHandle) -> i32 {
    guarded(-1, || {
        if handle.is_null() {
            return Ok(0);
        }
        // Inside a callback this would wait for itself.
        if running() {
            return Err(Failure::InCallback);
        }
        // SAFETY: the pointer is from one of the functions above, and this is the caller's last use.
        let ControlHandle { _offer, controlled, done } = *unsafe { Box::from_raw(handle) };
        drop(_offer);
        // A command that is being carried out may hold it for longer.
        match controlled {
            Controlled::Sender(sender, _) => sender.end(),
            Controlled::Receiver(receiver) => receiver.end(),
        }
        let all = std::mem::take(&mut *done.lock().unwrap_or_else(PoisonError::into_inner));
        all.iter().for_each(|done| done.wait());
        Ok(0)
    })
}

/// Sends a command. Returns 0, or 1 if no program has answered.
///
/// # Safety
/// `participant` is NULL or open; `offered` is NULL or a C string.
unsafe fn send(
    participant: *const Member,
    offered: *const c_char,
    timeout_ms: u32,
    make: impl FnOnce() -> Result<ControlCommand, Failure>,
) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let (member, offered) = unsafe { (member(participant)?, name(offered, "the control's name")?) };
        carried_out(member, &offered, make()?, timeout_ms)
    })
}

/// Returns 0 after a command; 1 if no program has answered, which is then the last error.
fn carried_out(member: &Member, offered: &Name, asked: ControlCommand, timeout_ms: u32) -> Result<i32, Failure> {
    let bus = bus_of(member.bus.as_ref(), &member.identity.source)?;
    match command(&bus, offered, asked, Duration::from_millis(timeout_ms.into())) {
        Ok(_) => Ok(0),
        Err(error) if error.is_unreachable() => {
            mention(error);
            Ok(NOBODY)
        }
        Err(error) => Err(Failure::Control(error.to_string())),
    }
}

/// # Safety
/// `flow` is NULL or a C string.
unsafe fn flow_of(flow: *const c_char) -> Result<Option<Name>, Failure> {
    // SAFETY: by the caller.
    Ok(unsafe { optional(flow) }.map(Name::new).transpose()?)
}

/// Starts the sender of an offer.
///
/// # Safety
/// `participant` is NULL or open; the texts are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_start(
    participant: *const Member,
    offered: *const c_char,
    flow: *const c_char,
    parameter: *const c_char,
    file: *const c_char,
    timeout_ms: u32,
) -> i32 {
    // SAFETY: by the caller.
    unsafe {
        send(participant, offered, timeout_ms, || {
            let parameter = string::text(parameter).into_owned();
            Ok(ControlCommand::Start(StartCommand { flow: flow_of(flow)?, parameter, file: optional(file) }))
        })
    }
}

/// Limits the rate of a sender.
///
/// # Safety
/// `participant` is NULL or open; the texts are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_pace(
    participant: *const Member,
    offered: *const c_char,
    flow: *const c_char,
    bytes_per_s: f64,
    timeout_ms: u32,
) -> i32 {
    // SAFETY: by the caller.
    unsafe { send(participant, offered, timeout_ms, || Ok(ControlCommand::Pace { flow: flow_of(flow)?, bytes_per_s })) }
}

/// Pauses a sender.
///
/// # Safety
/// `participant` is NULL or open; the texts are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_pause(
    participant: *const Member,
    offered: *const c_char,
    flow: *const c_char,
    timeout_ms: u32,
) -> i32 {
    // SAFETY: by the caller.
    unsafe { send(participant, offered, timeout_ms, || Ok(ControlCommand::Pause { flow: flow_of(flow)? })) }
}

/// Ends the pause of a sender.
///
/// # Safety
/// `participant` is NULL or open; the texts are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_resume(
    participant: *const Member,
    offered: *const c_char,
    flow: *const c_char,
    timeout_ms: u32,
) -> i32 {
    // SAFETY: by the caller.
    unsafe { send(participant, offered, timeout_ms, || Ok(ControlCommand::Resume { flow: flow_of(flow)? })) }
}

/// Ends the running transfer of a sender.
///
/// # Safety
/// `participant` is NULL or open; the texts are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_stop(
    participant: *const Member,
    offered: *const c_char,
    flow: *const c_char,
    timeout_ms: u32,
) -> i32 {
    // SAFETY: by the caller.
    unsafe { send(participant, offered, timeout_ms, || Ok(ControlCommand::Stop { flow: flow_of(flow)? })) }
}

/// Opens the receiver of an offer.
///
/// # Safety
/// `participant` is NULL or open; `offered` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_open(participant: *const Member, offered: *const c_char, timeout_ms: u32) -> i32 {
    // SAFETY: by the caller.
    unsafe { send(participant, offered, timeout_ms, || Ok(ControlCommand::Open(OpenCommand::default()))) }
}

/// Closes the receiver of an offer.
///
/// # Safety
/// `participant` is NULL or open; `offered` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_close(participant: *const Member, offered: *const c_char, timeout_ms: u32) -> i32 {
    // SAFETY: by the caller.
    unsafe { send(participant, offered, timeout_ms, || Ok(ControlCommand::Close)) }
}

/// Sends a command as JSON and returns the state as JSON; without a name, the list of offers.
///
/// # Safety
/// `participant` is NULL or open; the texts are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_ask(
    participant: *const Member,
    offered: *const c_char,
    asked: *const c_char,
    timeout_ms: u32,
) -> *mut c_char {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let (member, offered, asked) = unsafe { (member(participant)?, flow_of(offered)?, optional(asked)) };
        let bus = bus_of(member.bus.as_ref(), &member.identity.source)?;
        match command_json(&bus, offered.as_ref(), asked.as_deref(), Duration::from_millis(timeout_ms.into())) {
            Ok(json) => Ok(for_c(json).into_raw()),
            Err(error) => Err(Failure::Control(error.to_string())),
        }
    })
}

/// Frees a text of [`tampu_bulk_control_ask`].
///
/// # Safety
/// `text` is NULL or from that function, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_control_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: by the caller.
        drop(unsafe { CString::from_raw(text) });
    }
}
