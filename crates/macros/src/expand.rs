//! The code of a statement.
//!
//! ```text
//! match &logger { logger => {
//!     if logger.wants(LEVEL) {
//!         match (&argument, &argument) { (a0, a1) => {
//!             static STATEMENT = ...;
//!             logger.record_call(&STATEMENT, Payload::new((stored or formatted a0, (stored or formatted a1, ()))));
//! }}}}}
//! ```
//!
//! It uses a `match` and no `let`, because temporaries of the arguments then live until the call is over. No expression
//! of the program can see the items, and its own items may have the same names.

use proc_macro::{Ident, Literal, Span, TokenStream, TokenTree};

use crate::{
    format::{self, Count, Spec},
    input::{Argument, Input},
    literal,
    plan::{Capture, Piece, Plan, plan},
    template::{error, fill, list, tuple},
};

/// Largest number of arguments that `tampu_text` supports.
const ARGUMENTS_MAX: usize = 64;

/// A statement's text, as code.
struct Message {
    /// Expressions that are evaluated in the scope of the program's variables.
    evaluated: Vec<TokenStream>,
    /// Names of those values afterwards.
    bound: Vec<TokenStream>,
    /// Expressions that are stored of them.
    stored: Vec<TokenStream>,
    pieces: TokenStream,
}

pub fn expand(input: Input) -> TokenStream {
    let literal = input.literal();
    let span = literal.as_ref().map_or(Span::call_site(), Literal::span);
    let parts = literal.as_ref().and_then(|literal| literal::text_of(&literal.to_string())).and_then(|text| format::parse(&text));
    let planned = parts.and_then(|parts| plan(parts, &input.arguments));
    let mut message = match planned {
        Some(planned) => Message::split(&input, planned, span),
        None => Message::whole(&input, literal),
    };
    let names: Vec<&Argument> = input.named.iter().filter(|value| value.name.is_some()).collect();
    if message.stored.len() + names.len() > ARGUMENTS_MAX {
        return error("a log statement takes at most 64 arguments, its named values among them", span);
    }
    let count = message.stored.len() + names.len();
    for (index, value) in names.iter().enumerate() {
        let bound = variable('v', index);
        message.evaluated.push(fill("&$value", &[("value", value.operand().into())]));
        message.stored.push(probed(&input.path, &bound, "{}", span));
        message.bound.push(bound);
    }
    let keys = names.iter().filter_map(|value| value.name.as_ref()).map(|name| {
        let name = name.to_string();
        fill(
            "::std::borrow::Cow::Borrowed($name)",
            &[("name", string(name.strip_prefix("r#").unwrap_or(&name), Span::mixed_site()))],
        )
    });
    let arguments = message
        .stored
        .iter()
        .rev()
        .fold(fill("()", &[]), |rest, first| fill("($first, $rest)", &[("first", first.clone()), ("rest", rest)]));
    fill(
        "match &$logger {
            logger => {
                let wanted = {
                    use $c::Recorder as _;
                    const TAMPU_LEVEL: u8 = $level;
                    logger.wants(TAMPU_LEVEL)
                };
                if wanted {
                    match $evaluated {
                        $bound => {
                            use $c::{Recorder as _, probe::{Format as _, Raw as _}};
                            fn tampu_marker() {}
                            static TAMPU_STATEMENT: $c::Statement = $c::Statement::made(
                                $level,
                                (::core::file!(), ::core::line!(), ::core::module_path!()),
                                &[$pieces],
                                $count,
                                &[$keys],
                                || ::core::any::type_name_of_val(&tampu_marker),
                            );
                            logger.record_call(&TAMPU_STATEMENT, $c::Payload::new($arguments));
                        }
                    }
                }
            }
        }",
        &[
            ("c", input.path.clone()),
            ("logger", operand(&input.logger)),
            ("level", operand(&input.level)),
            ("evaluated", tuple(message.evaluated)),
            ("bound", tuple(message.bound)),
            ("pieces", message.pieces),
            ("count", TokenTree::Literal(Literal::u16_suffixed(count as u16)).into()),
            ("keys", list(keys)),
            ("arguments", arguments),
        ],
    )
}

impl Message {
    /// Each argument by itself.
    fn split(input: &Input, plan: Plan, span: Span) -> Message {
        let given = input.arguments.iter().map(|argument| argument.operand().into());
        // A variable named in the text is resolved at the place of the text.
        let variables = plan.variables.iter().map(|name| TokenTree::Ident(Ident::new(name, span)).into());
        let evaluated: Vec<TokenStream> =
            given.chain(variables).map(|value: TokenStream| fill("&$value", &[("value", value)])).collect();
        let bound = (0..evaluated.len()).map(|index| variable('a', index)).collect();
        let stored = plan.captures.iter().map(|capture| store(&input.path, capture, span)).collect();
        let pieces = list(plan.pieces.iter().map(|shown| piece(&input.path, shown)));
        Message { evaluated, bound, stored, pieces }
    }

    /// Formats the complete text at the call, by the compiler's own macro, which also reports its errors.
    fn whole(input: &Input, literal: Option<Literal>) -> Message {
        let text = literal.map_or(input.text.clone(), |literal| TokenTree::Literal(literal).into());
        let arguments = input.arguments.iter().map(|argument| match &argument.name {
            Some(name) => {
                fill("$name = $value", &[("name", TokenTree::Ident(name.clone()).into()), ("value", argument.value.clone())])
            }
            None => argument.value.clone(),
        });
        let holes = [("c", input.path.clone()), ("text", list([text])), ("arguments", list(arguments))];
        Message {
            evaluated: vec![fill("$c::formatted::Formatted::new(::core::format_args!($text $arguments))", &holes)],
            bound: vec![variable('a', 0)],
            stored: vec![variable('a', 0)],
            pieces: fill("$c::Piece::Argument { index: 0, spec: $c::Spec::PLAIN },", &holes),
        }
    }
}

/// One of this crate's variables, which the program does not see.
fn variable(letter: char, index: usize) -> TokenStream {
    TokenTree::Ident(Ident::new(&format!("{letter}{index}"), Span::mixed_site())).into()
}

fn operand(tokens: &TokenStream) -> TokenStream {
    Argument { name: None, value: tokens.clone() }.operand().into()
}

fn string(text: &str, span: Span) -> TokenStream {
    let mut literal = Literal::string(text);
    literal.set_span(span);
    TokenTree::Literal(literal).into()
}

fn store(path: &TokenStream, capture: &Capture, span: Span) -> TokenStream {
    let argument = variable('a', capture.argument);
    if !capture.at_the_call() {
        return probed(path, &argument, &format!("{{:{}}}", written(&capture.spec, "", "")), span);
    }
    let (mut counts, mut next) = (Vec::new(), 1);
    let mut count = |argument: Option<usize>, mark: &str| {
        let Some(index) = argument else { return String::new() };
        counts.push(fill("*$count", &[("count", variable('a', index))]));
        next += 1;
        format!("{mark}{}$", next - 1)
    };
    let (width, precision) = (count(capture.width, ""), count(capture.precision, "."));
    // For a value shown by its address, the address must be the value's and not that of the macro's reference.
    let value = if capture.spec.kind == "p" { fill("*$a", &[("a", argument)]) } else { argument };
    fill(
        "$c::formatted::Formatted::new(::core::format_args!($text, $value, $counts))",
        &[
            ("c", path.clone()),
            ("text", string(&format!("{{0:{}}}", written(&capture.spec, &width, &precision)), span)),
            ("value", value),
            ("counts", list(counts)),
        ],
    )
}

/// Makes the code for an argument whose type decides between storing and formatting.
fn probed(path: &TokenStream, argument: &TokenStream, text: &str, span: Span) -> TokenStream {
    fill(
        "(&$c::probe::Probe($a)).way().capture($a, ::core::format_args!($text, $a))",
        &[("c", path.clone()), ("a", argument.clone()), ("text", string(text, span))],
    )
}

/// A spec as a format text has it.
fn written(spec: &Spec, width: &str, precision: &str) -> String {
    let character = |character: Option<char>| character.map(String::from).unwrap_or_default();
    let flag = |set: bool, flag: &'static str| if set { flag } else { "" };
    let fixed = |count: &Count, mark: &str, other: &str| match count {
        Count::Fixed(number) => format!("{mark}{number}"),
        _ => other.to_owned(),
    };
    let fill = character(spec.fill);
    let (align, sign) = (character(spec.align), character(spec.sign));
    let (alternate, zero) = (flag(spec.alternate, "#"), flag(spec.zero, "0"));
    let (width, precision) = (fixed(&spec.width, "", width), fixed(&spec.precision, ".", precision));
    format!("{fill}{align}{sign}{alternate}{zero}{width}{precision}{}", spec.kind)
}

fn piece(path: &TokenStream, piece: &Piece) -> TokenStream {
    match piece {
        Piece::Text(text) => fill(
            "$c::Piece::Text(::std::borrow::Cow::Borrowed($text))",
            &[("c", path.clone()), ("text", string(text, Span::mixed_site()))],
        ),
        Piece::Capture(index, spec) if fields(spec).is_empty() => {
            fill(&format!("$c::Piece::Argument {{ index: {index}, spec: $c::Spec::PLAIN }}"), &[("c", path.clone())])
        }
        Piece::Capture(index, spec) => fill(
            &format!("$c::Piece::Argument {{ index: {index}, spec: $c::Spec {{ {} ..$c::Spec::PLAIN }} }}", fields(spec)),
            &[("c", path.clone())],
        ),
    }
}

/// Fields of a spec that are not plain, as code.
fn fields(spec: &Spec) -> String {
    let mut code = String::new();
    let align = |align: char| match align {
        '<' => "Left",
        '^' => "Center",
        _ => "Right",
    };
    if let Some(fill) = spec.fill {
        code += &format!("fill: {fill:?}, ");
    }
    if let Some(side) = spec.align {
        code += &format!("align: ::core::option::Option::Some($c::Align::{}), ", align(side));
    }
    if spec.sign == Some('+') {
        code += "sign: $c::Sign::Plus, ";
    }
    if spec.alternate {
        code += "alternate: true, ";
    }
    if spec.zero {
        code += "zero: true, ";
    }
    for (field, count) in [("width", &spec.width), ("precision", &spec.precision)] {
        if let Count::Fixed(number) = count {
            code += &format!("{field}: ::core::option::Option::Some({number}), ");
        }
    }
    let kind = match spec.kind.as_str() {
        "?" => "Debug",
        "x?" => "DebugLowerHex",
        "X?" => "DebugUpperHex",
        "x" => "LowerHex",
        "X" => "UpperHex",
        "o" => "Octal",
        "b" => "Binary",
        "e" => "LowerExp",
        "E" => "UpperExp",
        "p" => "Pointer",
        _ => "Display",
    };
    if kind != "Display" {
        code += &format!("kind: $c::Kind::{kind}, ");
    }
    code
}
