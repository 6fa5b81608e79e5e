//! Matches of what was searched for, made visible in a line.

use crate::paint::Paint;

/// The texts to mark; case does not count.
#[derive(Debug, Clone, Default)]
pub struct Highlight {
    texts: Vec<String>,
}

impl Highlight {
    /// Marks these texts.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Highlight {
        Highlight { texts: texts.into_iter().map(|text| text.to_ascii_lowercase()).filter(|text| !text.is_empty()).collect() }
    }

    /// Appends the text with its matches marked.
    pub fn write(&self, text: &str, paint: Paint, line: &mut String) {
        if self.texts.is_empty() || paint.bold().is_empty() {
            line.push_str(text);
            return;
        }
        // ASCII lower case keeps every byte's place, so positions found in it are positions in the text.
        let lower = text.to_ascii_lowercase();
        let mut at = 0;
        while let Some((start, end)) = self.next_match(&lower, at) {
            line.push_str(&text[at..start]);
            line.push_str("\x1b[7m");
            line.push_str(&text[start..end]);
            line.push_str("\x1b[27m");
            at = end;
        }
        line.push_str(&text[at..]);
    }

    fn next_match(&self, lower: &str, at: usize) -> Option<(usize, usize)> {
        let found = |text: &String| lower[at..].find(text.as_str()).map(|from| (at + from, at + from + text.len()));
        self.texts.iter().filter_map(found).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::When;

    #[test]
    fn matches_are_marked_whatever_their_case() {
        let mut line = String::new();
        let highlight = Highlight::new(["LOCK".to_owned(), "dv".to_owned()]);
        highlight.write("no lock on DV01", Paint::for_stdout(When::Always), &mut line);
        assert_eq!(line, "no \x1b[7mlock\x1b[27m on \x1b[7mDV\x1b[27m01");
    }
}
