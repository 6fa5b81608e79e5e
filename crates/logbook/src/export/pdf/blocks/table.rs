//! Tables: each cell gets its place, so that no combination of spans is an error for the typesetter.

use std::collections::HashSet;

use super::{
    super::{
        PdfError,
        document::{PdfBlock, PdfCell, PdfRun},
    },
    Context, Flow,
    tree::{Element, Node},
};

/// Columns of a table. A wider one is shown as lines.
const MAX_COLUMNS: usize = 32;
/// Rows that one cell may span.
const MAX_SPAN: usize = 1000;

impl Flow<'_> {
    /// Converts a table. `fits` is false if tables would nest too deeply; then each row is a paragraph.
    pub(super) fn table(&mut self, table: &Element, context: &Context, fits: bool) -> Result<Vec<PdfBlock>, PdfError> {
        let (mut rows, mut captions) = (Vec::new(), Vec::new());
        collect(&table.children, false, &mut rows, &mut captions);
        let mut out = Vec::new();
        for caption in captions {
            out.extend(self.level(&caption.children, context)?);
        }
        let cells: usize = rows.iter().map(|(row, _)| row.len()).sum();
        let columns = rows.iter().map(|(row, _)| row.len()).max().unwrap_or(0);
        if !fits || columns > MAX_COLUMNS || cells > self.room.cells {
            for (row, _) in rows {
                out.extend(self.row_as_line(&row, context)?);
            }
            return Ok(out);
        }
        self.room.cells -= cells;
        let mut taken: HashSet<(usize, usize)> = HashSet::new();
        let (mut placed, mut width): (Vec<PdfCell>, usize) = (Vec::new(), 0);
        let height = rows.len();
        for (y, (row, is_head)) in rows.iter().enumerate() {
            let mut x = 0;
            for cell in row {
                while taken.contains(&(x, y)) {
                    x += 1;
                }
                if x >= MAX_COLUMNS {
                    // Spans of rows above have pushed it out; its text stands below the table.
                    out.extend(self.level(&cell.children, context)?);
                    continue;
                }
                let free = (x..MAX_COLUMNS).take_while(|x| !taken.contains(&(*x, y))).count();
                let colspan = span(cell, "colspan").clamp(1, free.max(1));
                let rowspan = span(cell, "rowspan").clamp(1, height - y);
                for y in y..y + rowspan {
                    taken.extend((x..x + colspan).map(|x| (x, y)));
                }
                let head = is_head | (cell.name == "th");
                placed.push(PdfCell { x, y, colspan, rowspan, head, blocks: self.level(&cell.children, context)? });
                // A column in which no cell begins would only take room.
                width = width.max(x + 1);
                x += colspan;
            }
        }
        for cell in &mut placed {
            cell.colspan = cell.colspan.min(width - cell.x);
        }
        if !placed.is_empty() {
            out.insert(0, PdfBlock::Table { columns: width, cells: placed });
        }
        Ok(out)
    }

    fn row_as_line(&mut self, row: &[&Element], context: &Context) -> Result<Vec<PdfBlock>, PdfError> {
        let (mut line, mut rest) = (Vec::new(), Vec::new());
        for cell in row {
            for block in self.level(&cell.children, context)? {
                match block {
                    PdfBlock::Paragraph { runs, .. } => {
                        if !line.is_empty() {
                            line.push(PdfRun::Plain(" | ".to_owned()));
                        }
                        line.extend(runs);
                    }
                    block => rest.push(block),
                }
            }
        }
        if !line.is_empty() {
            rest.insert(0, PdfBlock::Paragraph { runs: line, align: "" });
        }
        Ok(rest)
    }
}

fn span(cell: &Element, name: &str) -> usize {
    cell.attribute(name).and_then(|span| span.trim().parse().ok()).unwrap_or(1).clamp(1, MAX_SPAN)
}

/// Collects the rows with their cells, and the captions.
fn collect<'a>(nodes: &'a [Node], in_head: bool, rows: &mut Vec<(Vec<&'a Element>, bool)>, captions: &mut Vec<&'a Element>) {
    for node in nodes {
        let Node::Element(element) = node else { continue };
        match element.name.as_str() {
            "thead" => collect(&element.children, true, rows, captions),
            "tbody" | "tfoot" => collect(&element.children, false, rows, captions),
            "caption" => captions.push(element),
            "tr" => {
                let cells = element.children.iter().filter_map(|node| match node {
                    Node::Element(cell) if cell.name == "td" || cell.name == "th" => Some(cell),
                    _ => None,
                });
                rows.push((cells.collect(), in_head));
            }
            _ => {}
        }
    }
}
