//! A server and its attributes.

use std::ffi::c_char;

use tampu_event::{
    Attribute, AttributeConfig, Server,
    server::{AttributeOptions, Delivery, ServerSettings},
};

use super::{
    joined,
    value::{data_type_of, format_of},
};
use crate::{
    callback::running,
    failure::{Failure, guarded},
    string::{self, optional},
    structure::given,
};

/// `tampu_event_config`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct ConfigOfC {
    pub name: *const c_char,
    pub data_type: i32,
    pub format: i32,
    pub max_x: u32,
    pub max_y: u32,
    pub label: *const c_char,
    pub description: *const c_char,
    pub unit: *const c_char,
    pub labels: *const *const c_char,
    pub label_count: usize,
    pub min: *const c_char,
    pub max: *const c_char,
    pub alarm_low: *const c_char,
    pub alarm_high: *const c_char,
    pub warning_low: *const c_char,
    pub warning_high: *const c_char,
    pub change_rel: *const c_char,
    pub change_abs: *const c_char,
    pub archive_rel: *const c_char,
    pub archive_abs: *const c_char,
    pub archive_period_ms: u64,
    pub period_ms: u64,
    pub acknowledged: i32,
    pub redundant: i32,
    pub urgent: i32,
    pub reserved: i32,
}

/// Returns the server behind a handle.
///
/// # Safety
/// NULL, or open as long as `'a`.
unsafe fn server<'a>(handle: *const Server) -> Result<&'a Server, Failure> {
    // SAFETY: by the caller.
    unsafe { handle.as_ref() }.ok_or(Failure::Null("the server"))
}

/// Returns the attribute behind a handle.
///
/// # Safety
/// NULL, or open as long as `'a`.
pub(super) unsafe fn attribute<'a>(handle: *const Attribute) -> Result<&'a Attribute, Failure> {
    // SAFETY: by the caller.
    unsafe { handle.as_ref() }.ok_or(Failure::Null("the attribute"))
}

/// Joins the bus and begins to publish under this name.
///
/// # Safety
/// `source` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_server_open(source: *const c_char) -> *mut Server {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let participant = unsafe { joined(source) }?;
        Ok(Box::into_raw(Box::new(Server::start(participant, ServerSettings::default())?)))
    })
}

/// Ends a server.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_server_close(handle: *mut Server) -> i32 {
    guarded(-1, || {
        // The polls' thread would wait for itself.
        if running() {
            return Err(Failure::InCallback);
        }
        if !handle.is_null() {
            // SAFETY: the pointer is from `tampu_event_server_open`, and this is the caller's last use.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(0)
    })
}

/// Reads a text of C's as a number, a band or a name; absent texts give `None`.
///
/// # Safety
/// `text` is NULL or a C string.
unsafe fn parsed<T: std::str::FromStr>(
    text: *const c_char,
    what: &'static str,
    possible: &'static str,
) -> Result<Option<T>, Failure> {
    // SAFETY: by the caller.
    let text = unsafe { optional(text) };
    let odd = |value: String| Failure::Odd { what, value, possible };
    text.map(|text| text.trim().parse().map_err(|_| odd(text))).transpose()
}

impl ConfigOfC {
    /// # Safety
    /// The texts are NULL or C strings, and `labels` has `label_count` of them.
    unsafe fn read(&self) -> Result<(AttributeConfig, AttributeOptions), Failure> {
        const NUMBER: &str = "write a number, such as 1e-6";
        const BAND: &str = "write one number x for -x and +x, or a negative and a positive one, as -0.5,2";
        if self.name.is_null() {
            return Err(Failure::Null("the attribute's name"));
        }
        // SAFETY: by the caller, for all texts.
        unsafe {
            let name = string::text(self.name).parse()?;
            let mut config = AttributeConfig::new(name, data_type_of(self.data_type)?, format_of(self.format)?);
            (config.max_x, config.max_y) = (self.max_x, self.max_y);
            config.label = string::text(self.label).into_owned();
            config.description = string::text(self.description).into_owned();
            config.unit = string::text(self.unit).into_owned();
            if self.label_count > 0 {
                if self.labels.is_null() {
                    return Err(Failure::Null("the labels"));
                }
                let labels = std::slice::from_raw_parts(self.labels, self.label_count);
                config.labels = labels.iter().map(|&label| string::text(label).into_owned()).collect();
            }
            config.limits.min = parsed(self.min, "the minimum", NUMBER)?;
            config.limits.max = parsed(self.max, "the maximum", NUMBER)?;
            config.limits.alarm_low = parsed(self.alarm_low, "the lower alarm limit", NUMBER)?;
            config.limits.alarm_high = parsed(self.alarm_high, "the upper alarm limit", NUMBER)?;
            config.limits.warning_low = parsed(self.warning_low, "the lower warning limit", NUMBER)?;
            config.limits.warning_high = parsed(self.warning_high, "the upper warning limit", NUMBER)?;
            config.criteria.change.rel = parsed(self.change_rel, "the relative change", BAND)?;
            config.criteria.change.abs = parsed(self.change_abs, "the absolute change", BAND)?;
            config.criteria.archive.rel = parsed(self.archive_rel, "the relative change for the archive", BAND)?;
            config.criteria.archive.abs = parsed(self.archive_abs, "the absolute change for the archive", BAND)?;
            config.criteria.archive_period_ms = Some(self.archive_period_ms).filter(|&ms| ms > 0);
            if self.period_ms > 0 {
                config.criteria.period_ms = self.period_ms;
            }
            let delivery = if self.acknowledged == 0 { Delivery::Streamed } else { Delivery::Acknowledged };
            Ok((config, AttributeOptions { delivery, redundant: self.redundant != 0, urgent: self.urgent != 0 }))
        }
    }
}

/// Declares an attribute.
///
/// # Safety
/// `handle` is NULL or open; `config` is NULL or has `size` bytes, with texts as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_declare(handle: *const Server, config: *const ConfigOfC, size: usize) -> *mut Attribute {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let (server, config) = unsafe { (server(handle)?, given(config, size, size_of::<ConfigOfC>())?) };
        let config = config.ok_or(Failure::Null("the configuration"))?;
        // SAFETY: by the caller.
        let (config, options) = unsafe { config.read() }?;
        Ok(Box::into_raw(Box::new(server.declare_with(config, options)?)))
    })
}

/// Withdraws an attribute.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_withdraw(handle: *mut Attribute) {
    guarded((), || {
        if !handle.is_null() {
            // SAFETY: the pointer is from `tampu_event_declare`, and this is the caller's last use.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}
