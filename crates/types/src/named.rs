//! `named_enum!`: makes an enum with named variants from one list.
//!
//! An enum in settings and queries needs the list of all variants, a name for each, and an error that lists the names.
//! It also needs reading and writing of the names. Written by hand these are four lists that have to agree.

use std::fmt;

/// A text that is not the name of any variant. The message lists the names that are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// The kind of thing that was expected, such as `quality`.
    pub noun: &'static str,
    /// Text that was given.
    pub text: String,
    /// The names that are known, in the order of the enum.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} '{}'; use one of {}", self.noun, self.text, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// Declares an enum with `ALL`, `NAMES`, `name`, `from_name` and `Display`; with a noun in parentheses also `FromStr`,
/// whose error is [`UnknownName`](crate::named::UnknownName). Names are read without regard to ASCII case. Numbers are
/// optional.
///
/// ```
/// tampu_types::named_enum! {
///     /// Side of a telescope.
///     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
///     pub enum Side("side") {
///         /// Facing north.
///         North = 0 => "north",
///         /// Facing south.
///         South = 1 => "south",
///     }
/// }
///
/// assert_eq!("North".parse(), Ok(Side::North));
/// assert_eq!(Side::ALL.map(Side::name), ["north", "south"]);
/// assert_eq!("up".parse::<Side>().unwrap_err().to_string(), "unknown side 'up'; use one of north, south");
/// ```
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$about:meta])*
        $visibility:vis enum $type:ident($noun:literal) {
            $($(#[$doc:meta])* $variant:ident $(= $number:literal)? => $name:literal),* $(,)?
        }
    ) => {
        $crate::named_enum! {
            $(#[$about])*
            $visibility enum $type {
                $($(#[$doc])* $variant $(= $number)? => $name),*
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::named::UnknownName;

            fn from_str(text: &str) -> ::std::result::Result<$type, $crate::named::UnknownName> {
                $type::from_name(text.trim()).ok_or_else(|| $crate::named::UnknownName {
                    noun: $noun,
                    text: text.to_owned(),
                    known: $type::NAMES,
                })
            }
        }
    };
    (
        $(#[$about:meta])*
        $visibility:vis enum $type:ident {
            $($(#[$doc:meta])* $variant:ident $(= $number:literal)? => $name:literal),* $(,)?
        }
    ) => {
        $(#[$about])*
        $visibility enum $type {
            $($(#[$doc])* $variant $(= $number)?),*
        }

        #[allow(dead_code)]
        impl $type {
            /// All variants, in the order of their declaration.
            $visibility const ALL: [$type; { [$($name),*].len() }] = [$($type::$variant),*];

            /// The names of all variants, in the order of their declaration.
            $visibility const NAMES: &'static [&'static str] = &[$($name),*];

            /// The variant's name.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name),*
                }
            }

            /// The variant of this name, in any ASCII case.
            $visibility fn from_name(name: &str) -> ::std::option::Option<$type> {
                $type::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
