//! Drawing of the viewer: one function from its state onto a frame.
//!
//! Drawing reads only the rows on the screen, so it costs the same for any number of kept rows. Column widths follow
//! the visible rows; the message takes the remaining width. Columns that do not fit disappear on the left as the cursor
//! moves to the right.

use std::borrow::Cow;

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
};
use tampu_types::LogRecord;

use crate::{
    output::{
        column::Column,
        table::{heading_of, printable, source_of},
    },
    time_text,
    viewer::{
        panels,
        prompt::Prompt,
        state::{Kind, Link, Panel, Side, Viewer},
        theme::Theme,
    },
};

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

/// Returns the number of rows on a screen of this size.
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
    let width = state.chars().count() as u16 + 2;
    let room = usize::from(area.width.saturating_sub(width));
    buffer.set_stringn(area.x, area.y, format!(" {}  {counts}", viewer.origin), room, theme.bar());
    let alarm = viewer.pause.is_on() || viewer.link == Link::Lost;
    let style = if alarm { theme.alarm() } else { theme.bar() };
    let x = area.right().saturating_sub(width).max(area.x);
    buffer.set_stringn(x, area.y, format!(" {state} "), usize::from(area.right() - x), style);
}

fn side_title(side: &Side) -> String {
    let asking = if side.asking { ", asking the archive" } else { "" };
    match side.kind {
        Kind::Context => format!("around {}: {} rows, unfiltered{asking}", time_text::local(side.hit.time), side.rows.len()),
        Kind::Chain => format!("error chain {}: {} rows{asking}", printable(&side.hit.stack_id), side.rows.len()),
    }
}

/// Below this width times are shown without the date, levels short, and sources from their end.
const COMPACT: u16 = 100;

/// One column on the screen.
struct Cell {
    column: Column,
    width: u16,
}

/// The columns that fit, the cursor's among them.
fn laid_out(viewer: &Viewer, rows: &[&LogRecord], width: u16) -> (Vec<Cell>, usize) {
    let shown = viewer.shown_columns();
    let compact = width < COMPACT;
    let needs = |column: Column| {
        let longest = rows.iter().map(|row| text(column, row, compact).chars().count()).max().unwrap_or(0);
        let least = match (column, compact) {
            (Column::Time, true) => 12,
            (Column::Time, false) => 23,
            (Column::Level, true) => 5,
            (Column::Level, false) => 9,
            (Column::SourceObject, true) => 10,
            (Column::SourceObject, false) => 22,
            (other, _) => other.title().len(),
        };
        // The sign of the sort order stands behind the title.
        let sorted = usize::from(viewer.rows.sort().is_some_and(|sort| sort.column == column));
        let most = match (column, compact) {
            (Column::Message, _) => usize::MAX,
            (_, true) => 16,
            (_, false) => 40,
        };
        longest.min(most).max(least).max(title_of(column, compact).chars().count() + sorted).min(usize::from(width)) as u16
    };
    let mut cells: Vec<Cell> = shown.iter().map(|column| Cell { column: *column, width: needs(*column) }).collect();
    let total = |cells: &[Cell]| cells.iter().map(|cell| u32::from(cell.width) + 2).sum::<u32>().saturating_sub(2);
    // The message column gets the width that the others leave.
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

/// Returns the title of a column; that of times names their zone.
fn title_of(column: Column, compact: bool) -> String {
    match column {
        Column::Time if compact => "TIME".to_owned(),
        other => heading_of(other),
    }
}

fn text(column: Column, row: &LogRecord, compact: bool) -> Cow<'_, str> {
    match column {
        Column::Time if compact => time_text::of_day(row.time).into(),
        Column::Level if compact => row.level.name().get(..5).unwrap_or(row.level.name()).into(),
        Column::Time => time_text::local(row.time).into(),
        Column::SourceObject => printable(source_of(row)),
        Column::Message => {
            let message = printable(&row.message);
            if row.data.is_empty() {
                return message;
            }
            let data: Vec<String> = row.data.iter().map(|datum| format!("{}={}", datum.name, datum.value)).collect();
            format!("{message} {}", printable(&data.join(" "))).into()
        }
        other => match other.text(row) {
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
        // In the context of a row, rows hidden by the filter are shown dimmed.
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
            let text = text(cell.column, row, parts.table.width < COMPACT);
            let text = if cell.column == Column::SourceObject { end_of(text, width) } else { text };
            write_cell(viewer, theme, &text, Rect { x, y, width, height: 1 }, style, buffer);
            x += cell.width + 2;
        }
    }
}

/// Returns the end of a name that is too long, because names differ there.
fn end_of(text: Cow<'_, str>, width: u16) -> Cow<'_, str> {
    let (length, width) = (text.chars().count(), usize::from(width));
    if length <= width || width == 0 {
        return text;
    }
    format!("…{}", text.chars().skip(length - width + 1).collect::<String>()).into()
}

/// Writes a text into its cell, with marked matches of the search; a text that does not fit ends with a sign.
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
    // Only wide characters come here: the sign may stand one cell early, so that every cut is visible.
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
        // The keys f and x act on this column.
        if columns.get(viewer.column) == Some(&cell.column) {
            style = style.add_modifier(Modifier::REVERSED);
        }
        let width = cell.width.min(area.right() - x);
        let title = title_of(cell.column, area.width < COMPACT);
        buffer.set_stringn(x, area.y, format!("{title}{sign}"), usize::from(width), style);
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

/// Draws the last line: the typed line, a message, or the keys. Returns the position of the cursor of a typed line.
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
    let column = viewer.shown_columns().get(viewer.column).map_or("value", |column| column.name());
    let column = if column == Column::SourceObject.name() { "source" } else { column };
    let keys = match area.width {
        0..COMPACT => format!(" ? help  space pause  / find  f x by {column}  Enter details  c context  q quit"),
        _ => format!(" ? help  space pause  / search  n next  f x by {column}  Enter details  c context  q quit"),
    };
    buffer.set_stringn(area.x, area.y, keys, width, theme.dim());
    None
}

/// Returns the part of the end of a typed line that fits.
fn visible_tail(prompt: &Prompt, width: usize) -> String {
    let skipped = prompt.text.chars().count().saturating_sub(width);
    prompt.text.chars().skip(skipped).collect()
}
