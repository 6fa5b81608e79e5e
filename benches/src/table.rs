//! Tables for people: aligned columns and readable numbers.

use std::fmt::Write;

/// A table whose columns are as wide as their widest cell; the first is aligned left, the others right.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Table {
        Table { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns the whole table as text.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                // Writing to a string does not fail.
                let _ = if column == 0 { write!(line, "{cell:<width$}") } else { write!(line, "  {cell:>width$}") };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Returns a count or rate with three significant digits: `4.12 M`, `350 k`, `825`.
pub fn count(value: f64) -> String {
    let (scaled, unit) = match value {
        v if !v.is_finite() => return "-".to_owned(),
        v if v >= 1e9 => (v / 1e9, " G"),
        v if v >= 1e6 => (v / 1e6, " M"),
        v if v >= 1e4 => (v / 1e3, " k"),
        v => return format!("{v:.0}"),
    };
    let decimals = if scaled < 10.0 { 2 } else { usize::from(scaled < 100.0) };
    format!("{scaled:.decimals$}{unit}")
}

/// Returns a payload size in the usual unit: `92 B`, `4 KB`, `1 MB`.
pub fn size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KB", b >> 10),
        b => format!("{b} B"),
    }
}

/// Parses the output of [`size`], and `4K`, `1M`, with or without blanks.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic() || c == ' ');
    let number: usize = digits.trim().parse().map_err(|_| format!("{text:?} is not a size such as 92, 4K or 1M"))?;
    match text[digits.len()..].trim() {
        "" | "b" => Ok(number),
        "k" | "kb" => Ok(number << 10),
        "m" | "mb" => Ok(number << 20),
        unit => Err(format!("{unit:?} is not a unit: B, K or M")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let cases = [
            (4_123_456.0, "4.12 M"),
            (350_400.0, "350 k"),
            (46_000.0, "46.0 k"),
            (825.4, "825"),
            (6751.0, "6751"),
            (1.2e9, "1.20 G"),
        ];
        for (value, text) in cases {
            assert_eq!(count(value), text);
        }
        assert_eq!(count(f64::NAN), "-");
    }

    #[test]
    fn sizes_go_both_ways() {
        for (bytes, text) in [(92, "92 B"), (4096, "4 KB"), (1 << 20, "1 MB"), (5000, "5000 B")] {
            assert_eq!(size(bytes), text);
            assert_eq!(parse_size(text), Ok(bytes));
        }
        assert_eq!(parse_size("4K"), Ok(4096));
        assert!(parse_size("4 parsecs").is_err());
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["system", "rate"]);
        table.row(vec!["raw".into(), "1.00 M".into()]);
        assert_eq!(table.render(), "system    rate\nraw     1.00 M\n");
    }
}
