//! Cells that a spreadsheet takes for text and not for a formula.
//!
//! A spreadsheet that opens a table evaluates a cell with a formula's first character, and a formula can run programs or
//! send the table elsewhere. An apostrophe before such a cell makes it text. Plain numbers stay as they are, also with a unit behind a blank.

use std::borrow::Cow;

/// Returns the cell, with an apostrophe before it if a spreadsheet would take it for a formula. Plain numbers stay.
///
/// ```
/// use tampu_types::spreadsheet::harmless_cell;
/// assert_eq!(harmless_cell("=HYPERLINK(A1)"), "'=HYPERLINK(A1)");
/// assert_eq!(harmless_cell("-1.5e-9"), "-1.5e-9");
/// ```
pub fn harmless_cell(cell: &str) -> Cow<'_, str> {
    // A cell that has the apostrophe gets a second one, so that reading the table gives back the first.
    let bare = cell.trim_start_matches('\'');
    let is_formula = bare.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number(bare);
    if is_formula { format!("'{cell}").into() } else { cell.into() }
}

/// Returns the value of a cell that [`harmless_cell`] made.
///
/// ```
/// use tampu_types::spreadsheet::value_of_cell;
/// assert_eq!(value_of_cell("'=1+1"), "=1+1");
/// assert_eq!(value_of_cell("''=1+1"), "'=1+1");
/// assert_eq!(value_of_cell("'tis"), "'tis");
/// ```
pub fn value_of_cell(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(value) if matches!(harmless_cell(value), Cow::Owned(_)) => value,
        _ => cell,
    }
}

/// Returns true for a number in digits, with sign, fraction and exponent, and perhaps a blank and a unit.
fn is_number(cell: &str) -> bool {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && digits.parse::<f64>().is_ok()
        && unit.chars().all(|letter| letter.is_alphabetic() || "%°/".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text_and_numbers_stay() {
        for formula in [
            "=1+1",
            "+cmd|' /C calc'!A0",
            "-2+3+cmd|' /C calc'!A0",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "-",
            "--1",
            "-inf",
            "+nan",
            "-1 A(B)",
            "+1 cmd|x",
            // It has an apostrophe of its own.
            "'=1",
        ] {
            assert_eq!(harmless_cell(formula), format!("'{formula}"));
        }
        for cell in [
            "",
            "-1",
            "+1",
            "-1.5",
            "-.5",
            "-1e-9",
            "+2E6",
            "-1.5 mbar",
            "-3 m/s",
            "text",
            "a=b",
            "'1",
            "1+1",
            " =1",
            "2026-11-23T04:54:19Z",
        ] {
            assert_eq!(harmless_cell(cell), cell);
        }
    }
}
