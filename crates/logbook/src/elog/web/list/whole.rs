//! A whole list at once, however long it is: sent a piece at a time while it is made, so that it begins at once and takes no memory for all.

use std::io;

use http::StatusCode;

use super::{above, cut_short, more_than_all, rows::Rows, select::Selecting};
use crate::{
    elog::web::{
        Body, BookAsk, Held, Response,
        find::Find,
        layout::Page,
        paging::{Listing, MAX_ALL},
        response,
    },
    search::{Page as Found, Search, Start},
    store::Result,
};

/// Entries of the first piece, and of each of the others.
const FIRST: usize = 100;
const PIECE: usize = 500;

/// All that a search finds.
pub fn answer(ask: &BookAsk<'_>, find: Find) -> Response {
    let first = match ask.site.store.search(&Search { limit: FIRST, start: Start::First, ..find.search.clone() }, &ask.stop) {
        Ok(first) => first,
        Err(error) => return ask.failed(&error),
    };
    let (count, stopped) = (first.count, first.stopped);
    let mut rows = Rows::new(ask, &find, Selecting::of(ask));
    let listing = Listing { hits: first.hits, count, stopped, ..Listing::default() };
    let mut body = String::with_capacity(listing.hits.len() * 1024 + 8192);
    above(ask, &find, &listing, &mut body);
    rows.begin(ask, &find, &mut body);
    if let Err(error) = rows.write(ask, &find, &listing.hits, &mut body) {
        return ask.failed(&error);
    }
    let Some(next) = first.next.filter(|_| stopped.is_none()) else {
        rows.end(&mut body);
        return Page::list(ask, body).answer(StatusCode::OK);
    };
    let (mut begin, end) = Page::list(ask, String::new()).around();
    begin.push_str(&body);
    let search = Search { start: Start::After(next), count_to: 0, ..find.search.clone() };
    let rest = Rest { held: ask.held(), find, search, rows, done: listing.hits.len(), more: true, end };
    let mut answer = response(StatusCode::OK, "text/html; charset=utf-8", Vec::new());
    *answer.body_mut() = Body::Pieces(Box::new(std::iter::once(Ok(begin.into_bytes())).chain(rest)));
    answer
}

/// What comes after the first piece.
struct Rest {
    held: Held,
    find: Find,
    search: Search,
    rows: Rows,
    /// Entries that were found.
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
        let next = self.held.with(|ask| {
            let Found { hits, next, stopped, .. } = ask.site.store.search(search, &ask.stop)?;
            rows.write(ask, find, &hits, &mut out)?;
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
            crate::store::Result::Ok(next)
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
        // What fails in the middle ends the connection: a page never looks whole when it is not.
        self.more &= piece.is_ok();
        Some(piece.map(String::into_bytes).map_err(io::Error::other))
    }
}
