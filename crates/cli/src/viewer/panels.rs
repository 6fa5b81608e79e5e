//! Panels over or below the table: one record in full, help, the chooser of columns, the list of filters.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Clear, Paragraph, Widget, Wrap},
};
use tampu_types::LogRecord;

use crate::{
    output::{column::Column, table::printable},
    time_text,
    viewer::{keys::HELP, rules::Filter, theme::Theme},
};

/// All of a record: its text, its data a line each, then every other field it has, one behind the other.
pub fn detail(row: &LogRecord, scroll: u16, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let mut lines: Vec<Line<'_>> = row.message.lines().map(|line| Line::raw(printable(line))).collect();
    lines.extend(row.data.iter().chain(&row.attributes).map(|datum| {
        let name = Span::styled(format!("  {} = ", printable(&datum.name)), theme.dim());
        Line::from(vec![name, Span::raw(printable(&datum.value))])
    }));
    let named = fields(row)
        .into_iter()
        .flat_map(|(name, value)| [Span::styled(format!("{name} "), theme.dim()), Span::raw(value), Span::raw("   ")]);
    lines.push(Line::from(named.collect::<Vec<_>>()));
    let block = Block::bordered().title(" record ").title_bottom(" Enter closes  [ ] scroll ");
    let paragraph = Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((scroll, 0)).block(block);
    Clear.render(area, buffer);
    paragraph.render(area, buffer);
}

/// The fields of a record that are not empty, by ACS's names, without its message and data.
fn fields(row: &LogRecord) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    for column in Column::SHOWN.into_iter().filter(|column| !matches!(column, Column::Message | Column::Data)) {
        let value = column.text(row);
        if !value.is_empty() {
            fields.push((column.title(), printable(&value).into_owned()));
        }
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    fields.extend(row.received.map(|received| ("Received", time_text::with_zone(received))));
    fields.extend(row.trace_id.map(|id| ("TraceId", hex(&id))));
    fields.extend(row.span_id.map(|id| ("SpanId", hex(&id))));
    if let Some(archive) = &row.archive {
        fields.push(("Archive", format!("{} {} ({})", archive.object, archive.parameter, archive.r#type)));
    }
    fields
}

/// Draws the list of keys.
pub fn help(scroll: u16, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let lines: Vec<Line<'_>> = HELP
        .iter()
        .map(|(keys, does)| {
            Line::from(vec![Span::styled(format!(" {keys:<22}"), Style::new().add_modifier(Modifier::BOLD)), Span::raw(*does)])
        })
        .collect();
    let place = centred(area, 92, HELP.len() as u16 + 2);
    let block = Block::bordered().title(" keys ").title_bottom(" ↑ ↓ scroll, any other key closes ");
    Clear.render(place, buffer);
    Paragraph::new(lines)
        .scroll((scroll, 0))
        .block(block)
        .style(theme.dim().remove_modifier(Modifier::DIM))
        .render(place, buffer);
}

/// The chooser of columns.
pub fn columns(columns: &[(Column, bool)], at: usize, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let lines = columns.iter().map(|(column, shown)| format!(" [{}] {}", if *shown { 'x' } else { ' ' }, column.title()));
    list(" columns ", " space shows and hides, J K move, Esc closes ", lines.collect(), at, theme, area, buffer);
}

/// The list of filters.
pub fn rules(filter: &Filter, at: usize, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let mut lines: Vec<String> = filter
        .rules
        .iter()
        .map(|rule| format!(" [{}] {}", if rule.on { 'x' } else { ' ' }, printable(&rule.to_string())))
        .collect();
    if lines.is_empty() {
        lines.push(" no filters: f and x filter by a value, i and o by a text".to_owned());
    }
    list(" filters ", " space on and off, ! inverts, d deletes, Esc closes ", lines, at, theme, area, buffer);
}

fn list(title: &str, keys: &str, lines: Vec<String>, at: usize, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let place = centred(area, 62, lines.len() as u16 + 2);
    let inner = usize::from(place.height.saturating_sub(2));
    let first = (at + 1).saturating_sub(inner);
    let shown = lines.into_iter().enumerate().skip(first).take(inner).map(|(number, line)| {
        let style = if number == at { theme.cursor() } else { Style::new() };
        Line::styled(line, style)
    });
    let block = Block::bordered().title(title.to_owned()).title_bottom(keys.to_owned());
    Clear.render(place, buffer);
    Paragraph::new(shown.collect::<Vec<_>>()).block(block).render(place, buffer);
}

fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
