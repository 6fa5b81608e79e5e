//! `tampu book search`.

use std::{
    io::{self, Write},
    ops::Range,
    time::Duration,
};

use clap::Args;
use serde_json::json;
use tampu_logbook::{
    book::{self, Book, same_name},
    search::{self, Count, Cursor, Hit, MAX_PAGE, Sort, Start, Stopped},
    store::Entries,
};
use tampu_types::units::parse_duration;

use super::{
    abandon::Abandoned,
    place::{Place, failed},
    text::{minute, shown},
};
use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    paint::Paint,
    time_text,
};

/// Search logbooks
///
/// Words, "phrases", begin*, ~inside, /regular expressions/, attribute:value, since:, until:, last:7d, has:attachment, OR, -not and
/// ( ), in any order. Device names are found whole and by part. The newest come first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book search 'LHC:MAG-01/cur trip'\n  \
    tampu book search --book Shift 'type:=Problem -system:HLT last:7d' --json\n  tampu book search '/hlt\\d+ is/' --sort Author")]
pub struct Search {
    /// The query; without one, all entries
    query: Vec<String>,
    /// In this logbook only; repeatable
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// Sort by date, id or an attribute; a minus before it reverses the order
    #[arg(long, allow_hyphen_values = true, value_name = "COLUMN", default_value = "-date")]
    sort: String,
    /// Return at most N entries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=MAX_PAGE as i64))]
    limit: u16,
    /// Continue after this place; each page of results ends with the place of the next
    #[arg(long, value_name = "PLACE", conflicts_with = "skip")]
    after: Option<Cursor>,
    /// Skip this many entries
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// Print only the number of results, without regard to --limit
    #[arg(long)]
    count: bool,
    /// End the search after this time, with the entries found so far
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    timeout: Duration,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Search {
    pub fn run(self, place: &Place, context: &Context) -> Outcome {
        let store = place.store("")?;
        let (by, descending) = self.sort.strip_prefix('-').map_or((self.sort.as_str(), false), |by| (by, true));
        let sort = match by.to_ascii_lowercase().as_str() {
            "date" => Sort::Date,
            "id" => Sort::Id,
            "thread" => Sort::Thread,
            _ => Sort::Attribute(by.to_owned()),
        };
        let start = self.after.map_or(if self.skip > 0 { Start::Skip(self.skip) } else { Start::First }, Start::After);
        let mut asked = search::Search {
            books: self.book,
            query: self.query.join(" "),
            sort,
            descending,
            start,
            limit: self.limit.into(),
            time: self.timeout,
            ..search::Search::default()
        };
        if self.count {
            (asked.limit, asked.count_to, asked.count_looks) = (1, u64::MAX, u64::MAX);
        }
        if let Sort::Attribute(name) = &asked.sort {
            check_sort(&*store, &asked.books, name)?;
        }
        let abandoned = Abandoned::watch(&context.interrupt);
        let page = store.search(&asked, &abandoned.stop).map_err(failed)?;
        if page.stopped == Some(Stopped::Abandoned) {
            return Err(abandoned.failure());
        }
        drop(abandoned);
        let mut out = io::stdout().lock();
        if self.count {
            let (count, exact) = match page.count {
                Some(Count::Exactly(count)) => (count, true),
                Some(Count::AtLeast(count)) => (count, false),
                None => (0, false),
            };
            let line = if self.json { json!({ "count": count, "complete": exact }).to_string() } else { count.to_string() };
            written(writeln!(out, "{line}"))?;
            return if exact {
                Ok(())
            } else {
                Err(Failure::Failed("the time limit was reached before all was counted; --timeout gives more".to_owned()))
            };
        }
        let paint = Paint::for_stdout(context.common.color);
        for hit in &page.hits {
            if self.json {
                let line = time_text::json_line(hit, "an entry")?;
                written(writeln!(out, "{line}"))?;
            } else {
                written(out.write_all(row(hit, paint).as_bytes()))?;
            }
        }
        match page.count {
            Some(Count::Exactly(count)) => eprintln!("tampu: {count} found"),
            Some(Count::AtLeast(count)) => eprintln!("tampu: {count} found, and perhaps more"),
            None => {}
        }
        if let Some(next) = &page.next {
            eprintln!("tampu: next page: --after {next}");
        }
        match page.stopped {
            Some(_) => {
                Err(Failure::Failed("the time limit was reached before the end of the search; --timeout gives more".into()))
            }
            None => Ok(()),
        }
    }
}

/// Rejects an order by an attribute that no searched logbook has.
fn check_sort(store: &dyn Entries, books: &[String], name: &str) -> Outcome {
    let all = store.books().map_err(failed)?;
    let searched: Vec<&Book> = all
        .iter()
        .map(|info| &info.book)
        .filter(|book| books.is_empty() || books.iter().any(|name| same_name(name, &book.name)))
        .collect();
    // The search itself reports a missing logbook.
    if searched.is_empty() {
        return Ok(());
    }
    book::check_sort(name, searched)
        .map_err(|error| Failure::Usage(format!("--sort takes date, id or an attribute: {}", shown(&error.to_string(), false))))
}

/// Returns two lines an entry: its reference, its time and its attributes; then the text around the match.
fn row(hit: &Hit, paint: Paint) -> String {
    let entry = &hit.entry;
    let mut out = format!("{}{}{}  {}", paint.bold(), shown(&entry.at.to_string(), false), paint.end(), minute(entry.date));
    for attribute in entry.content.attributes.iter().filter(|attribute| !attribute.values.is_empty()) {
        let marks = hit.attributes.iter().find(|(name, _)| *name == attribute.name).map_or(&[][..], |(_, marks)| marks);
        out.push_str("  ");
        out.push_str(&marked(&attribute.joined(), marks, paint));
    }
    format!("{out}\n    {}\n", marked(&hit.snippet.text, &hit.snippet.marks, paint).trim())
}

fn marked(text: &str, marks: &[Range<usize>], paint: Paint) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for mark in marks {
        out.push_str(&shown(&text[at..mark.start], false));
        out.push_str(paint.bold());
        out.push_str(&shown(&text[mark.clone()], false));
        out.push_str(paint.end());
        at = mark.end;
    }
    out.push_str(&shown(&text[at..], false));
    out
}
