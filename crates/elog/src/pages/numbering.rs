//! Numbers that a configuration gives to entries: `N-###`, in `Subst` and `Preset`.

use tampu_logbook::{book::EntryAttribute, search::Search, store::StoreError};

use crate::pages::form::source::FormSource;

/// Expands `XYZ-###` to the number after that of the newest entry, with as many digits. If that entry has another
/// pattern, the number is 1.
pub fn numbered(source: &FormSource<'_>, name: &str, pattern: &str) -> Result<String, StoreError> {
    let begin = pattern.find('#').unwrap_or(pattern.len());
    let digits = pattern[begin..].bytes().take_while(|byte| *byte == b'#').count();
    let (before, after) = (&pattern[..begin], &pattern[begin + digits..]);
    let newest = Search { books: vec![source.book.name.clone()], limit: 1, count_to: 0, ..Search::default() };
    let page = source.store.search(&newest, source.stop)?;
    let last = page.hits.first().and_then(|hit| hit.entry.content.attribute(name)).map(EntryAttribute::joined);
    let number = last.as_deref().and_then(|last| last.strip_prefix(before)).map(|rest| {
        let end = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..end].parse::<u64>().unwrap_or(0)
    });
    Ok(format!("{before}{:0digits$}{after}", number.unwrap_or(0).saturating_add(1)))
}
