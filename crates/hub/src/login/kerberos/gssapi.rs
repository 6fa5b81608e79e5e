//! The calls of MIT's GSSAPI library that accept a ticket.
//!
//! Decision: a binding of eight functions. The crates for GSSAPI generate theirs with libclang at each build, and take
//! the keytab and the replay cache from the environment of the whole process.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    path::Path,
    ptr,
};

/// Mechanisms as encoded object identifiers: SPNEGO 1.3.6.1.5.5.2, and Kerberos 1.2.840.113554.1.2.2.
const SPNEGO: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x02];
const KERBEROS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02];
/// The type of names such as `HTTP@host`: 1.2.840.113554.1.2.1.4.
const HOST_BASED_SERVICE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x01, 0x04];
/// The service of browsers' tickets, on each host of which the keytab has a key.
const SERVICE: &[u8] = b"HTTP";

/// Statuses of the library.
const COMPLETE: u32 = 0;
const ERRORS: u32 = 0xffff_0000;
const CONTINUE_NEEDED: u32 = 1;
/// Use of credentials: accept.
const ACCEPT: c_int = 2;
/// The client is anonymous.
const ANONYMOUS: u32 = 64;
/// Kinds of statuses.
const OF_GSSAPI: c_int = 1;
const OF_MECHANISM: c_int = 2;
/// Most texts of one status.
const MAX_TEXTS: usize = 4;

type Pointer = *mut c_void;

#[repr(C)]
struct Oid {
    length: u32,
    elements: *const c_void,
}

#[repr(C)]
struct OidSet {
    count: usize,
    elements: *const Oid,
}

#[repr(C)]
struct Buffer {
    length: usize,
    value: *const c_void,
}

#[repr(C)]
struct StoreElement {
    key: *const c_char,
    value: *const c_char,
}

#[repr(C)]
struct Store {
    count: u32,
    elements: *const StoreElement,
}

#[link(name = "gssapi_krb5")]
unsafe extern "C" {
    fn gss_import_name(minor: *mut u32, text: *const Buffer, kind: *const Oid, name: *mut Pointer) -> u32;
    fn gss_release_name(minor: *mut u32, name: *mut Pointer) -> u32;
    fn gss_display_name(minor: *mut u32, name: Pointer, text: *mut Buffer, kind: *mut *const Oid) -> u32;
    fn gss_acquire_cred_from(
        minor: *mut u32,
        name: Pointer,
        time: u32,
        mechanisms: *const OidSet,
        usage: c_int,
        store: *const Store,
        credentials: *mut Pointer,
        actual: *mut Pointer,
        valid: *mut u32,
    ) -> u32;
    fn gss_set_neg_mechs(minor: *mut u32, credentials: Pointer, mechanisms: *const OidSet) -> u32;
    fn gss_release_cred(minor: *mut u32, credentials: *mut Pointer) -> u32;
    fn gss_accept_sec_context(
        minor: *mut u32,
        context: *mut Pointer,
        credentials: Pointer,
        token: *const Buffer,
        bindings: Pointer,
        source: *mut Pointer,
        mechanism: *mut *const Oid,
        answer: *mut Buffer,
        flags: *mut u32,
        valid: *mut u32,
        delegated: *mut Pointer,
    ) -> u32;
    fn gss_delete_sec_context(minor: *mut u32, context: *mut Pointer, token: *mut Buffer) -> u32;
    fn gss_display_status(
        minor: *mut u32,
        status: u32,
        kind: c_int,
        mechanism: *const Oid,
        more: *mut u32,
        text: *mut Buffer,
    ) -> u32;
    fn gss_release_buffer(minor: *mut u32, buffer: *mut Buffer) -> u32;
}

fn oid(elements: &'static [u8]) -> Oid {
    Oid { length: elements.len() as u32, elements: elements.as_ptr().cast() }
}

/// A buffer that the library has filled. It is released on drop.
struct Filled(Buffer);

impl Filled {
    fn empty() -> Filled {
        Filled(Buffer { length: 0, value: ptr::null() })
    }

    fn bytes(&self) -> &[u8] {
        if self.0.value.is_null() || self.0.length == 0 {
            return &[];
        }
        // SAFETY: the library has set the pointer and the length, and the memory lives until the buffer is released.
        unsafe { std::slice::from_raw_parts(self.0.value.cast(), self.0.length) }
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        // SAFETY: a buffer of the library, or an empty one.
        unsafe { gss_release_buffer(&mut 0, &raw mut self.0) };
    }
}

/// An object of the library, and the function that releases it. Null if there is none.
struct Owned(Pointer, unsafe extern "C" fn(*mut u32, *mut Pointer) -> u32);

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the object is of the library, and the function is that for its type.
            unsafe { (self.1)(&mut 0, &raw mut self.0) };
        }
    }
}

/// A security context. It is deleted on drop.
struct Context(Pointer);

impl Drop for Context {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the context is of the library; without a buffer no token is made.
            unsafe { gss_delete_sec_context(&mut 0, &raw mut self.0, ptr::null_mut()) };
        }
    }
}

/// The texts of an error.
fn words(major: u32, minor: u32) -> String {
    let mechanism = oid(KERBEROS);
    let mut texts: Vec<String> = Vec::new();
    for (status, kind) in [(minor, OF_MECHANISM), (major, OF_GSSAPI)] {
        let mut more = 0;
        for _ in 0..MAX_TEXTS {
            let mut text = Filled::empty();
            // SAFETY: all pointers are to memory that lives during the call.
            let result =
                unsafe { gss_display_status(&mut 0, status, kind, &raw const mechanism, &raw mut more, &raw mut text.0) };
            if result & ERRORS != 0 {
                break;
            }
            texts.push(String::from_utf8_lossy(text.bytes()).trim().to_owned());
            if more == 0 {
                break;
            }
        }
    }
    texts.retain(|text| !text.is_empty() && text != "Success" && text != "Unknown error");
    texts.join("; ")
}

/// A client that a ticket has proved.
#[derive(Debug)]
pub struct Proved {
    /// The principal, such as `zoe@EXAMPLE.ORG`.
    pub principal: String,
    /// The token that proves this server to the client; empty if the client has asked for none.
    pub answer: Vec<u8>,
}

/// The acceptor of tickets for the keys of a keytab.
pub struct Acceptor {
    keytab: CString,
    replays: CString,
}

impl Acceptor {
    /// Opens a keytab. `replays` is the file that remembers tickets, so that none is accepted twice.
    pub fn new(keytab: &Path, replays: &Path) -> Result<Acceptor, String> {
        let text = |kind: &str, path: &Path| {
            CString::new(format!("{kind}:{}", path.display())).map_err(|_| format!("invalid path '{}'", path.display()))
        };
        let acceptor = Acceptor { keytab: text("FILE", keytab)?, replays: text("file2", replays)? };
        acceptor.credentials().map(|_| acceptor)
    }

    /// Reads the keys. They are read for each ticket, so that a new keytab counts at once.
    fn credentials(&self) -> Result<Owned, String> {
        let mut minor = 0;
        let (kind, text) = (oid(HOST_BASED_SERVICE), Buffer { length: SERVICE.len(), value: SERVICE.as_ptr().cast() });
        let mut name = Owned(ptr::null_mut(), gss_release_name);
        // SAFETY: all pointers are to memory that lives during the call.
        let major = unsafe { gss_import_name(&raw mut minor, &raw const text, &raw const kind, &raw mut name.0) };
        if major & ERRORS != 0 {
            return Err(words(major, minor));
        }
        let elements = [
            StoreElement { key: c"keytab".as_ptr(), value: self.keytab.as_ptr() },
            StoreElement { key: c"rcache".as_ptr(), value: self.replays.as_ptr() },
        ];
        let store = Store { count: elements.len() as u32, elements: elements.as_ptr() };
        let mechanisms = [oid(SPNEGO), oid(KERBEROS)];
        let wanted = OidSet { count: mechanisms.len(), elements: mechanisms.as_ptr() };
        let mut credentials = Owned(ptr::null_mut(), gss_release_cred);
        // SAFETY: all pointers are to memory that lives during the call; the library copies what it keeps.
        let major = unsafe {
            gss_acquire_cred_from(
                &raw mut minor,
                name.0,
                u32::MAX,
                &raw const wanted,
                ACCEPT,
                &raw const store,
                &raw mut credentials.0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        if major & ERRORS != 0 {
            return Err(words(major, minor));
        }
        // Other mechanisms of the system, such as NTLM, are not negotiated.
        let negotiated = OidSet { count: 1, elements: &raw const mechanisms[1] };
        // SAFETY: the credentials are of the library, and the set lives during the call.
        let major = unsafe { gss_set_neg_mechs(&raw mut minor, credentials.0, &raw const negotiated) };
        if major & ERRORS != 0 {
            return Err(words(major, minor));
        }
        Ok(credentials)
    }

    /// Verifies a token of a client. An error is the reason for the log.
    pub fn accept(&self, token: &[u8]) -> Result<Proved, String> {
        let credentials = self.credentials()?;
        let (mut minor, mut flags) = (0, 0);
        let token = Buffer { length: token.len(), value: token.as_ptr().cast() };
        let mut context = Context(ptr::null_mut());
        let mut source = Owned(ptr::null_mut(), gss_release_name);
        let mut mechanism: *const Oid = ptr::null();
        let mut answer = Filled::empty();
        // SAFETY: all pointers are to memory that lives during the call. Delegated credentials are not taken.
        let major = unsafe {
            gss_accept_sec_context(
                &raw mut minor,
                &raw mut context.0,
                credentials.0,
                &raw const token,
                ptr::null_mut(),
                &raw mut source.0,
                &raw mut mechanism,
                &raw mut answer.0,
                &raw mut flags,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        if major & ERRORS != 0 {
            return Err(words(major, minor));
        }
        if major & CONTINUE_NEEDED != 0 {
            return Err("the client begins with another mechanism than Kerberos".to_owned());
        }
        if major != COMPLETE {
            return Err(format!("the ticket has the status {major}"));
        }
        // SAFETY: the library has set a pointer to a constant of its own.
        let used = unsafe { mechanism.as_ref() }.map(|used| {
            // SAFETY: the elements of an identifier have its length.
            unsafe { std::slice::from_raw_parts(used.elements.cast::<u8>(), used.length as usize) }
        });
        if used != Some(KERBEROS) {
            return Err("the mechanism is not Kerberos".to_owned());
        }
        if flags & ANONYMOUS != 0 || source.0.is_null() {
            return Err("the client is anonymous".to_owned());
        }
        let mut text = Filled::empty();
        // SAFETY: the name is of the library, and the pointers are to memory that lives during the call.
        let major = unsafe { gss_display_name(&raw mut minor, source.0, &raw mut text.0, ptr::null_mut()) };
        if major & ERRORS != 0 {
            return Err(words(major, minor));
        }
        let principal = String::from_utf8(text.bytes().to_vec()).map_err(|_| "the principal is not UTF-8".to_owned())?;
        Ok(Proved { principal, answer: answer.bytes().to_vec() })
    }
}

impl std::fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |text: &CStr| text.to_string_lossy().into_owned();
        write!(f, "Acceptor({}, {})", text(&self.keytab), text(&self.replays))
    }
}
