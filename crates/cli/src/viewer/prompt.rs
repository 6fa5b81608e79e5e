//! A line that is typed at the bottom of the screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Purposes of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    SearchForward,
    SearchBack,
    Include,
    Exclude,
    Save,
}

impl Purpose {
    /// Returns the label before the text.
    pub const fn label(self) -> &'static str {
        match self {
            Purpose::SearchForward => "search",
            Purpose::SearchBack => "search back",
            Purpose::Include => "show only rows with",
            Purpose::Exclude => "leave out rows with",
            Purpose::Save => "save rows shown to (.xml .json .csv, .gz)",
        }
    }

    /// Returns true for a search text, which may be an expression.
    pub const fn is_pattern(self) -> bool {
        !matches!(self, Purpose::Save)
    }
}

/// An edited line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub purpose: Purpose,
    pub text: String,
    /// Position of the cursor, in bytes.
    pub at: usize,
    pub is_regex: bool,
    pub with_case: bool,
    /// Previous input, for the arrow up.
    earlier: String,
}

/// Result of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typed {
    /// The input continues.
    More,
    /// The input was accepted.
    Entered,
    /// The input was cancelled.
    Left,
}

impl Prompt {
    /// Makes an empty line; the up arrow inserts `earlier`.
    pub fn new(purpose: Purpose, earlier: String, is_regex: bool, with_case: bool) -> Prompt {
        Prompt { purpose, text: String::new(), at: 0, is_regex, with_case, earlier }
    }

    fn before(&self) -> usize {
        self.text[..self.at].chars().next_back().map_or(0, char::len_utf8)
    }

    fn after(&self) -> usize {
        self.text[self.at..].chars().next().map_or(0, char::len_utf8)
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Typed {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Typed::Left,
            KeyCode::Char('c') if control => return Typed::Left,
            KeyCode::Enter => return Typed::Entered,
            KeyCode::Char('r') if control && self.purpose.is_pattern() => self.is_regex = !self.is_regex,
            KeyCode::Char('t') if control && self.purpose.is_pattern() => self.with_case = !self.with_case,
            KeyCode::Char('u') if control => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::Char('e') if control => self.at = self.text.len(),
            KeyCode::Char(character) if !control => {
                self.text.insert(self.at, character);
                self.at += character.len_utf8();
            }
            KeyCode::Backspace if self.text.is_empty() => return Typed::Left,
            KeyCode::Backspace => {
                let length = self.before();
                self.at -= length;
                self.text.drain(self.at..self.at + length);
            }
            KeyCode::Delete => drop(self.text.drain(self.at..self.at + self.after())),
            KeyCode::Left => self.at -= self.before(),
            KeyCode::Right => self.at += self.after(),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            KeyCode::Up => {
                self.text.clone_from(&self.earlier);
                self.at = self.text.len();
            }
            _ => {}
        }
        Typed::More
    }

    /// Returns the switches for the screen.
    pub fn hints(&self) -> String {
        if !self.purpose.is_pattern() {
            return "Enter saves, Esc leaves".to_owned();
        }
        let switch = |key: &str, what: &str, on: bool| format!("{key} {what} {}", if on { "on" } else { "off" });
        format!("{}  {}  Esc leaves", switch("^R", "regex", self.is_regex), switch("^T", "case", self.with_case))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_in_characters() {
        let mut prompt = Prompt::new(Purpose::SearchForward, "earlier".into(), false, false);
        let mut press = |code| prompt.key(KeyEvent::new(code, KeyModifiers::NONE));
        for character in "äbü".chars() {
            press(KeyCode::Char(character));
        }
        press(KeyCode::Left);
        press(KeyCode::Backspace);
        press(KeyCode::Char('é'));
        press(KeyCode::Delete);
        press(KeyCode::Left);
        press(KeyCode::Left);
        assert_eq!(press(KeyCode::Left), Typed::More);
        press(KeyCode::Char('x'));
        assert_eq!(press(KeyCode::Enter), Typed::Entered);
        assert_eq!(prompt.text, "xäé");
        prompt.key(KeyEvent::new(KeyCode::Char('r'), KeyModifiers::CONTROL));
        assert!(prompt.is_regex && prompt.hints().contains("^R regex on  ^T case off"));
        prompt.key(KeyEvent::new(KeyCode::Up, KeyModifiers::NONE));
        assert_eq!((prompt.text.as_str(), prompt.at), ("earlier", 7));
        prompt.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(prompt.key(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE)), Typed::Left);
    }
}
