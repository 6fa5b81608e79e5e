//! Searches over the API.

use super::{Client, ClientError, Result, address::encoded};
use crate::search::{BadCursor, Count, Hit, Page, Search, Sort, Start, Stop, Stopped};

/// A page in the JSON of the API.
#[derive(serde::Deserialize)]
struct PageBody {
    hits: Vec<Hit>,
    count: Option<Count>,
    next: Option<String>,
    stopped: Option<Stopped>,
}

/// Query, order and books of a search as parameters of the API.
pub(super) fn parameters(search: &Search) -> String {
    let sort = match &search.sort {
        Sort::Date => "date",
        Sort::Id => "id",
        Sort::Thread => "thread",
        Sort::Attribute(name) => name,
    };
    let sort = format!("{}{sort}", if search.descending { "-" } else { "" });
    let mut parameters = format!("q={}&sort={}", encoded(&search.query), encoded(&sort));
    search.books.iter().for_each(|book| parameters.push_str(&format!("&book={}", encoded(book))));
    parameters
}

impl Client {
    /// Finds one page of a search.
    pub(super) fn find_page(&self, search: &Search, stop: &Stop) -> Result<Page> {
        let mut path = format!(
            "/search?{}&limit={}&count={}&time_ms={}&text=true",
            parameters(search),
            search.limit,
            search.count_to,
            search.time.as_millis()
        );
        match &search.start {
            Start::First => {}
            Start::After(cursor) => path.push_str(&format!("&after={cursor}")),
            Start::Skip(skip) => path.push_str(&format!("&skip={skip}")),
        }
        let Some(body) = self.run_until(stop, move |client| client.get::<PageBody>(&path)) else {
            return Ok(Page { stopped: stop.reason().map(Stopped::from), ..Page::default() });
        };
        let PageBody { hits, count, next, stopped } = body?;
        let next = next.map(|next| next.parse()).transpose();
        let next =
            next.map_err(|error: BadCursor| ClientError::OtherRelease { url: self.url.clone(), why: error.to_string() })?;
        self.remember_attachments(hits.iter().map(|hit| &hit.entry));
        Ok(Page { hits, count, next, stopped })
    }
}
