//! A complete list of any length. Its pieces are sent as they are made, so that the response begins at once and memory
//! never holds the whole list.

use std::io;

use http::StatusCode;
use tampu_logbook::{
    search::{Page as Found, Search, Start},
    store::Result,
};

use crate::pages::{
    find::ListSearch,
    layout::BookPage,
    list::{
        header::{above, cut_short, more_than_all},
        rows::ListRows,
        select::Selection,
    },
    paging::{Listing, MAX_ALL},
    request::{BookRequest, OwnedBookRequest},
    response::{self, Body, Response},
};

/// Entries of the first piece, and of each of the others.
const FIRST: usize = 100;
const PIECE: usize = 500;

/// Answers with all results of a search.
pub fn answer(request: &BookRequest<'_>, find: ListSearch) -> Response {
    let first =
        match request.site.store.search(&Search { limit: FIRST, start: Start::First, ..find.search.clone() }, &request.stop) {
            Ok(first) => first,
            Err(error) => return request.failed(&error),
        };
    let (count, stopped) = (first.count, first.stopped);
    let mut rows = ListRows::new(request, &find, Selection::of(request));
    let listing = Listing { hits: first.hits, count, stopped, ..Listing::default() };
    let mut body = String::with_capacity(listing.hits.len() * 1024 + 8192);
    above(request, &find, &listing, &mut body);
    rows.begin(request, &find, &mut body);
    if let Err(error) = rows.write(request, &find, &listing.hits, &mut body) {
        return request.failed(&error);
    }
    let Some(next) = first.next.filter(|_| stopped.is_none()) else {
        rows.end(&mut body);
        return BookPage::list(request, body).answer(StatusCode::OK);
    };
    let (mut begin, end) = BookPage::list(request, String::new()).around();
    begin.push_str(&body);
    let search = Search { start: Start::After(next), count_to: 0, ..find.search.clone() };
    let rest = Rest { owned: request.to_owned_request(), find, search, rows, done: listing.hits.len(), more: true, end };
    let mut answer = response::with_bytes(StatusCode::OK, "text/html; charset=utf-8", Vec::new());
    *answer.body_mut() = Body::Pieces(Box::new(std::iter::once(Ok(begin.into_bytes())).chain(rest)));
    answer
}

/// The pieces of a list after the first one.
struct Rest {
    owned: OwnedBookRequest,
    find: ListSearch,
    search: Search,
    rows: ListRows,
    /// Number of written entries.
    done: usize,
    more: bool,
    /// The end of the page.
    end: String,
}

impl Rest {
    fn piece(&mut self) -> Result<String> {
        self.search.limit = PIECE.min(MAX_ALL - self.done);
        let (search, find, rows, done, end) = (&self.search, &self.find, &mut self.rows, &mut self.done, &self.end);
        let mut out = String::with_capacity(PIECE * 1024);
        let next = self.owned.with(|request| {
            let Found { hits, next, stopped, .. } = request.site.store.search(search, &request.stop)?;
            rows.write(request, find, &hits, &mut out)?;
            *done += hits.len();
            let next = next.filter(|_| stopped.is_none() && *done < MAX_ALL);
            if next.is_none() {
                rows.end(&mut out);
                match stopped {
                    Some(why) => cut_short(why, &mut out),
                    None if *done >= MAX_ALL => more_than_all(&mut out),
                    None => {}
                }
                out.push_str(end);
            }
            tampu_logbook::store::Result::Ok(next)
        })?;
        match next {
            Some(next) => self.search.start = Start::After(next),
            None => self.more = false,
        }
        Ok(out)
    }
}

impl Iterator for Rest {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if !self.more {
            return None;
        }
        let piece = self.piece();
        // A failure in the middle cuts the connection: a page never looks complete when it is not.
        self.more &= piece.is_ok();
        Some(piece.map(String::into_bytes).map_err(io::Error::other))
    }
}
