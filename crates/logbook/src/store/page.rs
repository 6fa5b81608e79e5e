//! Pages of searches: the results of all books merged, counted and rendered.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sha2::{Digest, Sha256};

use super::{
    Result, StoreError,
    book_row::{BookRow, OrderKey, book_of, row_in, when},
    index::{SearchEnd, SearchIndex},
    memory::Remembered,
    now,
    stream::{Batch, Stream, rows_between},
    tally::{CountLimits, find_and_count},
};
use crate::{
    book::{Book, EntryAttribute, same_name},
    entry::{Entry, EntryRef},
    plain,
    query::{
        Node,
        candidates::{Want, candidates},
        marks::{marks, snippet},
        parse,
    },
    search::{Count, Cursor, Hit, MAX_PAGE, MAX_PAGE_BYTES, Page, Search, Sort, Start, Stop, Stopped, cost, is_hidden},
};

/// Maximum number of entries of a page that are read together, so that a page of very long ones holds few unused ones.
const READ_TOGETHER: usize = 64;
/// Size of the first such batch; each further batch is twice as large.
const FIRST_READ_TOGETHER: usize = 8;

/// Returns a page of a search in a snapshot. While `watched` is set, a stop interrupts the index; it is clear while
/// found entries are read.
pub fn page<I: SearchIndex>(index: &I, search: &Search, stop: &Stop, watched: &AtomicBool) -> Result<Page> {
    match whole_page(index, search, stop, watched) {
        // Stopped before anything was found.
        Err(error) if index.is_interrupted(&error) => {
            Ok(Page { stopped: Some(stop.reason().map_or(Stopped::TimeLimit, Stopped::from)), ..Page::default() })
        }
        page => page,
    }
}

/// The beginning of a page of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageStart {
    /// The number of entries before the page.
    pub before: u64,
    /// The position of the last of them; `None` for the first page.
    pub after: Option<Cursor>,
}

/// Returns the beginning of the page on which an entry stands, or would stand, if each page has the number of entries
/// that the search asks for.
pub fn page_of<I: SearchIndex>(index: &I, search: &Search, at: &EntryRef, stop: &Stop) -> Result<Option<PageStart>> {
    match start_of_page(index, search, at, stop) {
        Ok(start) => Ok(start),
        Err(SearchEnd::Stopped(_)) => Ok(None),
        Err(SearchEnd::Failed(error)) if index.is_interrupted(&error) => Ok(None),
        Err(SearchEnd::Failed(error)) => Err(error),
    }
}

fn start_of_page<I: SearchIndex>(
    index: &I,
    search: &Search,
    at: &EntryRef,
    stop: &Stop,
) -> std::result::Result<Option<PageStart>, SearchEnd> {
    let (book_rows, node) = searched(index, search)?;
    // The entries before the page are those after it in the reverse order.
    let reverse = Search { descending: !search.descending, start: Start::First, ..search.clone() };
    let plan = Plan::of(index, &node)?;
    let mut streams = Vec::with_capacity(book_rows.len());
    for book_row in &book_rows {
        streams.push(plan.stream(index, book_row, &node, &reverse, stop)?);
    }
    let Some(own) = streams.iter().find(|stream| same_name(&stream.book_row.book.name, &at.book)) else { return Ok(None) };
    let Some(place) = own.place(at.id)? else { return Ok(None) };
    let mut count = 0;
    for stream in &streams {
        count += stream.count_after(&from_there(&place, stream.book_row, reverse.descending))?;
    }
    let on_page = count % search.limit.clamp(1, MAX_PAGE) as u64;
    let before = count - on_page;
    if before == 0 {
        return Ok(Some(PageStart { before, after: None }));
    }
    let most = on_page as usize + 1;
    let (mut places, stopped) = find(&streams, &reverse, Some(&place), most)?;
    places.truncate(most);
    Ok(match places.pop() {
        Some(last) if stopped.is_none() && places.len() + 1 == most => {
            Some(PageStart { before, after: Some(Cursor { of: digest(search), key: last.key, row: last.row }) })
        }
        _ => None,
    })
}

/// Returns the books of a search, and its query.
fn searched<I: SearchIndex>(index: &I, search: &Search) -> Result<(Vec<Arc<BookRow>>, Node)> {
    let mut book_rows: Vec<Arc<BookRow>> = if search.books.is_empty() {
        index.book_rows()?.into_iter().map(Arc::new).collect()
    } else {
        search.books.iter().map(|name| index.book_row(name)).collect::<Result<Vec<_>>>()?
    };
    // A book that is named twice is searched once.
    let mut seen = HashSet::new();
    book_rows.retain(|book_row| seen.insert(book_row.num));
    let mut names: Vec<String> = Vec::new();
    for Book { name, attributes, .. } in book_rows.iter().map(|book_row| &book_row.book) {
        for attribute in attributes.iter().filter(|attribute| !is_hidden(search.shown_in(name), &attribute.name)) {
            if !names.contains(&attribute.name) {
                names.push(attribute.name.clone());
            }
        }
    }
    if let Sort::Attribute(name) = &search.sort
        && !names.iter().any(|known| same_name(known, name))
    {
        return Err(StoreError::NoOrder { name: name.clone(), keys: names });
    }
    let node = parse(&search.query, &names, now())?;
    // This order has the first entries of threads alone.
    let node = if search.sort == Sort::Thread { node.without_replies() } else { node };
    Ok((book_rows, node))
}

fn whole_page<I: SearchIndex>(index: &I, search: &Search, stop: &Stop, watched: &AtomicBool) -> Result<Page> {
    let (book_rows, node) = searched(index, search)?;
    let of = digest(search);
    let limit = search.limit.clamp(1, MAX_PAGE);
    let (after, skip) = match &search.start {
        Start::First => (None, 0),
        Start::After(cursor) if cursor.of != of => return Err(StoreError::OtherSearch),
        Start::After(cursor) => (Some(OrderKey { key: cursor.key.clone(), row: cursor.row }), 0),
        Start::Skip(skip) => (None, usize::try_from(*skip).unwrap_or(usize::MAX)),
    };
    // One entry more than shown says whether there is a next page.
    let most = skip.saturating_add(limit).saturating_add(1);
    let memory = (!node.depends_on_time()).then(|| Keys::of(search, limit));
    let mut places = memory.as_ref().and_then(|keys| match index.remembered(&keys.page) {
        Some(Remembered::Places(places)) => Some(places),
        _ => None,
    });
    let mut count = memory.as_ref().filter(|_| search.count_to > 0).and_then(|keys| match index.remembered(&keys.count) {
        Some(Remembered::Count(count)) => Some(count),
        _ => None,
    });
    let plan = if places.is_some() && (search.count_to == 0 || count.is_some()) { None } else { Some(Plan::of(index, &node)?) };
    let mut streams = Vec::with_capacity(book_rows.len());
    for (book_row, plan) in book_rows.iter().flat_map(|book_row| plan.as_ref().map(|plan| (book_row, plan))) {
        streams.push(plan.stream(index, book_row, &node, search, stop)?);
    }
    let (mut stopped, mut counted) = (None, None);
    let places = match places.take() {
        Some(places) => places,
        None => {
            let found;
            (found, stopped) = match count_with_page(&streams, search, after.as_ref()).filter(|_| count.is_none()) {
                None => find(&streams, search, after.as_ref(), most)?,
                Some((stream, limits)) => {
                    let mut found = Vec::new();
                    match find_and_count(stream, most, limits, &mut found) {
                        Ok(both) => {
                            counted = Some(both);
                            (found, None)
                        }
                        Err(SearchEnd::Stopped(why)) => (found, Some(why)),
                        Err(SearchEnd::Failed(error)) => return Err(error),
                    }
                }
            };
            let places: Arc<[OrderKey]> = found.get(skip..).unwrap_or_default().into();
            if let Some(keys) = memory.as_ref().filter(|_| stopped.is_none()) {
                index.remember(keys.page.clone(), Remembered::Places(places.clone()));
            }
            places
        }
    };
    // The entries found are read to the end even after the time limit: they are few.
    watched.store(false, Ordering::Relaxed);
    let (hits, last) = shown(index, &book_rows, (&node, search), &places, limit)?;
    watched.store(true, Ordering::Relaxed);
    // The place after a stopped search is unknown.
    let last = last.filter(|_| stopped.is_none());
    let next = last.map(|last| Cursor { of, key: last.key.clone(), row: last.row });
    let mut page = Page { hits, count: None, next, stopped };
    if search.count_to > 0 && page.stopped.is_none() {
        if count.is_none() {
            let (made, end) = counted.map_or_else(|| count_all(&streams, search), Ok)?;
            if let Some(keys) = memory.filter(|_| end.is_none()) {
                index.remember(keys.count, Remembered::Count(made));
            }
            (count, page.stopped) = (Some(made), end);
        }
        page.count = count;
    }
    Ok(page)
}

/// Returns the stream whose page and count are found together, and the limits of that count. `None` if the two look at
/// different entries, or if the count does not look at any.
fn count_with_page<'a, 'b, I: SearchIndex>(
    streams: &'a [Stream<'b, I>],
    search: &Search,
    after: Option<&OrderKey>,
) -> Option<(&'a Stream<'b, I>, CountLimits)> {
    let [stream] = streams else { return None };
    let is_order_of_count = search.sort == Sort::Date && search.descending && after.is_none();
    if !I::COUNTS_WITH_PAGE || !is_order_of_count || search.count_to == 0 || counts_all(stream, search.count_to) {
        return None;
    }
    let looks = if stream.open.is_empty() { u64::MAX } else { search.count_looks };
    Some((stream, CountLimits { most: search.count_to, looks }))
}

/// Returns true if the count of a search needs no step over its entries.
fn counts_all<I: SearchIndex>(stream: &Stream<'_, I>, most: u64) -> bool {
    let narrow = stream.node.dates() != Node::All.dates();
    *stream.want == Want::All && stream.open.is_empty() && (!narrow || most >= COUNTED_AT_ONCE)
}

/// The keys under which a search is remembered.
struct Keys {
    page: String,
    count: String,
}

impl Keys {
    fn of(search: &Search, limit: usize) -> Keys {
        let Search { books, query, sort, descending, start, count_to, count_looks, shown, .. } = search;
        // The order of threads leaves replies out.
        let entries = format!("{books:?} {query:?} {shown:?} {}", *sort == Sort::Thread);
        Keys {
            page: format!("page {sort:?} {descending} {start:?} {limit} {entries}"),
            count: format!("count {count_to} {count_looks} {entries}"),
        }
    }
}

/// The questions to an index for a query.
struct Plan<'a> {
    want: Want,
    /// The want without its negations, because the index has the words of hidden attributes.
    wide: Want,
    /// The parts of the query that the index does not answer; all of them; those with the dates.
    open: Vec<&'a Node>,
    whole: Vec<&'a Node>,
    dated: Vec<&'a Node>,
}

impl<'a> Plan<'a> {
    fn of<I: SearchIndex>(index: &I, node: &'a Node) -> Result<Plan<'a>> {
        let (want, open) = candidates(node, &index.vocabulary())?;
        // The index has the words of hidden attributes. So it only finds candidates where some are hidden.
        let (wide, whole) = (want.without_nots(), if matches!(node, Node::All) { vec![] } else { vec![node] });
        let dates = node.conjuncts().iter().filter(|node| matches!(node, Node::Date { .. }));
        let dated = open.iter().copied().chain(dates).collect();
        Ok(Plan { want, wide, open, whole, dated })
    }

    /// Makes the search in one book.
    fn stream<'b, I: SearchIndex>(
        &'b self,
        index: &'b I,
        book_row: &'b BookRow,
        node: &'b Node,
        search: &'b Search,
        stop: &'b Stop,
    ) -> Result<Stream<'b, I>> {
        let (first, last, by_row) = rows_between(index, book_row, node.dates())?;
        let shown = search.shown_in(&book_row.book.name);
        let (want, open) = match (shown.is_none(), by_row) {
            (false, _) => (&self.wide, &self.whole),
            (true, true) => (&self.want, &self.open),
            (true, false) => (&self.want, &self.dated),
        };
        let Search { sort, descending, .. } = search;
        let seen = if open.is_empty() { Arc::default() } else { index.verdicts(book_row, &format!("{shown:?} {open:?}")) };
        let (rows, descending) = ((first, last), *descending);
        Ok(Stream { index, book_row, node, want, open, rows, sort, descending, stop, shown, seen })
    }
}

/// Returns the positions of at most `most` entries of each book in the order of the search, and the reason for an early
/// end.
fn find<I: SearchIndex>(
    streams: &[Stream<'_, I>],
    search: &Search,
    after: Option<&OrderKey>,
    most: usize,
) -> Result<(Vec<OrderKey>, Option<Stopped>)> {
    let (mut places, mut stopped) = (Vec::new(), None);
    for stream in streams {
        let after = after.map(|after| from_there(after, stream.book_row, search.descending));
        match stream.find(after.as_ref(), most, &mut places) {
            Ok(()) => {}
            Err(SearchEnd::Failed(error)) => return Err(error),
            Err(SearchEnd::Stopped(why)) => {
                stopped = Some(why);
                break;
            }
        }
    }
    if streams.len() > 1 {
        places.sort_by(|a, b| a.order().cmp(&b.order()));
        if search.descending {
            places.reverse();
        }
    }
    Ok((places, stopped))
}

/// Returns the number of entries that a search finds in all books, and the reason for an early end.
fn count_all<I: SearchIndex>(streams: &[Stream<'_, I>], search: &Search) -> Result<(Count, Option<Stopped>)> {
    let (mut looks, mut count, mut stopped) = (search.count_looks, Count::Exactly(0), None);
    for stream in streams {
        let (one, end) = count_one(stream, search.count_to, &mut looks, count)?;
        count = one;
        stopped = stopped.or(end);
        if matches!(count, Count::AtLeast(_)) {
            break;
        }
    }
    Ok((count, stopped))
}

/// Returns the entries of a page, and the position of the last one if there are more. A page ends at its number of
/// entries, or at its bytes.
fn shown<'a, I: SearchIndex>(
    index: &I,
    book_rows: &[Arc<BookRow>],
    query: (&Node, &Search),
    places: &'a [OrderKey],
    limit: usize,
) -> Result<(Vec<Hit>, Option<&'a OrderKey>)> {
    let (mut shown, mut bytes, mut at) = (Vec::new(), 0, 0);
    let mut together = I::TOGETHER.clamp(1, FIRST_READ_TOGETHER);
    while at < places.len() {
        if at >= limit {
            return Ok((shown, at.checked_sub(1).and_then(|last| places.get(last))));
        }
        let end = (at + together).min(limit).min(places.len());
        for (nth, hit) in hits(index, book_rows, query, &places[at..end])?.into_iter().enumerate() {
            if bytes >= MAX_PAGE_BYTES {
                return Ok((shown, (at + nth).checked_sub(1).and_then(|last| places.get(last))));
            }
            bytes += hit.as_ref().map_or(0, |hit| hit.entry.content.text.len());
            shown.extend(hit);
        }
        together = (together * 2).min(I::TOGETHER.clamp(1, READ_TOGETHER));
        at = end;
    }
    Ok((shown, None))
}

/// Returns the position in another book after which its entries follow this one.
fn from_there(after: &OrderKey, book_row: &BookRow, descending: bool) -> OrderKey {
    let own = book_of(after.row);
    let at = row_in(book_row.num, when(after.row));
    // For equal dates, the order of the books decides; a page skips rows that do not come after this one.
    let row = match (own.cmp(&book_row.num), descending) {
        (std::cmp::Ordering::Less, false) => at - 1,
        (std::cmp::Ordering::Greater, true) => at + 1,
        _ => at,
    };
    OrderKey { key: after.key.clone(), row }
}

/// Returns a digest of a search's books, query and order, so that a cursor cannot be used with another search.
fn digest(search: &Search) -> u32 {
    let mut hash = Sha256::new();
    for part in search.books.iter().map(String::as_str).chain([search.query.as_str()]) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(match &search.sort {
        Sort::Date => "d",
        Sort::Id => "i",
        Sort::Thread => "t",
        Sort::Attribute(name) => name,
    });
    hash.update([u8::from(search.descending)]);
    let digest = hash.finalize();
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// Returns the entries at these places as hits; entries that were deleted meanwhile are left out.
fn hits<I: SearchIndex>(
    index: &I,
    book_rows: &[Arc<BookRow>],
    (node, search): (&Node, &Search),
    places: &[OrderKey],
) -> Result<Vec<Option<Hit>>> {
    let mut hits: Vec<Option<Hit>> = places.iter().map(|_| None).collect();
    for book_row in book_rows {
        let own = places.iter().enumerate().filter(|(_, place)| book_of(place.row) == book_row.num);
        let (at, rows): (Vec<usize>, Vec<i64>) = own.map(|(at, place)| (at, place.row)).unzip();
        if rows.is_empty() {
            continue;
        }
        cost::look_at(rows.len() as u64);
        for (row, mut entry) in index.load(book_row, &rows, true)? {
            entry.keep_shown(search.shown_in(&book_row.book.name));
            if let Some(nth) = rows.iter().position(|known| *known == row) {
                hits[at[nth]] = Some(hit(node, entry));
            }
        }
    }
    Ok(hits)
}

fn hit(node: &Node, entry: Entry) -> Hit {
    let snippet = snippet(node, &plain::read(entry.content.encoding, &entry.content.text));
    let marked = |attribute: &EntryAttribute| {
        let found = marks(node, &attribute.joined(), Some(&attribute.name));
        (!found.is_empty()).then(|| (attribute.name.clone(), found))
    };
    let attributes = entry.content.attributes.iter().filter_map(marked).collect();
    Hit { entry, snippet, attributes }
}

/// The count from which all entries are counted: a database counts rows faster than it returns them.
const COUNTED_AT_ONCE: u64 = 100_000;

/// Adds the count of one more book.
fn count_one<I: SearchIndex>(
    stream: &Stream<'_, I>,
    most: u64,
    looks: &mut u64,
    so_far: Count,
) -> Result<(Count, Option<Stopped>)> {
    let Count::Exactly(mut count) = so_far else { return Ok((so_far, None)) };
    let narrow = stream.node.dates() != Node::All.dates();
    if *stream.want == Want::All && stream.open.is_empty() && !narrow {
        return Ok((Count::Exactly(count + stream.book_row.entries), None));
    }
    if *stream.want == Want::All && stream.open.is_empty() && most >= COUNTED_AT_ONCE {
        let counted = stream.index.count_rows(stream.rows).map_err(|error| stream.stopped(error.into()));
        return match counted {
            Ok(more) => Ok((Count::Exactly(count + more), None)),
            Err(SearchEnd::Stopped(why)) => Ok((Count::AtLeast(count), Some(why))),
            Err(SearchEnd::Failed(error)) => Err(error),
        };
    }
    let (first, last) = stream.rows;
    let (mut cut, mut full) = (false, false);
    let mut batch = Batch::new(I::TOGETHER);
    let mut one = |_| {
        full = count >= most;
        count += u64::from(!full);
        Ok(!full)
    };
    let done = stream.each_row(first, last, true, |row| {
        if stream.open.is_empty() {
            return one(row);
        }
        cut = *looks == 0;
        *looks = looks.saturating_sub(1);
        Ok(!cut && (!batch.add(row) || stream.look(&mut batch, stream.open, &mut one)?))
    });
    let done = done.and_then(|()| stream.look(&mut batch, stream.open, &mut one).map(|_| ()));
    match done.map_err(|end| stream.stopped(end)) {
        Ok(()) if cut || full => Ok((Count::AtLeast(count), None)),
        Ok(()) => Ok((Count::Exactly(count), None)),
        Err(SearchEnd::Stopped(why)) => Ok((Count::AtLeast(count), Some(why))),
        Err(SearchEnd::Failed(error)) => Err(error),
    }
}
