//! Rows of text under a heading, in columns as wide as their content.

use std::io::Write;

use super::table::printable;
use crate::failure::{Outcome, written};

/// Longest width of a column that is not the last one, in characters.
const WIDEST: usize = 60;

/// Writes the heading and the rows; nothing without rows. Numbers, which are columns whose title begins with `>`, stand to
/// the right. Cells may hold names from other processes.
pub fn write_rows(out: &mut impl Write, titles: &[&str], rows: &[Vec<String>]) -> Outcome {
    if rows.is_empty() {
        return Ok(());
    }
    let is_number: Vec<bool> = titles.iter().map(|title| title.starts_with('>')).collect();
    let heading = titles.iter().map(|title| title.trim_start_matches('>').to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(heading)
        .chain(rows.iter().map(|row| row.iter().map(|cell| printable(cell).into_owned()).collect()))
        .collect();
    let width = |column: usize| {
        let longest = lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max();
        longest.unwrap_or(0).min(WIDEST)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    for line in &lines {
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let blank = widths[column].saturating_sub(cell.chars().count());
            let (before, after) = if is_number[column] { (blank, 0) } else { (0, blank) };
            text.push_str(if column == 0 { "" } else { "  " });
            text.extend(std::iter::repeat_n(' ', before));
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', after));
        }
        written(writeln!(out, "{}", text.trim_end()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_content_and_harmless() {
        let rows = [["a\x1b[2J", "7", "x"], ["longer", "1234", ""]].map(|row| row.map(str::to_owned).to_vec());
        let mut out = Vec::new();
        write_rows(&mut out, &["name", ">number", "last"], &rows).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "name      number  last\na\\x1b[2J       7  x\nlonger      1234\n");
        let mut none = Vec::new();
        write_rows(&mut none, &["name"], &[]).unwrap();
        assert!(none.is_empty());
    }
}
