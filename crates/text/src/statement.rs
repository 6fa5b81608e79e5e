//! A log statement in the program, and what it hands its calls to.

use std::{borrow::Cow, sync::atomic::AtomicU32};

use crate::{
    payload::{Arguments, Payload},
    site::{Dialect, Piece, Site},
};

/// One log statement of this program. [`statement!`](crate::statement!) makes a static one each, so a record only says which
/// one it is of.
#[derive(Debug)]
pub struct Statement {
    site: Site,
    routine: fn() -> &'static str,
    /// What the recorder knows the statement by; 0 until it has met it. It is the recorder's to set.
    pub mark: AtomicU32,
}

impl Statement {
    /// One of this description. `routine` gives the path of something defined inside the function, as
    /// [`std::any::type_name`] spells it, which is not known at compile time; it is asked when the statement is first met.
    pub const fn new(site: Site, routine: fn() -> &'static str) -> Statement {
        Statement { site, routine, mark: AtomicU32::new(0) }
    }

    /// One that is made while the program runs, of calls that come by another front end; the description is whole as it is.
    pub const fn of_site(site: Site) -> Statement {
        Statement::new(site, || "")
    }

    /// What [`statement!`](crate::statement!) makes: a statement of Rust's dialect. It has fewer parts than a [`Site`], which the
    /// compiler feels where there are thousands of statements.
    #[doc(hidden)]
    pub const fn made(
        level: u8,
        (file, line, module): (&'static str, u32, &'static str),
        pieces: &'static [Piece],
        arguments: u16,
        names: &'static [Cow<'static, str>],
        routine: fn() -> &'static str,
    ) -> Statement {
        let site = Site {
            level,
            dialect: Dialect::Rust,
            file: Cow::Borrowed(file),
            line,
            module: Cow::Borrowed(module),
            routine: Cow::Borrowed(""),
            pieces: Cow::Borrowed(pieces),
            arguments,
            names: Cow::Borrowed(names),
        };
        Statement::new(site, routine)
    }

    /// Its level's number.
    #[inline(always)]
    pub fn level(&self) -> u8 {
        self.site.level
    }

    /// Its whole description, the routine included.
    pub fn site(&self) -> Site {
        let mut path = (self.routine)();
        if path.is_empty() {
            return self.site.clone();
        }
        path = path.strip_suffix("::tampu_marker").unwrap_or(path);
        while let Some(outer) = path.strip_suffix("::{{closure}}") {
            path = outer;
        }
        Site { routine: path.into(), ..self.site.clone() }
    }
}

/// Takes calls of log statements: a logger.
///
/// Both methods are called at every log statement and should be inlined; their names are unusual so that a logger's own methods
/// do not hide them.
pub trait Recorder {
    /// Whether a call at this level would go anywhere. While it says no, nothing of a statement is evaluated.
    fn wants(&self, level: u8) -> bool;

    /// Takes a call. The payload says how long it is, and is then written once to where there is room for it.
    fn record_call<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>);
}

impl<R: Recorder + ?Sized> Recorder for &R {
    #[inline(always)]
    fn wants(&self, level: u8) -> bool {
        (**self).wants(level)
    }

    #[inline(always)]
    fn record_call<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) {
        (**self).record_call(statement, payload);
    }
}

/// A log statement: `statement!(level, logger, "text {} {name:>8.3}", argument, other = argument; key = value)`.
///
/// The level is a constant expression that gives a number, the logger anything that is a [`Recorder`] or leads to one. The text
/// has the rules of [`format!`], and what is wrong with it is told as `format!` tells it. Every argument is evaluated once,
/// and none while the level is not wanted. Values behind the semicolon travel beside the text.
///
/// ```
/// use tampu_text::{memory::Memory, statement};
///
/// let (memory, azimuth) = (Memory::default(), 12.5);
/// statement!(4, memory, "az {azimuth:.3} of {}", "DV01"; scan = 7);
/// let rendered = memory.rendered();
/// assert_eq!(rendered[0].message(), "az 12.500 of DV01");
/// assert_eq!(rendered[0].values().collect::<Vec<_>>(), [("scan", "7")]);
/// ```
///
/// An argument that is missing, one that is not used, or one that cannot be shown so, does not compile:
///
/// ```compile_fail
/// # use tampu_text::{memory::Memory, statement};
/// statement!(4, Memory::default(), "{} {}", 1);
/// ```
/// ```compile_fail
/// # use tampu_text::{memory::Memory, statement};
/// statement!(4, Memory::default(), "{}", 1, 2);
/// ```
/// ```compile_fail
/// # use tampu_text::{memory::Memory, statement};
/// statement!(4, Memory::default(), "{:x}", 1.5);
/// ```
/// ```compile_fail
/// # use tampu_text::{memory::Memory, statement};
/// statement!(4, Memory::default(), "{:q}", 1);
/// ```
#[macro_export]
macro_rules! statement {
    ($level:expr, $logger:expr, $text:expr $(, $argument:expr)* $(,)? $(; $($name:ident = $value:expr),* $(,)?)?) => {
        $crate::macros::statement!([$crate] $level, $logger, $text $(, $argument)* ; $($($name = $value),*)?)
    };
}
