//! Reads tables and hex dumps out of the pages of `spec/`, for the tests that hold them against the code.

#![allow(dead_code)]

fn page(file: &str) -> String {
    let path = format!("{}/../../spec/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of the table whose first column has this title. Cells are written as code or bare; `` `""` `` stands for
/// nothing.
pub fn table(file: &str, title: &str) -> Vec<Vec<String>> {
    let page = page(file);
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_start_matches('|').trim_end_matches('|');
        line.split('|')
            .map(|cell| cell.trim().trim_matches('`'))
            .map(|cell| if cell == "\"\"" { "" } else { cell }.to_owned())
            .collect()
    };
    let rows: Vec<Vec<String>> = page
        .lines()
        .skip_while(|line| !line.starts_with('|') || cells(line)[0] != title)
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(cells)
        .collect();
    assert!(!rows.is_empty(), "{file} has no table of '{title}'");
    rows
}

/// The bytes of a page's hex dumps, counted from 0: a block fenced as `hex`, each line `offset: bytes  # remark`.
pub fn hex_dump(file: &str, which: usize) -> Vec<u8> {
    let page = page(file);
    let after = page.split("```hex\n").nth(which + 1).unwrap_or_else(|| panic!("{file} has no hex dump {which}"));
    let (block, _) = after.split_once("```").expect("the dump ends");
    let mut bytes = Vec::new();
    for line in block.lines() {
        let (offset, rest) = line.split_once(':').expect("each line begins with its offset");
        assert_eq!(offset.trim().parse(), Ok(bytes.len()), "{line}");
        let digits = rest.split('#').next().unwrap_or_default();
        bytes.extend(digits.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    bytes
}
