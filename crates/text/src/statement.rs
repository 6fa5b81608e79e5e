//! A log statement in the program, and the recorder that receives its calls.

use std::{borrow::Cow, sync::atomic::AtomicU32};

use crate::{
    payload::{Arguments, Payload},
    site::{Dialect, Piece, Site},
};

/// One log statement of this program. [`statement!`](crate::statement!) makes a static one each, so a record only
/// contains its number.
#[derive(Debug)]
pub struct Statement {
    site: Site,
    routine: fn() -> &'static str,
    /// Number by which the recorder knows the statement; 0 until the first call. The recorder sets it.
    pub mark: AtomicU32,
}

impl Statement {
    /// Makes a statement of this description. `routine` returns the path of an item defined inside the function, as
    /// [`std::any::type_name`] spells it. The path is unknown at compile time, so `routine` is called at the first use.
    pub const fn new(site: Site, routine: fn() -> &'static str) -> Statement {
        Statement { site, routine, mark: AtomicU32::new(0) }
    }

    /// Makes a statement at run time, for calls of another front end; the description is already complete.
    pub const fn of_site(site: Site) -> Statement {
        Statement::new(site, || "")
    }

    /// Statement of Rust's dialect, as [`statement!`](crate::statement!) declares it. It has fewer parts than a
    /// [`Site`], which the compiler feels where there are thousands of statements.
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

    /// Returns its complete description, including the routine.
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
/// Both methods are called at every log statement and should be inlined; their names are unusual so that a logger's own
/// methods do not hide them.
pub trait Recorder {
    /// Returns true if a call at this level has a receiver. While it returns false, no argument of a statement is
    /// evaluated.
    fn wants(&self, level: u8) -> bool;

    /// Records a call. The payload reports its length, and is then written once into the reserved room.
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
/// The level is a constant expression of a number. The logger is a [`Recorder`] or dereferences to one. The text has
/// the rules of [`format!`], and its errors are reported as `format!` reports them. Every argument is evaluated once,
/// and none while the level is disabled. Values behind the semicolon travel beside the text.
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
/// A missing argument, an unused one, or one that cannot be shown in this form, does not compile:
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
