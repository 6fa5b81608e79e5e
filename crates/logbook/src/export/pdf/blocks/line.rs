//! The runs of a paragraph, with the spaces that HTML shows.

use super::super::document::{PdfRun, PdfStyle};

/// Bytes after which a paragraph goes on in the next one, so that the typesetter breaks lines in bounded work.
const LONG: usize = 8 << 10;
/// Bytes of a text that are appended at a time.
const PIECE: usize = LONG / 4;
/// Characters of a word after which a line may end.
const LONG_WORD: usize = 48;
/// Columns of a tabulator.
const TAB: usize = 8;
/// An invisible place for the end of a line.
const BREAK: char = '\u{200b}';

/// Returns a text in pieces of bounded length, which end with a line or a word if they can.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let most = (0..=PIECE.min(rest.len())).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let end = if most == rest.len() {
            most
        } else {
            let first = &rest[..most];
            first.rfind('\n').or_else(|| first.rfind(' ')).map_or(most, |at| at + 1)
        };
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// A paragraph that has begun.
#[derive(Debug, Default)]
pub struct Line {
    runs: Vec<PdfRun>,
    bytes: usize,
    /// Characters since the last space.
    word: usize,
    /// Characters since the begin of the line, for tabulators.
    column: usize,
    /// A space that is shown if a word follows.
    space: bool,
    /// True if something stands on this line.
    begun: bool,
}

impl Line {
    /// Appends a text; several spaces and line ends are one space.
    pub fn text(&mut self, text: &str, style: &PdfStyle) {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            if matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}') {
                self.space |= self.begun;
                continue;
            }
            if std::mem::take(&mut self.space) {
                out.push(' ');
                self.word = 0;
            }
            self.character(c, &mut out);
        }
        // The space between two styles belongs to the first one.
        if self.space && !out.is_empty() {
            out.push(' ');
            (self.space, self.word) = (false, 0);
            self.begun = true;
        }
        self.push(out, style);
    }

    /// Appends a text with all its spaces and line ends.
    pub fn kept(&mut self, text: &str, style: &PdfStyle) {
        let mut out = String::with_capacity(text.len());
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '\r' if characters.peek() == Some(&'\n') => {}
                '\n' | '\r' => {
                    out.push('\n');
                    (self.word, self.column) = (0, 0);
                }
                '\t' => {
                    let columns = TAB - self.column % TAB;
                    out.extend(std::iter::repeat_n(' ', columns));
                    (self.word, self.column) = (0, self.column + columns);
                }
                ' ' => {
                    out.push(' ');
                    (self.word, self.column) = (0, self.column + 1);
                }
                c => {
                    self.character(c, &mut out);
                    self.column += 1;
                }
            }
        }
        self.push(out, style);
    }

    /// Ends a line within the paragraph.
    pub fn end_of_line(&mut self) {
        self.push("\n".to_owned(), &PdfStyle::default());
        (self.space, self.begun, self.word, self.column) = (false, false, 0, 0);
    }

    fn character(&mut self, c: char, out: &mut String) {
        self.begun = true;
        self.word = if c == BREAK { 0 } else { self.word + 1 };
        out.push(if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c });
        if self.word >= LONG_WORD {
            out.push(BREAK);
            self.word = 0;
        }
    }

    fn push(&mut self, text: String, style: &PdfStyle) {
        if text.is_empty() {
            return;
        }
        self.bytes += text.len();
        let is_plain = *style == PdfStyle::default();
        match self.runs.last_mut() {
            Some(PdfRun::Plain(before)) if is_plain => before.push_str(&text),
            Some(PdfRun::Styled { text: before, style: known }) if known == style => before.push_str(&text),
            _ if is_plain => self.runs.push(PdfRun::Plain(text)),
            _ => self.runs.push(PdfRun::Styled { text, style: style.clone() }),
        }
    }

    /// Returns true if the paragraph shall go on in the next one.
    pub fn is_long(&self) -> bool {
        self.bytes > LONG
    }

    /// Returns the runs without spaces and ends of lines at their end, and begins anew. Nothing is left of a paragraph
    /// that has only these.
    pub fn take(&mut self) -> Vec<PdfRun> {
        let mut runs = std::mem::take(self).runs;
        while let Some(PdfRun::Plain(text) | PdfRun::Styled { text, .. }) = runs.last_mut() {
            text.truncate(text.trim_end_matches([' ', '\n']).len());
            if !text.is_empty() {
                break;
            }
            runs.pop();
        }
        runs
    }

    /// Returns the runs without the last end of a line, and begins anew.
    pub fn take_kept(&mut self) -> Vec<PdfRun> {
        let mut runs = std::mem::take(self).runs;
        if let Some(PdfRun::Plain(text) | PdfRun::Styled { text, .. }) = runs.last_mut() {
            if text.ends_with('\n') {
                text.pop();
            }
            if text.is_empty() {
                runs.pop();
            }
        }
        runs
    }
}
