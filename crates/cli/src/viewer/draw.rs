//! How the viewer looks: one function from its state onto a frame.
//!
//! Only the rows on the screen are looked at, so drawing costs the same however many are kept. Column widths follow what is on
//! the screen; the message takes what is left. Columns that do not fit go out on the left as the cursor goes to the right.

use std::borrow::Cow;

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};
use tampu_types::{Level, LogRecord};

use crate::{
    output::{
        column::Column,
        table::{printable, source_of},
    },
    viewer::{
        panels,
        prompt::Prompt,
        state::{Kind, Link, Panel, Side, Viewer},
    },
};

/// The colours, or their absence.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    /// Whether there are any (NO_COLOR).
    pub colour: bool,
}

impl Theme {
    fn coloured(self, style: Style) -> Style {
        if self.colour { style } else { Style { fg: None, bg: None, ..style } }
    }

    fn level(self, level: Level) -> Style {
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

    fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn alarm(self) -> Style {
        self.coloured(Style::new().fg(Color::White).bg(Color::Red)).add_modifier(Modifier::BOLD)
    }

    fn found(self) -> Style {
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

/// The parts of the screen.
struct Parts {
    title: Rect,
    heading: Rect,
    table: Rect,
    detail: Rect,
    filter: Rect,
    bottom: Rect,
}

fn parts(viewer: &Viewer, area: Rect) -> Parts {
    let line = |y: u16| Rect { y: area.y + y.min(area.height.saturating_sub(1)), height: 1.min(area.height), ..area };
    let between = area.height.saturating_sub(4);
    let detail = if viewer.detail.is_some() { between / 2 } else { 0 };
    let table = between - detail;
    Parts {
        title: line(0),
        heading: line(1),
        table: Rect { y: area.y + 2, height: table, ..area },
        detail: Rect { y: area.y + 2 + table, height: detail, ..area },
        filter: line(area.height.saturating_sub(2)),
        bottom: line(area.height.saturating_sub(1)),
    }
}

/// How many rows fit on a screen of this size.
pub fn page(viewer: &Viewer, area: Rect) -> usize {
    usize::from(parts(viewer, area).table.height)
}

/// Draws all of it.
pub fn draw(viewer: &Viewer, theme: Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.height < 5 || area.width < 20 {
        frame.buffer_mut().set_stringn(area.x, area.y, "too small", usize::from(area.width), Style::new());
        return;
    }
    let parts = parts(viewer, area);
    let buffer = frame.buffer_mut();
    title(viewer, theme, parts.title, buffer);
    table(viewer, theme, &parts, buffer);
    filter_line(viewer, parts.filter, buffer);
    let cursor = bottom(viewer, theme, parts.bottom, buffer);
    if let (Some(scroll), Some(row)) = (viewer.detail, viewer.current()) {
        panels::detail(row, scroll, theme, parts.detail, buffer);
    }
    match viewer.panel {
        Panel::None => {}
        Panel::Help { scroll } => panels::help(scroll, theme, area, buffer),
        Panel::Columns { at } => panels::columns(&viewer.columns, at, theme, area, buffer),
        Panel::Rules { at } => panels::rules(&viewer.filter, at, theme, area, buffer),
    }
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
}

fn title(viewer: &Viewer, theme: Theme, area: Rect, buffer: &mut Buffer) {
    buffer.set_style(area, theme.bar());
    let dropped = match viewer.rows.dropped() {
        0 => String::new(),
        dropped => format!(", {dropped} older ones out of memory"),
    };
    let counts = match &viewer.side {
        Some(side) => side_title(side),
        None => format!("{} of {} rows{dropped}", viewer.rows.shown(), viewer.rows.kept()),
    };
    let state = match (viewer.pause.is_on(), viewer.link, viewer.follow) {
        (true, ..) => viewer.pause.status().to_uppercase(),
        (false, Link::Lost, _) => "HUB LOST, TRYING AGAIN".to_owned(),
        (false, _, true) if viewer.side.is_none() => "following".to_owned(),
        _ => match &viewer.side {
            Some(side) => format!("row {}", side.cursor + 1),
            None => format!("row {}", viewer.cursor + usize::from(viewer.rows.shown() > 0)),
        },
    };
    buffer.set_stringn(area.x, area.y, format!(" {}  {counts}", viewer.origin), usize::from(area.width), theme.bar());
    let width = state.chars().count() as u16 + 2;
    let alarm = viewer.pause.is_on() || viewer.link == Link::Lost;
    let style = if alarm { theme.alarm() } else { theme.bar() };
    let x = area.right().saturating_sub(width).max(area.x);
    buffer.set_stringn(x, area.y, format!(" {state} "), usize::from(area.right() - x), style);
}

fn side_title(side: &Side) -> String {
    let asking = if side.asking { ", asking the archive" } else { "" };
    match side.kind {
        Kind::Context => format!("around {}: {} rows, unfiltered{asking}", side.hit.time.to_acs(), side.rows.len()),
        Kind::Chain => format!("error chain {}: {} rows{asking}", printable(&side.hit.stack_id), side.rows.len()),
    }
}

/// One column on the screen.
struct Cell {
    column: Column,
    width: u16,
}

/// The columns that fit, the cursor's among them.
fn laid_out(viewer: &Viewer, rows: &[&LogRecord], width: u16) -> (Vec<Cell>, usize) {
    let shown = viewer.shown_columns();
    let needs = |column: Column| {
        let longest = rows.iter().map(|row| text(column, row).chars().count()).max().unwrap_or(0);
        let least = match column {
            Column::Time => 23,
            Column::Level => 9,
            Column::SourceObject => 22,
            other => other.title().len(),
        };
        // A sign for the order stands behind the title.
        let sorted = usize::from(viewer.rows.sort().is_some_and(|sort| sort.column == column));
        let most = if column == Column::Message { usize::MAX } else { 40 };
        longest.min(most).max(least).max(column.title().len() + sorted).min(usize::from(width)) as u16
    };
    let mut cells: Vec<Cell> = shown.iter().map(|column| Cell { column: *column, width: needs(*column) }).collect();
    let total = |cells: &[Cell]| cells.iter().map(|cell| u32::from(cell.width) + 2).sum::<u32>().saturating_sub(2);
    // The message gives way to the others, and takes what they leave.
    if let Some(message) = cells.iter().position(|cell| cell.column == Column::Message) {
        let others = total(&cells) - u32::from(cells[message].width);
        cells[message].width = u32::from(width).saturating_sub(others).max(30.min(u32::from(width))) as u16;
    }
    let mut first = 0;
    while first < viewer.column && total(&cells[first..=viewer.column.min(cells.len() - 1)]) > u32::from(width) {
        first += 1;
    }
    (cells.split_off(first), first)
}

fn text(column: Column, row: &LogRecord) -> Cow<'_, str> {
    match column {
        Column::Time => row.time.to_acs().into(),
        Column::SourceObject => printable(source_of(row)),
        Column::Message => {
            let message = printable(&row.message);
            if row.data.is_empty() {
                return message;
            }
            let data: Vec<String> = row.data.iter().map(|datum| format!("{}={}", datum.name, datum.value)).collect();
            format!("{message} {}", printable(&data.join(" "))).into()
        }
        other => match other.value(row) {
            Cow::Borrowed(value) => printable(value),
            Cow::Owned(value) => printable(&value).into_owned().into(),
        },
    }
}

fn table(viewer: &Viewer, theme: Theme, parts: &Parts, buffer: &mut Buffer) {
    let height = usize::from(parts.table.height);
    let (rows, top, cursor, hit): (Vec<&LogRecord>, usize, usize, Option<&LogRecord>) = match &viewer.side {
        Some(side) => {
            let rows = side.rows.iter().skip(side.top).take(height).map(AsRef::as_ref).collect();
            (rows, side.top, side.cursor, Some(&side.hit))
        }
        None => {
            let places = viewer.top..viewer.rows.shown().min(viewer.top + height);
            let rows = places.filter_map(|place| viewer.rows.at(place)).map(|(_, row)| row.as_ref()).collect();
            (rows, viewer.top, viewer.cursor, None)
        }
    };
    let (cells, first) = laid_out(viewer, &rows, parts.table.width);
    heading(viewer, &cells, parts.heading, buffer);
    for (line, row) in rows.iter().enumerate() {
        let y = parts.table.y + line as u16;
        let is_cursor = top + line == cursor;
        // Around a row, what the filter hides elsewhere is there but weaker.
        let weak = hit.is_some() && !viewer.filter.shows(row);
        let mut x = parts.table.x;
        if is_cursor {
            buffer.set_style(Rect { y, height: 1, ..parts.table }, theme.cursor());
        }
        for (place, cell) in cells.iter().enumerate() {
            if x >= parts.table.right() {
                break;
            }
            let width = cell.width.min(parts.table.right() - x);
            let mut style = match cell.column {
                Column::Level => theme.level(row.level),
                Column::Time => theme.dim(),
                _ => Style::new(),
            };
            if is_cursor {
                style = style.add_modifier(Modifier::REVERSED);
                if first + place == viewer.column {
                    style = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
                }
            } else if weak {
                style = theme.dim();
            }
            write_cell(viewer, theme, &text(cell.column, row), Rect { x, y, width, height: 1 }, style, buffer);
            x += cell.width + 2;
        }
    }
}

/// Writes a text into its cell, matches of the search marked; what does not fit ends with a sign.
fn write_cell(viewer: &Viewer, theme: Theme, text: &str, cell: Rect, style: Style, buffer: &mut Buffer) {
    let (mut x, mut at) = (cell.x, 0);
    let mut put = |part: &str, style: Style, x: &mut u16| {
        if *x < cell.right() {
            (*x, _) = buffer.set_stringn(*x, cell.y, part, usize::from(cell.right() - *x), style);
        }
    };
    if let Some(pattern) = viewer.search.as_ref().filter(|_| viewer.side.is_none()) {
        for (from, to) in pattern.matches(text) {
            put(&text[at..from], style, &mut x);
            put(&text[from..to], theme.found(), &mut x);
            at = to;
        }
    }
    put(&text[at..], style, &mut x);
    // Wider than characters can only be: then the sign stands one cell early, which is better than a cut nobody sees.
    if text.chars().count() > usize::from(cell.width) && cell.width > 0 {
        buffer.set_stringn(cell.right() - 1, cell.y, "…", 1, style);
    }
}

fn heading(viewer: &Viewer, cells: &[Cell], area: Rect, buffer: &mut Buffer) {
    let mut x = area.x;
    let columns = viewer.shown_columns();
    for cell in cells {
        if x >= area.right() {
            break;
        }
        let sign = match viewer.rows.sort() {
            Some(sort) if sort.column == cell.column && viewer.side.is_none() => {
                if sort.descending {
                    "↓"
                } else {
                    "↑"
                }
            }
            _ => "",
        };
        let mut style = Style::new().add_modifier(Modifier::BOLD);
        if columns.get(viewer.column) == Some(&cell.column) {
            style = style.add_modifier(Modifier::UNDERLINED);
        }
        let width = cell.width.min(area.right() - x);
        buffer.set_stringn(x, area.y, format!("{}{sign}", cell.column.title()), usize::from(width), style);
        x += cell.width + 2;
    }
}

fn filter_line(viewer: &Viewer, area: Rect, buffer: &mut Buffer) {
    let filter = viewer.filter.text();
    let search = viewer.search.as_ref().map_or_else(String::new, |pattern| format!("  search {pattern}"));
    let filter = if filter.is_empty() { "everything".to_owned() } else { printable(&filter).into_owned() };
    let line = format!(" showing {filter}{}", printable(&search));
    buffer.set_stringn(area.x, area.y, line, usize::from(area.width), Style::new().add_modifier(Modifier::DIM));
}

/// The last line: what is typed, or said, or which keys there are. Returns where the cursor of a typed line is.
fn bottom(viewer: &Viewer, theme: Theme, area: Rect, buffer: &mut Buffer) -> Option<(u16, u16)> {
    let width = usize::from(area.width);
    if let Some(prompt) = &viewer.prompt {
        let saying = if viewer.message.is_empty() { prompt.hints() } else { viewer.message.clone() };
        let before = format!(" {}: ", prompt.purpose.label());
        let line = format!("{before}{}", visible_tail(prompt, width.saturating_sub(before.chars().count() + 2)));
        let (end, _) = buffer.set_stringn(area.x, area.y, &line, width, Style::new());
        let left = area.right().saturating_sub(end + 2);
        buffer.set_stringn(end + 2, area.y, saying, usize::from(left), theme.dim());
        let typed = prompt.text[prompt.at..].chars().count() as u16;
        return Some((end.saturating_sub(typed).min(area.right() - 1), area.y));
    }
    if !viewer.message.is_empty() {
        let style = Style::new().add_modifier(Modifier::BOLD);
        buffer.set_stringn(area.x, area.y, format!(" {}", printable(&viewer.message)), width, style);
        return None;
    }
    let keys = " ? help  space pause  / search  n next  f only this  x without this  Enter details  c context  q quit";
    buffer.set_stringn(area.x, area.y, keys, width, theme.dim());
    None
}

/// As much of the end of a typed line as fits.
fn visible_tail(prompt: &Prompt, width: usize) -> String {
    let skipped = prompt.text.chars().count().saturating_sub(width);
    prompt.text.chars().skip(skipped).collect()
}
