//! Writing HTML. Whatever is put into a page is escaped unless it says that it is HTML already, and the compiler holds us to that.

use std::fmt::{self, Display, Formatter};

/// HTML that is safe as it stands: made by us, or cleaned by `render`.
#[derive(Debug, Clone, Default)]
pub struct Raw<T = String>(pub T);

/// What can be put into a page.
pub trait Shown {
    /// Writes it, so that it is text in an element and in an attribute between double quotation marks.
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result;
}

impl Shown for str {
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
                // HTML has no way to write it.
                _ => "\u{fffd}",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

impl Shown for String {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.as_str().show(f)
    }
}

impl<T: Shown + ?Sized> Shown for &T {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (**self).show(f)
    }
}

impl<T: Display> Shown for Raw<T> {
    fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => { $(impl Shown for $number {
        fn show(&self, f: &mut Formatter<'_>) -> fmt::Result {
            Display::fmt(self, f)
        }
    })* };
}

numbers!(u8 u16 u32 u64 usize i16 i32 i64);

/// What [`put`] writes an argument with.
pub struct Out<'a, T: ?Sized>(pub &'a T);

impl<T: Shown + ?Sized> Display for Out<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.show(f)
    }
}

/// Appends to a text of HTML, as `write!` does, with every argument escaped. Names inside braces do not compile, because what they
/// stand for would not be escaped.
macro_rules! put {
    ($out:expr, $format:literal $(, $argument:expr)* $(,)?) => {{
        // Writing into a text cannot fail.
        let _ = std::fmt::Write::write_fmt($out, format_args!(concat!($format) $(, $crate::elog::web::html::Out(&$argument))*));
    }};
}
pub(crate) use put;

/// Of a style that a configuration gives, what leads elsewhere makes it none.
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
        put!(&mut out, "<p title=\"{}\">{} {}</p>", "\"><script>", Raw("<br>"), 7u32);
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
