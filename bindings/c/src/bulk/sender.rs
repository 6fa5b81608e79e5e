//! A sender of one flow.

use std::{
    ffi::c_char,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tampu_bulk::{
    Sender, asking,
    directory::{self, Following, Teller, TransferNote},
    sender::{Flow, SendFlow},
    settings::{Direction, FlowPatch, of_program},
    state::{Delivery, Report},
};
use tampu_bus::{Participant, engine::Guard};

use super::{
    name,
    participant::{Member, member},
    settings::{SETTINGS_FIRST, SettingsOfC},
};
use crate::{
    failure::{Failure, guarded, mention},
    string,
    structure::{given, tell},
};

/// `tampu_bulk_report`: the result of a transfer. A later release appends fields.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct ReportOfC {
    pub transfer: u64,
    pub bytes: u64,
    pub lost_bytes: u64,
    pub seconds: f64,
    pub receivers: u32,
    pub complete: u32,
}

/// Parts of a sender on the bus: connections, responses to queries, records of transfers.
struct OnBus {
    participant: Participant,
    teller: Teller,
    following: Mutex<Option<Following>>,
    _serving: Guard,
}

/// Sender behind a `tampu_bulk_sender *`.
pub struct SenderHandle {
    bus: Option<OnBus>,
    flow: Flow,
    sender: Arc<Sender>,
    /// The transfer in progress.
    told: Mutex<Option<TransferStart>>,
}

/// Values of the start of a transfer.
struct TransferStart {
    transfer: u64,
    /// Parameter as text.
    parameter: String,
    began: Instant,
}

impl SenderHandle {
    fn tell(&self, transfer: u64, parameter: &str, report: Option<&Report>) {
        let Some(bus) = &self.bus else { return };
        let (stream, flow) = (self.flow.stream(), self.flow.name());
        let note = TransferNote { stream, flow, transfer, parameter: parameter.to_owned(), report };
        // A missing account shows as a hole in the numbers; the transfer itself is not delayed for it.
        let _ = bus.teller.tell(&note);
    }

    /// Returns its flow.
    pub(super) fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Returns the whole sender.
    pub(super) fn sender(&self) -> &Arc<Sender> {
        &self.sender
    }

    /// Returns its participant, if it is on the bus.
    pub(super) fn participant(&self) -> Option<&Participant> {
        self.bus.as_ref().map(|bus| &bus.participant)
    }

    /// Aborts a transfer that is still open, and reports it.
    pub(super) fn give_up_open(&self, why: &str) {
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.give_up(why);
        }
    }

    /// Returns the transports of its receivers.
    #[cfg(test)]
    pub(super) fn transports(&self) -> Vec<tampu_bulk::message::Transport> {
        self.flow.state().receivers.iter().map(|link| link.transport).collect()
    }

    /// Returns the protection of the connections to its receivers.
    #[cfg(test)]
    pub(super) fn protections(&self) -> Vec<&'static str> {
        self.flow.state().receivers.iter().map(|link| link.protection.name()).collect()
    }

    /// Aborts the transfer in progress, and reports it.
    fn give_up(&self, why: &str) {
        let state = self.flow.state();
        self.flow.reset();
        if let Some(told) = self.remember(None) {
            let report = Report::given_up(&state, told.began.elapsed().as_secs_f64(), why);
            self.tell(told.transfer, &told.parameter, Some(&report));
        }
    }

    fn remember(&self, transfer: Option<TransferStart>) -> Option<TransferStart> {
        std::mem::replace(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner), transfer)
    }
}

/// Returns the sender behind a handle.
///
/// # Safety
/// NULL, or open as long as `'a`.
pub(super) unsafe fn sender<'a>(handle: *const SenderHandle) -> Result<&'a SenderHandle, Failure> {
    // SAFETY: by the caller.
    unsafe { handle.as_ref() }.ok_or(Failure::Null("the sender"))
}

/// Opens a sender of a flow.
///
/// # Safety
/// `participant` is NULL or open; the names are NULL or C strings; `settings` is NULL or has `size` bytes, and its
/// texts are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_sender_open(
    participant: *const Member,
    stream: *const c_char,
    flow: *const c_char,
    settings: *const SettingsOfC,
    size: usize,
) -> *mut SenderHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let (member, stream, name, settings) = unsafe {
            let names = (name(stream, "the stream's name")?, name(flow, "the flow's name")?);
            (member(participant)?, names.0, names.1, given(settings, size, SETTINGS_FIRST)?.unwrap_or_default())
        };
        // SAFETY: by the caller.
        let said = unsafe { settings.said(FlowPatch::new(stream.clone(), name.clone())) }?;
        let default = settings.over(SendFlow::new(name.clone()))?;
        let settings = of_program(Direction::Send, &said)?.to_sent(default)?;
        let sender = Arc::new(Sender::open(member.identity.clone(), stream, vec![settings])?);
        let flow = sender.flow(&name).cloned().ok_or(Failure::Null("the flow"))?;
        let bus = match &member.bus {
            Some(bus) => Some(OnBus {
                participant: bus.clone(),
                teller: Teller::open(bus)?,
                following: Mutex::default(),
                _serving: asking::serve_sender(bus, &sender)?,
            }),
            None => None,
        };
        Ok(Box::into_raw(Box::new(SenderHandle { bus, flow, sender, told: Mutex::default() })))
    })
}

/// Connects to a receiver whose target is known.
///
/// # Safety
/// `handle` is NULL or open, `target` NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_sender_connect(handle: *const SenderHandle, target: *const c_char) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let (sender, target) = unsafe { (sender(handle)?, string::text(target)) };
        sender.sender.connect(&target.parse()?)?;
        Ok(0)
    })
}

/// Connects to all receivers that announce themselves on the bus.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_sender_follow(handle: *const SenderHandle) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let handle = unsafe { sender(handle) }?;
        let alone = || Failure::Alone(handle.sender.identity().source.clone());
        let bus = handle.bus.as_ref().ok_or_else(alone)?;
        let mut following = bus.following.lock().unwrap_or_else(PoisonError::into_inner);
        if following.is_none() {
            *following = Some(directory::follow(&bus.participant, &handle.sender)?);
        }
        Ok(0)
    })
}

/// Waits for receivers. Returns 1 if enough are connected, or 0 after the time limit.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_sender_wait(handle: *const SenderHandle, receivers: u32, timeout_ms: u32) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let handle = unsafe { sender(handle) }?;
        if handle.flow.wait_for(receivers as usize, Duration::from_millis(timeout_ms.into())) {
            return Ok(1);
        }
        let state = handle.flow.state();
        let why = state.receivers.iter().filter(|link| !link.why.is_empty());
        let why: Vec<&str> = why.map(|link| link.why.as_str()).collect();
        mention(format_args!("{} of {receivers} receivers are connected; {}", handle.flow.connected(), why.join("; ")));
        Ok(0)
    })
}

/// Begins a transfer.
///
/// # Safety
/// `handle` is NULL or open; `parameter` is NULL where `length` is 0, or has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_start(handle: *const SenderHandle, parameter: *const u8, length: usize) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let (handle, parameter) = unsafe { (sender(handle)?, string::counted(parameter, length, "the parameter")?) };
        let started = handle.flow.start(parameter)?;
        let parameter = String::from_utf8_lossy(parameter).into_owned();
        handle.tell(started.transfer, &parameter, None);
        handle.remember(Some(TransferStart { transfer: started.transfer, parameter, began: Instant::now() }));
        Ok(0)
    })
}

/// Sends a block of data.
///
/// # Safety
/// `handle` is NULL or open; `bytes` is NULL where `length` is 0, or has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_send(handle: *const SenderHandle, bytes: *const u8, length: usize) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let (handle, bytes) = unsafe { (sender(handle)?, string::counted(bytes, length, "the data")?) };
        handle.flow.send_copy(bytes)?;
        Ok(0)
    })
}

/// Ends the transfer. Returns 1 if every receiver has all data, else 0.
///
/// # Safety
/// `handle` is NULL or open; `report` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_stop(handle: *const SenderHandle, report: *mut ReportOfC, size: usize) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let handle = unsafe { sender(handle) }?;
        // SAFETY: by the caller. The report is cleared first, so that it is defined even if the call fails.
        unsafe { tell(&ReportOfC::default(), report, size) };
        let found = handle.flow.stop()?;
        if let Some(told) = handle.remember(None) {
            handle.tell(told.transfer, &told.parameter, Some(&found));
        }
        // SAFETY: by the caller.
        unsafe { tell(&summary(&found), report, size) };
        if !found.complete() {
            mention(reasons(&found));
        }
        Ok(found.complete().into())
    })
}

/// Aborts the transfer in progress.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_reset(handle: *const SenderHandle) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let handle = unsafe { sender(handle) }?;
        handle.give_up("it was reset");
        Ok(0)
    })
}

/// Closes a sender, and aborts a transfer in progress.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_sender_close(handle: *mut SenderHandle) {
    guarded((), || {
        if !handle.is_null() {
            // SAFETY: the pointer is from `tampu_bulk_sender_open`, and this is the caller's last use.
            let handle = unsafe { Box::from_raw(handle) };
            if let Some(told) = handle.remember(None) {
                // Dropping the handle delivers as much as possible and aborts the rest.
                let report = Report::given_up(&handle.flow.state(), told.began.elapsed().as_secs_f64(), "it was closed");
                handle.tell(told.transfer, &told.parameter, Some(&report));
            }
        }
        Ok(())
    });
}

fn lost_bytes(delivery: &Delivery) -> u64 {
    delivery.lost.iter().filter_map(|range| Some(range.to?.saturating_sub(range.from))).sum()
}

fn summary(report: &Report) -> ReportOfC {
    ReportOfC {
        transfer: report.transfer,
        bytes: report.bytes,
        lost_bytes: report.deliveries.iter().map(lost_bytes).max().unwrap_or(0),
        seconds: report.seconds,
        receivers: report.deliveries.len() as u32,
        complete: report.deliveries.iter().filter(|delivery| delivery.complete).count() as u32,
    }
}

/// Returns the receivers that lack a part, with the reasons.
fn reasons(report: &Report) -> String {
    let why = |delivery: &Delivery| {
        let mut parts: Vec<String> = delivery.faults.iter().map(ToString::to_string).collect();
        let lost = lost_bytes(delivery);
        if lost > 0 {
            parts.push(format!("{lost} bytes were lost"));
        }
        if !delivery.why.is_empty() {
            parts.push(delivery.why.clone());
        }
        format!("{}: {}", delivery.receiver, parts.join(", "))
    };
    let all: Vec<String> = report.deliveries.iter().filter(|delivery| !delivery.complete).map(why).collect();
    if all.is_empty() { "no receiver got it".to_owned() } else { all.join("; ") }
}
