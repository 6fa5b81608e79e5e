//! Where in the program a record comes from, known at compile time and named once a packet.

use tampu_types::Level;

/// One log statement. The macros make a static one each; a record then only carries which one it is.
#[derive(Debug)]
pub struct CallSite {
    /// Its level.
    pub level: Level,
    /// Source file, as the compiler saw it.
    pub file: &'static str,
    /// Line in it.
    pub line: u32,
    /// Gives the path of something defined inside the function, as [`std::any::type_name`] spells it; asked only when a packet
    /// meets the site for the first time.
    pub routine: fn() -> &'static str,
}

impl CallSite {
    /// The function's path: without the marker the macro defines inside it, and without closures.
    pub fn routine(&self) -> &'static str {
        let path = (self.routine)();
        let mut path = path.strip_suffix("::tampu_marker").unwrap_or(path);
        while let Some(outer) = path.strip_suffix("::{{closure}}") {
            path = outer;
        }
        path
    }
}
