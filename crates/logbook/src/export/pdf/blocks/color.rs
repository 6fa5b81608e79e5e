//! Styles of HTML that a PDF shows: colors, weights, decorations.

use super::super::document::PdfStyle;

/// The sum of red, green and blue above which a text could not be read on paper.
const PALE: u32 = 600;

/// Names of colors that texts of logbooks have.
const NAMES: [(&str, u32); 24] = [
    ("aqua", 0x00ffff),
    ("black", 0x000000),
    ("blue", 0x0000ff),
    ("brown", 0xa52a2a),
    ("cyan", 0x00ffff),
    ("darkblue", 0x00008b),
    ("darkgreen", 0x006400),
    ("darkred", 0x8b0000),
    ("fuchsia", 0xff00ff),
    ("gray", 0x808080),
    ("green", 0x008000),
    ("grey", 0x808080),
    ("indigo", 0x4b0082),
    ("lime", 0x00ff00),
    ("magenta", 0xff00ff),
    ("maroon", 0x800000),
    ("navy", 0x000080),
    ("olive", 0x808000),
    ("orange", 0xffa500),
    ("purple", 0x800080),
    ("red", 0xff0000),
    ("teal", 0x008080),
    ("violet", 0xee82ee),
    ("yellow", 0xffff00),
];

/// Returns the value of a property in the declarations of a style.
pub fn value<'a>(style: &'a str, property: &str) -> Option<&'a str> {
    let declarations = style.split(';').filter_map(|one| one.split_once(':'));
    let mut found = declarations.filter(|(name, _)| name.trim().eq_ignore_ascii_case(property));
    found.next_back().map(|(_, value)| value.trim())
}

/// Sets the color of a style, if it is known and can be read on paper.
pub fn apply(color: Option<&str>, style: &mut PdfStyle) {
    if let Some(color) = color.and_then(read) {
        let [_, red, green, blue] = color.to_be_bytes();
        let is_readable = u32::from(red) + u32::from(green) + u32::from(blue) < PALE;
        style.color = (is_readable && color != 0).then(|| format!("#{color:06x}"));
    }
}

/// Applies the declarations of an element's style.
pub fn declarations(declared: Option<&str>, style: &mut PdfStyle) {
    let Some(declared) = declared else { return };
    apply(value(declared, "color"), style);
    let is = |property: &str, values: &[&str]| {
        value(declared, property).is_some_and(|value| values.iter().any(|one| value.to_ascii_lowercase().contains(one)))
    };
    style.bold |= is("font-weight", &["bold", "600", "700", "800", "900"]);
    style.italic |= is("font-style", &["italic", "oblique"]);
    style.underline |= is("text-decoration", &["underline"]);
    style.strike |= is("text-decoration", &["line-through"]);
    style.code |= is("font-family", &["monospace", "courier"]);
    style.sub |= is("vertical-align", &["sub"]);
    style.sup |= is("vertical-align", &["super"]);
}

fn read(text: &str) -> Option<u32> {
    let text = text.trim().to_ascii_lowercase();
    if let Some((_, color)) = NAMES.iter().find(|(name, _)| *name == text) {
        return Some(*color);
    }
    if let Some(parts) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) {
        let parts: Vec<u32> = parts.split(',').filter_map(|part| part.trim().parse::<u8>().ok()).map(u32::from).collect();
        return match parts[..] {
            [red, green, blue] => Some((red << 16) | (green << 8) | blue),
            _ => None,
        };
    }
    let digits = text.strip_prefix('#')?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match digits.len() {
        3 => {
            let short = u32::from_str_radix(digits, 16).ok()?;
            Some([8, 4, 0].iter().fold(0, |color, shift| (color << 8) | (((short >> shift) & 0xf) * 0x11)))
        }
        6 => u32::from_str_radix(digits, 16).ok(),
        _ => None,
    }
}
