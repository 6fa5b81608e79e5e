//! Highlighting of matches of a search, and of a user's expressions, in a line.

use regex::{Regex, RegexBuilder};

use crate::{failure::Failure, paint::Paint};

/// Escape sequences of search matches: reversed.
const SEARCHED: (&str, &str) = ("\x1b[7m", "\x1b[27m");
/// Escape sequences of further expressions, each with a background of its own; the colours repeat after the last.
const MARKED: [(&str, &str); 5] = [
    ("\x1b[30;43m", "\x1b[39;49m"),
    ("\x1b[30;46m", "\x1b[39;49m"),
    ("\x1b[30;45m", "\x1b[39;49m"),
    ("\x1b[30;42m", "\x1b[39;49m"),
    ("\x1b[30;44m", "\x1b[39;49m"),
];

/// Expressions to highlight.
#[derive(Debug, Clone, Default)]
pub struct Highlight {
    marks: Vec<(Regex, (&'static str, &'static str))>,
}

impl Highlight {
    /// Marks the matches of a search: texts in any case, and matches of the expression.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>, expression: Option<&str>) -> Highlight {
        let texts = texts.into_iter().filter(|text| !text.is_empty()).map(|text| (regex::escape(text), true));
        let all = texts.chain(expression.map(|pattern| (pattern.to_owned(), false)));
        // Searches check their expressions; an invalid one marks nothing here.
        let marks = all.filter_map(|(pattern, without_case)| compile(&pattern, without_case).ok().map(|mark| (mark, SEARCHED)));
        Highlight { marks: marks.collect() }
    }

    /// Marks the matches of these expressions as well, in any case unless they override it (`(?-i)`).
    pub fn and(mut self, expressions: &[String]) -> Result<Highlight, Failure> {
        for (pattern, look) in expressions.iter().zip(MARKED.into_iter().cycle()) {
            let why = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().trim().to_owned();
            let mark =
                compile(pattern, true).map_err(|error| Failure::Usage(format!("--highlight '{pattern}': {}", why(error))))?;
            self.marks.push((mark, look));
        }
        Ok(self)
    }

    /// Appends the text with its matches marked.
    pub fn write(&self, text: &str, paint: Paint, line: &mut String) {
        self.write_in(text, paint, ("", ""), line);
    }

    /// Writes the text within a style that begins and ends with these codes.
    pub fn write_in(&self, text: &str, paint: Paint, (begin, end): (&str, &str), line: &mut String) {
        line.push_str(begin);
        if !self.marks.is_empty() && !paint.bold().is_empty() {
            let mut at = 0;
            while let Some((start, stop, look)) = self.next_match(text, at) {
                line.push_str(&text[at..start]);
                line.push_str(look.0);
                line.push_str(&text[start..stop]);
                line.push_str(look.1);
                at = stop;
            }
            line.push_str(&text[at..]);
        } else {
            line.push_str(text);
        }
        line.push_str(end);
    }

    /// The next match that is not empty; of several at one place the one that was named first.
    fn next_match(&self, text: &str, at: usize) -> Option<(usize, usize, (&'static str, &'static str))> {
        let mut best: Option<(usize, usize, (&'static str, &'static str))> = None;
        for (mark, look) in &self.marks {
            let mut from = at;
            while let Some(found) = mark.find_at(text, from) {
                if !found.is_empty() {
                    if best.is_none_or(|(start, ..)| found.start() < start) {
                        best = Some((found.start(), found.end(), *look));
                    }
                    break;
                }
                let Some(next) = text[found.end()..].chars().next() else { break };
                from = found.end() + next.len_utf8();
            }
        }
        best
    }
}

fn compile(pattern: &str, without_case: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).case_insensitive(without_case).size_limit(4 << 20).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::When;

    fn marked(highlight: &Highlight, text: &str) -> String {
        let mut line = String::new();
        highlight.write(text, Paint::for_stdout(When::Always), &mut line);
        line
    }

    #[test]
    fn matches_are_marked_whatever_their_case() {
        let highlight = Highlight::of(["LOCK", "dv"], None);
        assert_eq!(marked(&highlight, "no lock on DV01"), "no \x1b[7mlock\x1b[27m on \x1b[7mDV\x1b[27m01");
    }

    #[test]
    fn each_expression_has_a_colour_and_empty_matches_none() {
        let highlight = Highlight::of([], Some("no")).and(&["d.[0-9]+".to_owned(), "x*".to_owned()]).unwrap();
        assert_eq!(marked(&highlight, "no é DV01 xx"), "\x1b[7mno\x1b[27m é \x1b[30;43mDV01\x1b[39;49m \x1b[30;46mxx\x1b[39;49m");
        assert!(matches!(Highlight::default().and(&["a(".to_owned()]), Err(Failure::Usage(why)) if why.contains("'a('")));
        let mut plain = String::new();
        highlight.write("no DV01", Paint::for_stdout(When::Never), &mut plain);
        assert_eq!(plain, "no DV01");
    }
}
