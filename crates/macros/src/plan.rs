//! Places of the arguments in the text, and the parts of them that a call stores.

use std::collections::BTreeMap;

use crate::{
    format::{Count, Part, Position, Spec},
    input::Argument,
};

/// A statement's text, with its arguments found.
pub struct Plan {
    /// Names that the text uses and the arguments do not have: variables of the program. They follow the arguments.
    pub variables: Vec<String>,
    pub pieces: Vec<Piece>,
    pub captures: Vec<Capture>,
}

pub enum Piece {
    Text(String),
    /// A capture's number, and how it is shown.
    Capture(usize, Spec),
}

/// One argument shown in one way, as a call stores it. Widths and precisions that are arguments, and addresses, are
/// known at the call alone; such a value is formatted there.
#[derive(PartialEq)]
pub struct Capture {
    pub argument: usize,
    pub width: Option<usize>,
    pub precision: Option<usize>,
    pub spec: Spec,
}

impl Capture {
    pub fn at_the_call(&self) -> bool {
        self.width.is_some() || self.precision.is_some() || self.spec.kind == "p"
    }
}

/// Finds every argument; nothing if one is missing, superfluous or ambiguous, which the compiler's own macro reports
/// better.
pub fn plan(parts: Vec<Part>, arguments: &[Argument]) -> Option<Plan> {
    let mut finder = Finder::new(arguments)?;
    let (mut pieces, mut captures) = (Vec::new(), Vec::<Capture>::new());
    for part in parts {
        let (position, spec) = match part {
            Part::Text(text) => {
                pieces.push(Piece::Text(text));
                continue;
            }
            Part::Field { argument, spec } => (argument, spec),
        };
        // A star takes its argument before the value takes its own.
        let precision = finder.count(&spec.precision)?;
        let argument = finder.find(&position)?;
        let width = finder.count(&spec.width)?;
        let capture = Capture { argument, width, precision, spec: spec.clone() };
        let known = captures.iter().position(|known| *known == capture);
        pieces.push(Piece::Capture(known.unwrap_or(captures.len()), spec));
        if known.is_none() {
            captures.push(capture);
        }
    }
    finder.used.iter().all(|used| *used).then_some(Plan { variables: finder.variables, pieces, captures })
}

struct Finder {
    /// Arguments that were given.
    given: usize,
    names: BTreeMap<String, usize>,
    next: usize,
    used: Vec<bool>,
    variables: Vec<String>,
}

impl Finder {
    fn new(arguments: &[Argument]) -> Option<Finder> {
        let mut names = BTreeMap::new();
        for (index, argument) in arguments.iter().enumerate() {
            let Some(name) = &argument.name else {
                if names.is_empty() {
                    continue;
                }
                return None;
            };
            // A text contains `type` where the program contains `r#type`.
            let name = name.to_string().trim_start_matches("r#").to_owned();
            if names.insert(name, index).is_some() {
                return None;
            }
        }
        Some(Finder { given: arguments.len(), names, next: 0, used: vec![false; arguments.len()], variables: Vec::new() })
    }

    fn find(&mut self, position: &Position) -> Option<usize> {
        let index = match position {
            Position::Next => {
                self.next += 1;
                self.next - 1
            }
            Position::Index(index) => *index,
            Position::Name(name) => *self.names.entry(name.clone()).or_insert_with(|| {
                self.variables.push(name.clone());
                self.given + self.variables.len() - 1
            }),
        };
        if let Some(used) = self.used.get_mut(index) {
            *used = true;
        }
        // Variables follow the given arguments; they have a name, and no number.
        (index < self.given || matches!(position, Position::Name(_))).then_some(index)
    }

    fn count(&mut self, count: &Count) -> Option<Option<usize>> {
        match count {
            Count::Unsaid | Count::Fixed(_) => Some(None),
            Count::Argument(position) => self.find(position).map(Some),
            Count::Star => self.find(&Position::Next).map(Some),
        }
    }
}
