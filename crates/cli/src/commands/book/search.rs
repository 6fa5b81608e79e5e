//! `tampu book search`.

use std::{
    io::{self, Write},
    ops::Range,
    time::Duration,
};

use clap::Args;
use tampu_logbook::{
    book::same_name,
    search::{self, Count, Cursor, Hit, MAX_PAGE, Sort, Start, Stopped},
    store::Store,
};

use super::{Place, abandon::Abandoned, failed, minute, shown};
use crate::{
    commands::Context,
    failure::{Failure, Outcome, written},
    paint::Paint,
    time_expression::parse_duration,
};

/// Search logbooks
///
/// Words, "phrases", begin*, ~inside, /regular expressions/, attribute:value, since:, until:, last:7d, has:attachment, OR, -not and
/// ( ), in any order. Device names are found whole and by part. The newest come first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book search 'LHC:MAG-01/cur trip'\n  \
    tampu book search --book Shift 'type:=Problem -system:HLT last:7d' --json\n  tampu book search '/hlt\\d+ is/' --sort Author")]
pub struct Search {
    /// What to look for; nothing finds everything
    query: Vec<String>,
    /// In this logbook; in several, once for each
    #[arg(short, long, value_name = "NAME")]
    book: Vec<String>,
    /// Order by date, id or an attribute; a minus before it turns it round. The newest first, if nothing is said
    #[arg(long, allow_hyphen_values = true, value_name = "WHAT", default_value = "-date")]
    sort: String,
    /// How many
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=MAX_PAGE as i64))]
    limit: u16,
    /// After the last one of another page; each page tells how the next is had
    #[arg(long, value_name = "PLACE", conflicts_with = "skip")]
    after: Option<Cursor>,
    /// After this many
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// Only tell how many there are
    #[arg(long)]
    count: bool,
    /// End after this time with what was found
    #[arg(long = "time-limit", alias = "time", value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    time: Duration,
    /// One JSON object a line, an entry each
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
            time: self.time,
            ..search::Search::default()
        };
        if self.count {
            (asked.limit, asked.count_to, asked.count_looks) = (1, u64::MAX, u64::MAX);
        }
        if let Sort::Attribute(name) = &asked.sort {
            known_attribute(&*store, &asked.books, name);
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
            written(writeln!(out, "{count}"))?;
            return if exact { Ok(()) } else { Err(Failure::Failed("the time was over before all was counted".to_owned())) };
        }
        let paint = Paint::for_stdout(context.common.color);
        for hit in &page.hits {
            if self.json {
                let line = serde_json::to_string(hit).map_err(|error| Failure::failed("an entry as JSON", error))?;
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
            eprintln!("tampu: the next ones: --after {next}");
        }
        match page.stopped {
            Some(_) => Err(Failure::Failed("the time was over before the search was; --time-limit gives it more".into())),
            None => Ok(()),
        }
    }
}

/// Remarks that nothing has an attribute of this name: entries may still say it.
fn known_attribute(store: &dyn Store, books: &[String], name: &str) {
    let Ok(all) = store.books() else { return };
    let mut searched =
        all.iter().map(|info| &info.book).filter(|book| books.is_empty() || books.iter().any(|name| same_name(name, &book.name)));
    if !searched.any(|book| book.attribute(name).is_some()) {
        eprintln!(
            "tampu: no logbook that is searched has an attribute '{}'; --sort takes date, id or an attribute",
            shown(name, false)
        );
    }
}

/// Two lines an entry: where, when and its attributes; then the text around what was found.
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
