//! The colours of the viewer, or their absence.

use ratatui::style::{Color, Modifier, Style};
use tampu_types::Level;

/// The colours, or their absence.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    /// True unless NO_COLOR is set.
    pub colour: bool,
}

impl Theme {
    fn coloured(self, style: Style) -> Style {
        if self.colour { style } else { Style { fg: None, bg: None, ..style } }
    }

    /// The style of a level.
    pub fn level(self, level: Level) -> Style {
        let style = Style::new();
        self.coloured(match level {
            Level::Trace | Level::Delouse => style.fg(Color::DarkGray),
            Level::Debug => style.fg(Color::Cyan),
            Level::Info => style.fg(Color::Green),
            Level::Notice => style.fg(Color::LightBlue),
            Level::Warning => style.fg(Color::Yellow),
            Level::Error => style.fg(Color::Red),
            Level::Critical => style.fg(Color::Red).add_modifier(Modifier::BOLD),
            Level::Alert => style.fg(Color::Magenta).add_modifier(Modifier::BOLD),
            Level::Emergency => style.fg(Color::White).bg(Color::Red).add_modifier(Modifier::BOLD),
        })
    }

    /// The style of the title and of the state beside it.
    pub fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The style of a warning on the title line.
    pub fn alarm(self) -> Style {
        self.coloured(Style::new().fg(Color::White).bg(Color::Red)).add_modifier(Modifier::BOLD)
    }

    /// The style of a match of the search.
    pub fn found(self) -> Style {
        if self.colour {
            Style::new().fg(Color::Black).bg(Color::Yellow)
        } else {
            Style::new().add_modifier(Modifier::UNDERLINED)
        }
    }

    /// Text of less weight.
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The line of a list the cursor is on.
    pub fn cursor(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
