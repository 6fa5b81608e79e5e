//! The state of a sender's flow.

use tampu_bulk::state::LinkStatus;

use super::sender::{SenderHandle, sender};
use crate::{failure::guarded, structure::tell};

/// `tampu_bulk_sender_status`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct StatusOfC {
    pub transfer: u64,
    pub bytes: u64,
    pub rate: f64,
    pub unacknowledged: u64,
    pub window: u64,
    pub waits: f64,
    pub phase: i32,
    pub receivers: u32,
    pub connected: u32,
    pub cut: u32,
}

/// Tells the state of a sender.
///
/// # Safety
/// `handle` is NULL or open; `status` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_sender_state(handle: *const SenderHandle, status: *mut StatusOfC, size: usize) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let handle = unsafe { sender(handle) }?;
        let state = handle.flow().state();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let told = StatusOfC {
            transfer: state.transfer,
            bytes: state.bytes,
            rate: state.rate,
            unacknowledged: state.window as u64,
            window: state.window_limit as u64,
            waits: state.waits.unwrap_or(0.0),
            phase: state.phase as i32,
            receivers: count(state.receivers.len()),
            connected: count(handle.flow().connected()),
            cut: count(state.receivers.iter().filter(|link| link.status == LinkStatus::Cut).count()),
        };
        // SAFETY: by the caller.
        unsafe { tell(&told, status, size) };
        Ok(0)
    })
}
