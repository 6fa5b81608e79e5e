//! A format text's pieces, by the grammar of `std::fmt`.
//!
//! Unusual texts (blanks within braces, raw identifiers) and invalid ones return nothing: the compiler's own macro then
//! decides.

/// A piece of a text.
#[derive(Debug, PartialEq)]
pub enum Part {
    Text(String),
    Field { argument: Position, spec: Spec },
}

/// Argument that a field means.
#[derive(Debug, Clone, PartialEq)]
pub enum Position {
    Next,
    Index(usize),
    Name(String),
}

/// A width or precision.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Count {
    #[default]
    Unsaid,
    Fixed(u16),
    /// That of an argument.
    Argument(Position),
    /// That of the next argument, before the value's.
    Star,
}

/// Rules by which an argument is shown; the kind stands at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spec {
    pub fill: Option<char>,
    pub align: Option<char>,
    pub sign: Option<char>,
    pub alternate: bool,
    pub zero: bool,
    pub width: Count,
    pub precision: Count,
    pub kind: String,
}

/// The parts of a format text.
pub fn parse(text: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(brace) = rest.find(['{', '}']) {
        literal.push_str(&rest[..brace]);
        let open = rest[brace..].starts_with('{');
        let behind = &rest[brace + 1..];
        if behind.starts_with(if open { '{' } else { '}' }) {
            literal.push(if open { '{' } else { '}' });
            rest = &behind[1..];
            continue;
        }
        if !open {
            return None;
        }
        let (field, after) = behind.split_once('}')?;
        // A brace as the fill would end the field too early.
        if field.ends_with(':') && after.starts_with(['<', '^', '>']) {
            return None;
        }
        if !literal.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut literal)));
        }
        parts.push(parse_field(field)?);
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(Part::Text(literal));
    }
    Some(parts)
}

fn parse_field(field: &str) -> Option<Part> {
    let (argument, spec) = field.split_once(':').unwrap_or((field, ""));
    let argument = if argument.is_empty() { Position::Next } else { position(argument)? };
    Some(Part::Field { argument, spec: parse_spec(spec)? })
}

fn position(text: &str) -> Option<Position> {
    let is_start = |character: char| character.is_alphabetic() || character == '_';
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    if text.starts_with(|character: char| character.is_ascii_digit()) {
        return text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok().map(Position::Index)).flatten();
    }
    (text.starts_with(is_start) && text.chars().all(is_part) && text != "_").then(|| Position::Name(text.to_owned()))
}

fn is_align(character: char) -> bool {
    matches!(character, '<' | '^' | '>')
}

fn parse_spec(text: &str) -> Option<Spec> {
    let mut spec = Spec::default();
    let mut rest = text;
    let mut characters = rest.chars();
    match (characters.next(), characters.next()) {
        (Some(fill), Some(align)) if is_align(align) => {
            (spec.fill, spec.align, rest) = (Some(fill), Some(align), characters.as_str());
        }
        (Some(align), _) if is_align(align) => (spec.align, rest) = (Some(align), &rest[1..]),
        _ => {}
    }
    for sign in ['+', '-'] {
        if let Some(behind) = rest.strip_prefix(sign) {
            (spec.sign, rest) = (Some(sign), behind);
            break;
        }
    }
    if let Some(behind) = rest.strip_prefix('#') {
        (spec.alternate, rest) = (true, behind);
    }
    // In `0$` the zero is an argument's number.
    if let Some(behind) = rest.strip_prefix('0').filter(|behind| !behind.starts_with('$')) {
        (spec.zero, rest) = (true, behind);
    }
    (spec.width, rest) = count(rest)?;
    if let Some(behind) = rest.strip_prefix('.') {
        (spec.precision, rest) = match behind.strip_prefix('*') {
            Some(behind) => (Count::Star, behind),
            None => count(behind)?,
        };
        if spec.precision == Count::Unsaid {
            return None;
        }
    }
    if !matches!(rest, "" | "?" | "x?" | "X?" | "x" | "X" | "o" | "b" | "e" | "E" | "p") {
        return None;
    }
    spec.kind = rest.to_owned();
    Some(spec)
}

fn count(text: &str) -> Option<(Count, &str)> {
    let end = text.find(|character: char| !(character.is_alphanumeric() || character == '_')).unwrap_or(text.len());
    if let Some(rest) = text[end..].strip_prefix('$') {
        return Some((Count::Argument(position(&text[..end])?), rest));
    }
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return Some((Count::Unsaid, rest));
    }
    Some((Count::Fixed(digits.parse().ok()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(argument: Position, spec: Spec) -> Part {
        Part::Field { argument, spec }
    }

    #[test]
    fn fields_are_read_as_std_fmt_documents_them() {
        let name = |name: &str| Position::Name(name.to_owned());
        let cases = [
            ("", vec![]),
            ("a {{b}}", vec![Part::Text("a {b}".to_owned())]),
            ("{}{1}", vec![field(Position::Next, Spec::default()), field(Position::Index(1), Spec::default())]),
            (
                "{x:é^+#08.3e}",
                vec![field(
                    name("x"),
                    Spec {
                        fill: Some('é'),
                        align: Some('^'),
                        sign: Some('+'),
                        alternate: true,
                        zero: true,
                        width: Count::Fixed(8),
                        precision: Count::Fixed(3),
                        kind: "e".to_owned(),
                    },
                )],
            ),
            (
                "{:0$.p$}",
                vec![field(
                    Position::Next,
                    Spec { width: Count::Argument(Position::Index(0)), precision: Count::Argument(name("p")), ..Spec::default() },
                )],
            ),
            (
                "{:<.*x?}",
                vec![field(
                    Position::Next,
                    Spec { align: Some('<'), precision: Count::Star, kind: "x?".to_owned(), ..Spec::default() },
                )],
            ),
        ];
        for (text, parts) in cases {
            assert_eq!(parse(text), Some(parts), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_or_unusual_is_left_to_the_compiler() {
        for text in ["{", "}", "{:q}", "{ }", "{r#type}", "{:.}", "{:}<5}", "{:99999}", "{a b}", "{-1}", "{_}"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
