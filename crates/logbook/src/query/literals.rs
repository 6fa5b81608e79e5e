//! Literals of a regular expression: each match of `/HV tripped.*uA/` contains `HV tripped` and `uA`.

use regex_syntax::hir::{Hir, HirKind};

use super::segments::single;
use crate::text::fold;

/// Returns the literals that a match of an expression contains: a match contains one literal of each set.
pub fn literals(hir: &Hir) -> Vec<Vec<String>> {
    let mut sets = Vec::new();
    let mut run = String::new();
    gather(hir, &mut run, &mut sets);
    close(&mut run, &mut sets);
    sets
}

/// Ends a run of adjacent characters; it is required.
fn close(run: &mut String, sets: &mut Vec<Vec<String>>) {
    let text = fold(run).into_owned();
    run.clear();
    if text.chars().filter(|c| c.is_alphanumeric()).nth(1).is_some() {
        sets.push(vec![text]);
    }
}

fn gather(hir: &Hir, run: &mut String, sets: &mut Vec<Vec<String>>) {
    match hir.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => run.push_str(text),
            Err(_) => close(run, sets),
        },
        HirKind::Class(class) => match single(class) {
            Some(text) => run.push_str(&text),
            None => close(run, sets),
        },
        // Look-around assertions consume no characters.
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Capture(capture) => gather(&capture.sub, run, sets),
        HirKind::Concat(parts) => parts.iter().for_each(|part| gather(part, run, sets)),
        HirKind::Repetition(repetition) => {
            close(run, sets);
            if repetition.min > 0 {
                gather(&repetition.sub, run, sets);
                close(run, sets);
            }
        }
        HirKind::Alternation(parts) => {
            close(run, sets);
            let choices: Option<Vec<String>> = parts
                .iter()
                // Takes the longest literal of each alternative.
                .map(|part| literals(part).into_iter().filter(|set| set.len() == 1).flatten().max_by_key(String::len))
                .collect();
            sets.extend(choices);
        }
    }
}
