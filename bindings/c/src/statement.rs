//! Log statements of another language: described once, then called with arguments in the layout of `spec/log-call.md`.

use std::{ffi::c_char, mem::MaybeUninit, ptr};

use tampu_log::logger::{Claim, PAYLOAD_MAX};
use tampu_text::{ARGUMENTS_MAX, Piece, Site, Statement};

use crate::{
    failure::{Failure, guarded, mention},
    handle::{Handle, logger},
    level::level,
    string::text,
};

/// `tampu_log_site`: the constant description of a statement. The strings are read during the call only.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct SiteOfC {
    pub level: i32,
    pub line: u32,
    pub file: *const c_char,
    pub module: *const c_char,
    pub routine: *const c_char,
    pub text: *const c_char,
    /// Number of arguments of a call, the named ones among them.
    pub arguments: usize,
    pub names: *const *const c_char,
    pub names_count: usize,
}

/// `tampu_log_slot`: a [`Claim`] in the caller's memory.
#[repr(C)]
pub struct SlotOfC(MaybeUninit<[u64; SLOT_WORDS]>);

/// Number of words, with room for fields of later releases: the size is part of the ABI.
const SLOT_WORDS: usize = 16;
const _: () = assert!(size_of::<Claim>() <= size_of::<SlotOfC>() && align_of::<Claim>() <= align_of::<SlotOfC>());

/// Creates a statement from its description. Statements are never freed, and a program has a fixed number of them.
///
/// # Safety
/// `site` is NULL or points to a description whose strings are NULL or C strings, `names_count` of them in `names`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_define(site: *const SiteOfC) -> *const Statement {
    guarded(ptr::null(), || {
        // SAFETY: by the caller.
        let Some(given) = (unsafe { site.as_ref() }) else { return Err(Failure::Null("the statement's description")) };
        let (arguments, names) = (given.arguments, given.names_count);
        if names > arguments || arguments > ARGUMENTS_MAX {
            return Err(Failure::Arguments { arguments, names });
        }
        if names > 0 && given.names.is_null() {
            return Err(Failure::Null("the list of names"));
        }
        // SAFETY: by the caller.
        let (format, names) =
            unsafe { (text(given.text), (0..names).map(|index| text(*given.names.add(index)).into_owned()).collect::<Vec<_>>()) };
        let mut site = parsed(&format, arguments, names);
        site.level = level(given.level)?.number();
        site.line = given.line;
        // SAFETY: by the caller.
        (site.file, site.module, site.routine) = unsafe {
            (
                text(given.file).into_owned().into(),
                text(given.module).into_owned().into(),
                text(given.routine).into_owned().into(),
            )
        };
        Ok(Box::leak(Box::new(Statement::of_site(site))))
    })
}

/// Parses a format text into a site. An invalid text loses no data: the text is shown unchanged, together with the
/// error, and the arguments are sent beside it under their numbers.
fn parsed(format: &str, arguments: usize, names: Vec<String>) -> Site {
    let shown = arguments - names.len();
    let wrong = match Site::parse(format) {
        Ok(site) if usize::from(site.arguments) <= shown => {
            return Site { arguments: arguments as u16, names: names.into_iter().map(Into::into).collect(), ..site };
        }
        Ok(site) => format!("it asks for {} arguments and is given {shown}", site.arguments),
        Err(bad) => bad.to_string(),
    };
    mention(&wrong);
    let numbers = (0..shown).map(|number| number.to_string());
    Site {
        dialect: tampu_text::Dialect::Fmt,
        pieces: vec![Piece::Text(format!("{format} [bad format text: {wrong}]").into())].into(),
        arguments: arguments as u16,
        names: numbers.chain(names).map(Into::into).collect(),
        ..Site::default()
    }
}

/// Returns space for a call's payload of `length` bytes, or NULL if the record is lost. It fills in `slot`, which must
/// be committed or discarded.
///
/// # Safety
/// `handle` is NULL or open, and stays so until the slot is committed or discarded, which the same thread does.
/// `statement` is NULL or from [`tampu_log_define`]. `slot` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_claim(
    handle: *const Handle,
    statement: *const Statement,
    length: usize,
    slot: *mut SlotOfC,
) -> *mut u8 {
    guarded(ptr::null_mut(), || {
        // SAFETY: by the caller; statements live forever.
        let (logger, statement) = unsafe { (logger(handle)?, statement.as_ref().ok_or(Failure::Null("the statement"))?) };
        if slot.is_null() {
            return Err(Failure::Null("the slot"));
        }
        if length > PAYLOAD_MAX {
            return Err(Failure::Length(length));
        }
        let Some(mut claim) = logger.claim(statement, length) else { return Ok(ptr::null_mut()) };
        // The bytes are in a ring or on the heap and stay there when the claim moves.
        let place = claim.bytes().as_mut_ptr();
        // SAFETY: the slot is large and aligned enough (see above), and the caller allows writing it.
        unsafe { slot.cast::<Claim>().write(claim) };
        Ok(place)
    })
}

/// Commits a claimed slot, whose payload has been written, as a record.
///
/// # Safety
/// `slot` was filled in by [`tampu_log_claim`] in this thread, which did not return NULL, and is used here for the last
/// time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_commit(slot: *mut SlotOfC) {
    guarded((), || {
        if slot.is_null() {
            return Err(Failure::Null("the slot"));
        }
        // SAFETY: by the caller.
        unsafe { slot.cast::<Claim>().read() }.commit();
        Ok(())
    });
}

/// Releases a claimed slot without a record.
///
/// # Safety
/// As for [`tampu_log_commit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_discard(slot: *mut SlotOfC) {
    guarded((), || {
        if slot.is_null() {
            return Err(Failure::Null("the slot"));
        }
        // SAFETY: by the caller.
        drop(unsafe { slot.cast::<Claim>().read() });
        Ok(())
    });
}
