//! Writes HTML. Every value is escaped unless its type says that it is HTML already, so the compiler finds every value
//! that was not escaped.

use std::fmt::{self, Display, Formatter};

/// Safe HTML: made by this crate, or sanitised by `render`.
#[derive(Debug, Clone, Default)]
pub struct SafeHtml<T = String>(pub T);

/// A value that can be written into a page.
pub trait WriteHtml {
    /// Writes it, so that it is text in an element and in an attribute between double quotation marks.
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result;
}

impl WriteHtml for str {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rest = self;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '\0']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                b'\'' => "&#39;",
                // HTML cannot represent NUL.
                _ => "\u{fffd}",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

impl WriteHtml for String {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.as_str().show(f)
    }
}

impl<T: WriteHtml + ?Sized> WriteHtml for &T {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (**self).show(f)
    }
}

impl<T: Display> WriteHtml for SafeHtml<T> {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => { $(impl WriteHtml for $number {
        fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
            Display::fmt(self, f)
        }
    })* };
}

numbers!(u8 u16 u32 u64 usize i16 i32 i64);

/// The wrapper with which [`put`] writes an argument.
pub struct Escaped<'a, T: ?Sized>(pub &'a T);

impl<T: WriteHtml + ?Sized> Display for Escaped<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.show(f)
    }
}

/// Appends to a text of HTML, as `write!` does, and escapes every argument. Names inside braces do not compile, because
/// their values would not be escaped.
macro_rules! put {
    ($out:expr, $format:literal $(, $argument:expr)* $(,)?) => {{
        // Writing into a string cannot fail.
        let _ = std::fmt::Write::write_fmt($out, format_args!(concat!($format) $(, $crate::pages::html::Escaped(&$argument))*));
    }};
}
pub(crate) use put;

/// Returns a configured style, or an empty one if it refers to another place.
pub fn style(text: &str) -> &str {
    let lower = text.to_ascii_lowercase();
    let leads = ["url", "expression", "import", "\\", "<", "@", "{", "}", "/*", "behavior", "javascript"];
    if leads.iter().any(|bad| lower.contains(bad)) { "" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_escaped() {
        let mut out = String::new();
        put!(&mut out, "<p title=\"{}\">{} {}</p>", "\"><script>", SafeHtml("<br>"), 7u32);
        assert_eq!(out, "<p title=\"&quot;&gt;&lt;script&gt;\"><br> 7</p>");
    }

    #[test]
    fn styles_that_lead_elsewhere_are_none() {
        assert_eq!(style("background-color:red;"), "background-color:red;");
        for bad in ["background:url(//evil)", "width:expression(x)", "x\\75rl(y)", "a}b{", "@import x", "</style>"] {
            assert_eq!(style(bad), "", "{bad}");
        }
    }
}
