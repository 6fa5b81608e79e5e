//! The calls of libpam that a check of a password needs.
//!
//! Decision: a binding of six functions. The crates for PAM generate theirs with libclang at each build, or bring
//! their own model of sessions and modules. The functions and numbers here are those of Linux-PAM, which have not
//! changed since its first release.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    net::IpAddr,
    ptr,
};

/// Result codes of PAM.
const SUCCESS: c_int = 0;
const BUFFER_ERROR: c_int = 5;
const PERMISSION_DENIED: c_int = 6;
const AUTHENTICATION_ERROR: c_int = 7;
const USER_UNKNOWN: c_int = 10;
const MAX_TRIES: c_int = 11;
const NEW_PASSWORD_REQUIRED: c_int = 12;
const ACCOUNT_EXPIRED: c_int = 13;
const CONVERSATION_ERROR: c_int = 19;
const PASSWORD_EXPIRED: c_int = 27;

/// Modules send no messages, and a user without a password is refused.
const FLAGS: c_int = 0x8000 | 0x0001;

/// Items of a conversation.
const ITEM_USER: c_int = 2;
const ITEM_REMOTE_HOST: c_int = 4;
const ITEM_FAIL_DELAY: c_int = 10;

/// Kinds of messages of a module.
const PROMPT_HIDDEN: c_int = 1;
const PROMPT_SHOWN: c_int = 2;
const ERROR_TEXT: c_int = 3;
const INFO_TEXT: c_int = 4;

/// Most messages of a module at a time, which is PAM's own limit.
const MAX_MESSAGES: c_int = 32;
/// Longest text of modules that is kept for the log, in bytes.
const MAX_TEXT: usize = 512;

#[repr(C)]
struct Handle {
    _private: [u8; 0],
}

#[repr(C)]
struct Message {
    kind: c_int,
    text: *const c_char,
}

#[repr(C)]
struct Response {
    text: *mut c_char,
    unused: c_int,
}

type Converse = extern "C" fn(c_int, *mut *const Message, *mut *mut Response, *mut c_void) -> c_int;

#[repr(C)]
struct Conversation {
    converse: Converse,
    data: *mut c_void,
}

#[link(name = "pam")]
unsafe extern "C" {
    fn pam_start(service: *const c_char, user: *const c_char, with: *const Conversation, handle: *mut *mut Handle) -> c_int;
    fn pam_end(handle: *mut Handle, status: c_int) -> c_int;
    fn pam_authenticate(handle: *mut Handle, flags: c_int) -> c_int;
    fn pam_acct_mgmt(handle: *mut Handle, flags: c_int) -> c_int;
    fn pam_set_item(handle: *mut Handle, item: c_int, value: *const c_void) -> c_int;
    fn pam_get_item(handle: *const Handle, item: c_int, value: *mut *const c_void) -> c_int;
    fn pam_strerror(handle: *mut Handle, code: c_int) -> *const c_char;
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The password is right, and the account may be used. It has PAM's name of the user.
    Admitted(String),
    /// The password is wrong, or nobody has this login.
    Wrong,
    /// The password is right, but the account is locked, has expired or needs a new password.
    Refused(String),
}

/// The answers for the modules, and their texts.
struct Talk {
    login: CString,
    /// The password; `None` once no module may ask for it.
    password: Option<CString>,
    /// Texts of modules, for the log.
    said: String,
}

/// Answers the modules. A hidden prompt gets the password, and any other one the login.
extern "C" fn converse(count: c_int, messages: *mut *const Message, responses: *mut *mut Response, data: *mut c_void) -> c_int {
    if !(1..=MAX_MESSAGES).contains(&count) || messages.is_null() || responses.is_null() || data.is_null() {
        return CONVERSATION_ERROR;
    }
    let count = count.unsigned_abs() as usize;
    // SAFETY: the pointer is to the `Talk` of `check`, which lives as long as the conversation and is used by no other
    // thread.
    let talk = unsafe { &mut *data.cast::<Talk>() };
    // SAFETY: calloc with two sizes; PAM frees the memory.
    let answers = unsafe { libc::calloc(count, size_of::<Response>()) }.cast::<Response>();
    if answers.is_null() {
        return BUFFER_ERROR;
    }
    for at in 0..count {
        // SAFETY: Linux-PAM passes an array of `count` pointers to messages.
        let message = unsafe { &**messages.add(at) };
        let answer = match message.kind {
            PROMPT_HIDDEN => talk.password.as_ref(),
            PROMPT_SHOWN => Some(&talk.login),
            ERROR_TEXT | INFO_TEXT => {
                if !message.text.is_null() {
                    // SAFETY: a message ends with a NUL.
                    talk.keep(&unsafe { CStr::from_ptr(message.text) }.to_string_lossy());
                }
                continue;
            }
            _ => None,
        };
        // SAFETY: the text ends with a NUL; strdup allocates as PAM wants it.
        let copy = answer.map_or(ptr::null_mut(), |text| unsafe { libc::strdup(text.as_ptr()) });
        if copy.is_null() {
            for earlier in 0..at {
                // SAFETY: the elements before `at` are null or of strdup.
                unsafe { erase((*answers.add(earlier)).text) };
            }
            // SAFETY: of calloc above, and not passed on.
            unsafe { libc::free(answers.cast()) };
            return CONVERSATION_ERROR;
        }
        // SAFETY: `at` is below the number of elements.
        unsafe { (*answers.add(at)).text = copy };
    }
    // SAFETY: checked above that it is not null.
    unsafe { *responses = answers };
    SUCCESS
}

/// Frees a copy of a secret, whose bytes are cleared before.
///
/// # Safety
/// The pointer is null or of `strdup`.
unsafe fn erase(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: a string of strdup, whose bytes up to the NUL may be written.
        unsafe {
            ptr::write_bytes(text, 0, libc::strlen(text));
            libc::free(text.cast());
        }
    }
}

/// Takes the place of PAM's own delay after a wrong password. The logbook delays further tries itself, without a thread.
extern "C" fn no_delay(_: c_int, _: c_uint, _: *mut c_void) {}

impl Talk {
    fn keep(&mut self, text: &str) {
        let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let (plain, room) = (plain.trim(), MAX_TEXT.saturating_sub(self.said.len()));
        if !plain.is_empty() && plain.len() + 2 <= room {
            let separator = if self.said.is_empty() { "" } else { "; " };
            self.said.push_str(separator);
            self.said.push_str(plain);
        }
    }
}

/// A conversation with the modules of a service. It ends on drop.
struct Session {
    handle: *mut Handle,
    status: c_int,
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the handle is of pam_start, and is used no more.
        unsafe { pam_end(self.handle, self.status) };
    }
}

impl Session {
    fn text(&self, code: c_int) -> String {
        // SAFETY: pam_strerror returns a constant string.
        let text = unsafe { pam_strerror(self.handle, code) };
        match text.is_null() {
            true => format!("code {code}"),
            // SAFETY: it ends with a NUL.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        }
    }

    /// Returns the text of the last result, with the texts of the modules.
    fn words(&self, talk: *const Talk) -> String {
        let text = self.text(self.status);
        // SAFETY: the pointer is to the `Talk` of `check`, and no function of PAM runs here.
        let said = unsafe { &(*talk).said };
        if said.is_empty() { text } else { format!("{text} ({said})") }
    }

    /// Returns PAM's name of the user, which a module may have changed.
    fn user(&self) -> Option<String> {
        let mut value = ptr::null();
        // SAFETY: the handle is valid, and the item of the user is a string.
        let code = unsafe { pam_get_item(self.handle, ITEM_USER, &raw mut value) };
        if code != SUCCESS || value.is_null() {
            return None;
        }
        // SAFETY: it ends with a NUL, and PAM keeps it until the next change of the item.
        unsafe { CStr::from_ptr(value.cast()) }.to_str().ok().map(str::to_owned)
    }
}

/// Checks a password with the modules of a service. Rules of modules may depend on the address of the client. An error
/// means that the modules could not check.
pub fn check(service: &str, login: &str, password: &str, from: IpAddr) -> Result<Verdict, String> {
    let (Ok(service), Ok(user), Ok(secret)) = (CString::new(service), CString::new(login), CString::new(password)) else {
        return Ok(Verdict::Wrong);
    };
    let mut talk = Talk { login: user.clone(), password: Some(secret), said: String::new() };
    let talk = &raw mut talk;
    let with = Conversation { converse, data: talk.cast() };
    let mut handle = ptr::null_mut();
    // SAFETY: the strings and `with` live until the end of this function, and the session ends before.
    let code = unsafe { pam_start(service.as_ptr(), user.as_ptr(), &raw const with, &raw mut handle) };
    if code != SUCCESS || handle.is_null() {
        return Err(format!("pam_start ended with code {code}"));
    }
    let mut session = Session { handle, status: SUCCESS };
    // SAFETY: the handle is valid, and the function has the type that PAM calls.
    unsafe { pam_set_item(session.handle, ITEM_FAIL_DELAY, no_delay as *const c_void) };
    let from = CString::new(from.to_canonical().to_string()).unwrap_or_default();
    // SAFETY: the handle is valid, and PAM copies the string.
    let code = unsafe { pam_set_item(session.handle, ITEM_REMOTE_HOST, from.as_ptr().cast()) };
    if code != SUCCESS {
        // Without the address, a rule about addresses might admit everybody.
        return Err(format!("PAM does not take the client's address: {}", session.text(code)));
    }
    // SAFETY: the handle is valid.
    session.status = unsafe { pam_authenticate(session.handle, FLAGS) };
    match session.status {
        SUCCESS => {}
        AUTHENTICATION_ERROR | USER_UNKNOWN | MAX_TRIES => return Ok(Verdict::Wrong),
        PERMISSION_DENIED | ACCOUNT_EXPIRED | NEW_PASSWORD_REQUIRED | PASSWORD_EXPIRED => {
            return Ok(Verdict::Refused(session.words(talk)));
        }
        _ => return Err(session.words(talk)),
    }
    // A module that asks for a password again wants a new one.
    // SAFETY: no function of PAM runs here.
    unsafe { (*talk).password = None };
    // SAFETY: the handle is valid.
    session.status = unsafe { pam_acct_mgmt(session.handle, FLAGS) };
    match session.status {
        SUCCESS => Ok(Verdict::Admitted(session.user().unwrap_or_else(|| login.to_owned()))),
        PERMISSION_DENIED | AUTHENTICATION_ERROR | USER_UNKNOWN | ACCOUNT_EXPIRED | NEW_PASSWORD_REQUIRED | PASSWORD_EXPIRED => {
            Ok(Verdict::Refused(session.words(talk)))
        }
        _ => Err(session.words(talk)),
    }
}
