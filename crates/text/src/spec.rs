//! Specs: the rules between the braces of a format text, by which one argument is shown.

/// Side of the width on which the value is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Align {
    Left = 1,
    Center = 2,
    Right = 3,
}

/// Character before a number that is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Sign {
    #[default]
    None = 0,
    Plus = 1,
    /// A space; C++ has it.
    Space = 2,
}

/// Notation of the value itself. Each variant names the letter that selects it, in Rust and in C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Kind {
    /// For people: no letter.
    #[default]
    Display = 0,
    /// For programmers: `?`.
    Debug = 1,
    /// Debug, with integers in hexadecimal: `x?` in Rust.
    DebugLowerHex = 2,
    /// Debug, with integers in upper-case hexadecimal: `X?` in Rust.
    DebugUpperHex = 3,
    /// Lower-case hexadecimal, `x`.
    LowerHex = 4,
    /// Upper-case hexadecimal, `X`.
    UpperHex = 5,
    /// Octal digits, `o`.
    Octal = 6,
    /// Binary digits, `b`.
    Binary = 7,
    /// `B` in C++: as `b`, with a large letter in the prefix.
    UpperBinary = 8,
    /// Exponent with a small letter, `e`.
    LowerExp = 9,
    /// Exponent with a capital letter, `E`.
    UpperExp = 10,
    /// `p` in Rust. Addresses are formatted at the call; as a captured value's kind it means Display.
    Pointer = 11,
    /// `d` in C++.
    Decimal = 12,
    /// `c` in C++.
    Character = 13,
    /// `s` in C++.
    Text = 14,
    /// `f` in C++.
    LowerFixed = 15,
    /// `F` in C++.
    UpperFixed = 16,
    /// `g` in C++.
    LowerGeneral = 17,
    /// `G` in C++.
    UpperGeneral = 18,
}

impl Kind {
    /// Returns true for the notations of `Debug`.
    pub const fn is_debug(self) -> bool {
        matches!(self, Kind::Debug | Kind::DebugLowerHex | Kind::DebugUpperHex)
    }

    /// All of them, in the order of their numbers.
    pub const ALL: [Kind; 19] = [
        Kind::Display,
        Kind::Debug,
        Kind::DebugLowerHex,
        Kind::DebugUpperHex,
        Kind::LowerHex,
        Kind::UpperHex,
        Kind::Octal,
        Kind::Binary,
        Kind::UpperBinary,
        Kind::LowerExp,
        Kind::UpperExp,
        Kind::Pointer,
        Kind::Decimal,
        Kind::Character,
        Kind::Text,
        Kind::LowerFixed,
        Kind::UpperFixed,
        Kind::LowerGeneral,
        Kind::UpperGeneral,
    ];

    /// The kind of this number.
    pub fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number)).copied()
    }
}

/// Rules by which one argument is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Character that fills the width up.
    pub fill: char,
    /// Side of the value; by default numbers are right-aligned and all else is left-aligned.
    pub align: Option<Align>,
    /// Character before a number that is not negative.
    pub sign: Sign,
    /// `#`: a prefix before numbers that are not decimal; Debug in several lines.
    pub alternate: bool,
    /// `0`: the width is filled with zeros, behind the sign.
    pub zero: bool,
    /// Least number of characters.
    pub width: Option<u16>,
    /// Digits behind the point, or most characters of a text.
    pub precision: Option<u16>,
    /// Notation of the value itself.
    pub kind: Kind,
}

impl Spec {
    /// The spec of `{}`.
    pub const PLAIN: Spec = Spec {
        fill: ' ',
        align: None,
        sign: Sign::None,
        alternate: false,
        zero: false,
        width: None,
        precision: None,
        kind: Kind::Display,
    };

    /// Returns true for [`Spec::PLAIN`]; called for every argument that is shown.
    #[inline]
    pub fn is_plain(&self) -> bool {
        // Without branches: nearly always all fields are compared.
        (self.fill == ' ')
            & self.align.is_none()
            & (self.sign as u8 == 0)
            & !self.alternate
            & !self.zero
            & self.width.is_none()
            & self.precision.is_none()
            & (self.kind as u8 == 0)
    }
}

impl Default for Spec {
    fn default() -> Spec {
        Spec::PLAIN
    }
}
