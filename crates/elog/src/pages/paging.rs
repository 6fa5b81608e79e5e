//! ELOG's numbered pages over a store that has positions.
//!
//! For a page number such as `page7`, a store steps over all entries before the page. A position costs the same
//! everywhere. So the end of each page is cached, and the next page, the most frequent request, begins there. A page in
//! the second half is counted from the end. If the number of entries is not known, pages are counted from the end:
//! `page-1`.

use tampu_logbook::{
    entry::EntryRef,
    search::{Count, Hit, MAX_PAGE, Page, Search, Sort, Start, Stopped},
    store::Result,
};

use crate::pages::{
    address::ListPart,
    find::ListSearch,
    page_cursors::{BooksVersion, CursorKey},
    request::BookRequest,
};

/// Number of entries that are skipped without checking whether the other end is nearer.
const FAR: u64 = 2000;
/// Maximum number of entries in a response with all entries.
pub const MAX_ALL: usize = 100_000;

/// The last possible page: an entry's number has 32 bits.
const LAST_PAGE: u64 = 1 << 32;

/// A page of a list.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Its entries, in the order they are shown.
    pub hits: Vec<Hit>,
    /// The number of entries in all pages.
    pub count: Option<Count>,
    /// Its number, negative from the end; 0 for a list without pages.
    pub page: i64,
    /// The number of pages, if it is known.
    pub pages: Option<u64>,
    /// True if there are entries before it.
    pub before: bool,
    /// True if there are entries after it.
    pub after: bool,
    /// The reason for an incomplete page.
    pub stopped: Option<Stopped>,
}

/// Finds the entries of a page.
pub fn page(request: &BookRequest<'_>, find: &ListSearch, part: ListPart) -> Result<Listing> {
    let pager = Pager { request, find, per: find.per_page as u64, version: version(request, find)? };
    match part {
        ListPart::Page(number) if number > 0 => pager.numbered((number as u64).min(LAST_PAGE)),
        ListPart::Page(number) => pager.counted_back(number.unsigned_abs().min(LAST_PAGE)),
        ListPart::Last(count) => pager.last(count),
        // These have no pages; see [`super::list`].
        ListPart::All | ListPart::Past(_) => pager.all(),
        ListPart::Default => match request.query.number::<u32>("id") {
            Some(id) => pager.holding(id),
            None => pager.first(),
        },
    }
}

fn version(request: &BookRequest<'_>, find: &ListSearch) -> Result<BooksVersion> {
    let books = request.site.books()?;
    let searched = books.iter().filter(|info| find.search.books.contains(&info.book.name));
    Ok(searched.fold((0, None), |(count, newest), info| (count + info.entries, newest.max(info.newest))))
}

struct Pager<'a> {
    request: &'a BookRequest<'a>,
    find: &'a ListSearch,
    per: u64,
    version: BooksVersion,
}

impl Pager<'_> {
    /// Returns the page that a list begins with. As in elogd, a list in ascending order begins with its last page.
    fn first(&self) -> Result<Listing> {
        if self.find.search.descending { self.numbered(1) } else { self.counted_back(1) }
    }

    /// Returns the page of an entry, or of its thread. The page begins at a position, so no entry before it is stepped
    /// over. In another order than by date, an entry that the search does not find has no page; that is the first one then.
    fn holding(&self, id: u32) -> Result<Listing> {
        let store = &self.request.site.store;
        let (search, entry) = (&self.find.search, store.entry(&EntryRef::new(&self.request.book.name, id))?);
        let wanted = if search.sort == Sort::Thread { EntryRef::new(&entry.at.book, entry.thread) } else { entry.at };
        let of_pages = Search { limit: self.find.per_page, ..search.clone() };
        let Some(start) = store.page_of(&of_pages, &wanted, &self.request.stop)? else { return self.first() };
        if let Some(after) = start.after {
            self.request.site.marks.put(self.key(search.descending), self.version, start.before, after);
        }
        let listing = self.numbered(start.before / self.per + 1)?;
        let is_there = search.sort == Sort::Date || listing.hits.iter().any(|hit| hit.entry.at == wanted);
        if is_there { Ok(listing) } else { self.first() }
    }

    /// Returns the key of the positions of this search in an order.
    fn key(&self, descending: bool) -> CursorKey {
        let search = &self.find.search;
        (search.books.clone(), searched(search), self.find.sorted_by.clone(), descending)
    }

    /// Returns entries from a number on, in an order; `flipped` is the reverse of the shown one.
    fn from(&self, skip: u64, limit: u64, flipped: bool) -> Result<Page> {
        let base = &self.find.search;
        let descending = base.descending != flipped;
        let marked = if skip == 0 { None } else { self.request.site.marks.get(&self.key(descending), self.version, skip) };
        let start = match marked {
            _ if skip == 0 => Start::First,
            Some(cursor) => Start::After(cursor),
            None => Start::Skip(skip),
        };
        let limit = usize::try_from(limit).unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
        let start = match start {
            // The position before a page that was stepped over to is remembered too.
            Start::Skip(far) if far > FAR => {
                let before = Search { descending, start: Start::Skip(far - 1), limit: 1, count_to: 0, ..base.clone() };
                match self.search(&before)?.next {
                    Some(cursor) => {
                        self.request.site.marks.put(self.key(descending), self.version, far, cursor.clone());
                        Start::After(cursor)
                    }
                    None => Start::Skip(far),
                }
            }
            start => start,
        };
        let page = self.search(&Search { descending, start, limit, ..base.clone() })?;
        if let Some(next) = &page.next {
            self.request.site.marks.put(
                self.key(descending),
                self.version,
                skip.saturating_add(page.hits.len() as u64),
                next.clone(),
            );
        }
        Ok(page)
    }

    fn search(&self, search: &Search) -> Result<Page> {
        self.request.site.store.search(search, &self.request.stop)
    }

    fn numbered(&self, number: u64) -> Result<Listing> {
        let skip = (number - 1).saturating_mul(self.per);
        let known = self.request.site.marks.get(&self.key(self.find.search.descending), self.version, skip);
        if skip > FAR && known.is_none() {
            let count = self.search(&Search { limit: 1, start: Start::First, ..self.find.search.clone() })?.count;
            if let Some(Count::Exactly(total)) = count {
                if skip >= total {
                    return self.counted_back(1);
                }
                if skip > total / 2 {
                    return self.behind_middle(number, skip, total);
                }
            }
        }
        let page = self.from(skip, self.per, false)?;
        let total = exact(page.count);
        if page.hits.is_empty() && number > 1 && page.stopped.is_none() {
            // After the last page, ELOG shows the last one.
            return self.counted_back(1);
        }
        Ok(Listing {
            before: number > 1,
            after: page.next.is_some(),
            page: number as i64,
            pages: total.map(|total| self.pages(total)),
            hits: page.hits,
            count: page.count,
            stopped: page.stopped,
        })
    }

    fn pages(&self, total: u64) -> u64 {
        total.div_ceil(self.per).max(1)
    }

    fn behind_middle(&self, number: u64, skip: u64, total: u64) -> Result<Listing> {
        let end = (skip + self.per).min(total);
        let mut page = self.from(total - end, end - skip, true)?;
        page.hits.truncate((end - skip) as usize);
        page.hits.reverse();
        Ok(Listing {
            before: true,
            after: end < total,
            page: number as i64,
            pages: Some(self.pages(total)),
            hits: page.hits,
            count: page.count,
            stopped: page.stopped,
        })
    }

    /// Returns a page counted from the end. If the number of entries is known, the page has a number, and the last page
    /// holds the remaining entries.
    fn counted_back(&self, back: u64) -> Result<Listing> {
        let mut page = self.from((back - 1).saturating_mul(self.per), self.per, true)?;
        let Some(total) = exact(page.count) else {
            page.hits.reverse();
            return Ok(Listing {
                before: page.next.is_some(),
                after: back > 1,
                page: -(back as i64),
                pages: None,
                hits: page.hits,
                count: page.count,
                stopped: page.stopped,
            });
        };
        let pages = self.pages(total);
        let number = pages.saturating_sub(back - 1).max(1);
        if back > 1 {
            return self.numbered(number);
        }
        let keep = total - (pages - 1) * self.per;
        page.hits.truncate(keep as usize);
        page.hits.reverse();
        Ok(Listing {
            before: number > 1,
            after: false,
            page: number as i64,
            pages: Some(pages),
            hits: page.hits,
            count: page.count,
            stopped: page.stopped,
        })
    }

    /// Returns the newest entries, in the shown order.
    fn last(&self, count: u64) -> Result<Listing> {
        // Such a list shows no count.
        let newest = Search { sort: Sort::Date, descending: true, count_to: 0, ..self.find.search.clone() };
        let mut listing = self.gather(newest, usize::try_from(count).unwrap_or(MAX_ALL).min(MAX_ALL))?;
        if !self.find.search.descending {
            listing.hits.reverse();
        }
        Ok(Listing { after: false, count: None, ..listing })
    }

    fn all(&self) -> Result<Listing> {
        self.gather(self.find.search.clone(), MAX_ALL)
    }

    fn gather(&self, mut search: Search, most: usize) -> Result<Listing> {
        let mut listing = Listing::default();
        loop {
            search.limit = (most - listing.hits.len()).min(MAX_PAGE);
            if search.limit == 0 {
                listing.after = true;
                return Ok(listing);
            }
            let page = self.search(&search)?;
            listing.hits.extend(page.hits);
            listing.count = listing.count.or(page.count);
            // One count is enough.
            search.count_to = 0;
            listing.stopped = page.stopped;
            match page.next {
                Some(next) if page.stopped.is_none() => search.start = Start::After(next),
                _ => return Ok(listing),
            }
        }
    }
}

/// Returns the query with the attributes that the caller sees: other callers find other entries by it.
fn searched(search: &Search) -> String {
    let threads = if search.sort == Sort::Thread { "\0threads" } else { "" };
    if search.shown.is_empty() {
        format!("{}{threads}", search.query)
    } else {
        format!("{}{threads}\0{:?}", search.query, search.shown)
    }
}

fn exact(count: Option<Count>) -> Option<u64> {
    match count {
        Some(Count::Exactly(count)) => Some(count),
        _ => None,
    }
}
