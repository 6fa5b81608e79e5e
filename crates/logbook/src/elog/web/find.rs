//! From ELOG's parameters to a search: `?subtext=HV&Author=Quartz&ma=11&da=1&ya=2026`.

use super::{
    BookAsk,
    address::Part,
    clock::{Zone, days_of},
    ere,
    settings::{MAX_PER_PAGE, Mode, has},
};
use crate::{
    book::{AttributeDef, AttributeKind, same_name},
    search::{Search, Sort, Start},
    store::StoreError,
};
use tampu_types::Time;

const DAY: i64 = 86_400_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// What is looked for, and how it is to be shown.
#[derive(Debug, Clone)]
pub struct Find {
    /// The search, without the page.
    pub search: Search,
    /// What was asked for, to be told above the list: names and values.
    pub told: Vec<(String, String)>,
    /// Days to which the list goes back because nobody said more.
    pub only_last: Option<i64>,
    /// Whether it is of several books.
    pub all_books: bool,
    /// What it is sorted by, as ELOG names it; nothing for the date.
    pub sorted_by: String,
    /// How entries are shown.
    pub mode: Mode,
    /// Entries of a page.
    pub per_page: usize,
    /// The attributes of all books that are searched.
    pub attributes: Vec<AttributeDef>,
}

/// Why there is no such search.
#[derive(Debug, thiserror::Error)]
pub enum BadFind {
    /// What is no regular expression.
    #[error("Invalid regular expression \"{expression}\": {why}")]
    Expression {
        /// What stood there.
        expression: String,
        /// Why it is none.
        why: ere::BadExpression,
    },
    /// A day that is none.
    #[error("Invalid date: {0}")]
    Date(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the parameters of a request.
pub fn find(ask: &BookAsk<'_>, part: Part) -> Result<Find, BadFind> {
    let (query, settings) = (&ask.query, &ask.settings);
    let all_books =
        query.get("all").map_or(settings.search_all() == 2 && has_filters(ask), |all| all != "0") && settings.search_all() > 0;
    let books = if all_books { ask.group()? } else { vec![ask.book.name.clone()] };
    let mut attributes = ask.book.attributes.clone();
    if all_books {
        for info in ask.site.books()?.iter().filter(|info| has(&books, &info.book.name)) {
            for def in &info.book.attributes {
                if !attributes.iter().any(|known| same_name(&known.name, &def.name)) {
                    attributes.push(def.clone());
                }
            }
        }
    }
    let mut terms =
        Terms { asked: Vec::new(), told: Vec::new(), sensitive: query.is_on("casesensitive") || settings.case_sensitive() };
    terms.text(ask)?;
    terms.attributes(ask, &attributes)?;
    let mut only_last = None;
    if !terms.dates(ask, part)? {
        only_last = settings.show_last().filter(|_| part == Part::Default || matches!(part, Part::Page(_)));
        if let Some(days) = only_last {
            terms.since(Time(ask.now.0.saturating_sub(days.saturating_mul(DAY))));
        }
    }
    let (sort, sorted_by, descending) = order(ask, &attributes);
    let mode = query.get("mode").and_then(Mode::named).unwrap_or_else(|| settings.mode());
    let per_page = query.number::<usize>("npp").map_or_else(|| settings.per_page(), |npp| npp.clamp(1, MAX_PER_PAGE));
    let search = Search {
        books,
        query: terms.asked.join(" "),
        sort,
        descending,
        start: Start::First,
        limit: per_page,
        count_to: ask.site.config.count_to,
        time: ask.site.config.search_time,
        ..Search::default()
    };
    Ok(Find { search, told: terms.told, only_last, all_books, sorted_by, mode, per_page, attributes })
}

/// Whether something is looked for, rather than everything shown.
fn has_filters(ask: &BookAsk<'_>) -> bool {
    ask.query.get("subtext").is_some() || ask.book.attributes.iter().any(|def| ask.query.get(&def.name).is_some())
}

/// By what, as ELOG names it, and whether the other way round.
fn order(ask: &BookAsk<'_>, attributes: &[AttributeDef]) -> (Sort, String, bool) {
    let query = &ask.query;
    // Of this parameter alone ELOG does not mind the case.
    let reverse = query.0.iter().find(|(name, _)| name.eq_ignore_ascii_case("reverse")).map(|(_, value)| value != "0");
    let (name, descending) = match (query.get("rsort"), query.get("sort")) {
        (Some(name), _) => (name.to_owned(), true),
        (None, Some(name)) => (name.to_owned(), reverse.unwrap_or(false)),
        (None, None) => {
            let configured = ask.settings.sort_attributes().into_iter().next().unwrap_or_default();
            (configured, reverse.unwrap_or_else(|| ask.settings.reverse()))
        }
    };
    if name.eq_ignore_ascii_case("id") || name == "#" {
        return (Sort::Id, "ID".to_owned(), descending);
    }
    match attributes.iter().find(|def| same_name(&def.name, &name)) {
        Some(def) => (Sort::Attribute(def.name.clone()), def.name.clone(), descending),
        None => (Sort::Date, String::new(), descending),
    }
}

/// Parts of the query, all of which have to hold.
struct Terms {
    asked: Vec<String>,
    told: Vec<(String, String)>,
    sensitive: bool,
}

impl Terms {
    /// `/expression/`, for our query language; a text that is no more than a text is looked for as such, which the index can answer alone.
    fn matches(&self, expression: &str) -> Result<String, BadFind> {
        if !self.sensitive && ere::is_plain(expression) {
            return Ok(format!("~\"{expression}\""));
        }
        let bad = |why| BadFind::Expression { expression: expression.to_owned(), why };
        let translated = ere::translate(expression).map_err(bad)?;
        Ok(format!("/{translated}/{}", if self.sensitive { "c" } else { "" }))
    }

    fn tell(&mut self, name: &str, value: &str) {
        self.told.push((name.to_owned(), value.to_owned()));
    }

    fn text(&mut self, ask: &BookAsk<'_>) -> Result<(), BadFind> {
        if let Some(text) = ask.query.get("subtext") {
            let expression = self.matches(text)?;
            let anywhere = ask.query.is_on("sall");
            self.asked.push(if anywhere { expression } else { format!("text:{expression}") });
            self.tell(if anywhere { "Text or attributes" } else { "Text" }, text);
        }
        Ok(())
    }

    fn attributes(&mut self, ask: &BookAsk<'_>, attributes: &[AttributeDef]) -> Result<(), BadFind> {
        let query = &ask.query;
        // A name with a quotation mark cannot be written in our query language.
        for (index, def) in attributes.iter().enumerate().filter(|(_, def)| !def.name.contains('"')) {
            if matches!(def.kind, AttributeKind::Date | AttributeKind::DateTime) {
                self.between(ask, index, def)?;
            }
            let is_own = |name: &str| {
                same_name(name, &def.name)
                    || name.rsplit_once('_').is_some_and(|(name, number)| {
                        same_name(name, &def.name) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                    })
            };
            let values: Vec<&str> = query
                .0
                .iter()
                .filter(|(name, value)| !value.is_empty() && is_own(name))
                .map(|(_, value)| value.as_str())
                .collect();
            let mut either = Vec::new();
            for value in &values {
                either.push(self.attribute(def, value)?);
            }
            match either.len() {
                0 => continue,
                1 => self.asked.append(&mut either),
                _ => self.asked.push(format!("({})", either.join(" OR "))),
            }
            self.tell(&def.name, &values.join(" | "));
        }
        Ok(())
    }

    fn attribute(&self, def: &AttributeDef, value: &str) -> Result<String, BadFind> {
        if def.kind == AttributeKind::Numeric {
            let digits = value.trim_start_matches(['<', '>', '=']);
            let sign = &value[..value.len() - digits.len()];
            if matches!(sign, "<" | ">" | "<=" | ">=") && crate::book::number(digits).is_some() {
                return Ok(format!("\"{}\"{sign}{}", def.name, digits.trim()));
            }
        }
        Ok(format!("\"{}\":{}", def.name, self.matches(value)?))
    }

    /// The ranges of an attribute that is a time: its fields have its index in the book between letter and end.
    fn between(&mut self, ask: &BookAsk<'_>, index: usize, def: &AttributeDef) -> Result<(), BadFind> {
        for (end, sign, what) in [("a", ">=", "from"), ("b", "<=", "to")] {
            if let Some(at) = moment(ask, &format!("{index}{end}"), end == "b")? {
                self.asked.push(format!("\"{}\"{sign}{}", def.name, at.0.div_euclid(SECOND)));
                let shown = ask.site.config.zone.write(at, 0, ask.settings.date_format(Some(&def.name)));
                self.tell(&format!("{} {what}", def.name), &shown);
            }
        }
        Ok(())
    }

    fn since(&mut self, from: Time) {
        self.asked.push(format!("since:{}", &from.to_ns_text()[..19]));
    }

    /// Whether a range of dates was asked for.
    fn dates(&mut self, ask: &BookAsk<'_>, part: Part) -> Result<bool, BadFind> {
        let (query, zone) = (&ask.query, &ask.site.config.zone);
        let mut ranged = matches!(part, Part::Last(_) | Part::Past(_) | Part::All);
        if let Part::Past(days) = part {
            let span = if days < 0 { days.saturating_neg().saturating_mul(DAY / 24) } else { days.saturating_mul(DAY) };
            self.since(Time(ask.now.0.saturating_sub(span)));
            let told = if days < 0 { format!("last {} hours", days.unsigned_abs()) } else { format!("last {days} days") };
            self.tell("Date", &told);
        }
        if let Some(last) = query.get("last") {
            ranged = true;
            // 0 is all: how a list that goes back some days only is asked for more.
            if let Some(days) = last.parse::<i64>().ok().filter(|days| *days > 0) {
                self.since(Time(ask.now.0.saturating_sub(days.saturating_mul(DAY))));
                self.tell("Date", &format!("last {days} days"));
            }
        }
        let format = ask.settings.time_format(None);
        if let Some(from) = moment(ask, "a", false)? {
            self.since(from);
            self.tell("From", &zone.write(from, 0, format));
            ranged = true;
        }
        if let Some(to) = moment(ask, "b", true)? {
            self.asked.push(format!("until:{}", &Time(to.0.saturating_add(SECOND)).to_ns_text()[..19]));
            self.tell("To", &zone.write(to, 0, format));
            ranged = true;
        }
        Ok(ranged)
    }
}

/// The moment that fields such as `ya`, `ma`, `da`, `ha`, `na`, `ca` say; what is not said is the first, or for the end of a range the last,
/// there is. A year that is not said is this one.
fn moment(ask: &BookAsk<'_>, end: &str, is_end: bool) -> Result<Option<Time>, BadFind> {
    let query = &ask.query;
    let field = |letter: char| -> Result<Option<i64>, BadFind> {
        let Some(text) = query.get(&format!("{letter}{end}")) else { return Ok(None) };
        let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        let named = || {
            let lower = text.to_lowercase();
            months.iter().position(|month| letter == 'm' && lower.starts_with(month)).map(|at| at as i64 + 1)
        };
        let number = text.trim().parse().ok().or_else(named).ok_or_else(|| BadFind::Date(text.to_owned()))?;
        Ok(Some(number))
    };
    let (year, month, day) = (field('y')?, field('m')?, field('d')?);
    let clock = [field('h')?, field('n')?, field('c')?];
    if year.is_none() && month.is_none() && day.is_none() {
        return Ok(None);
    }
    let zone: &Zone = &ask.site.config.zone;
    let today = zone.fields(ask.now, 0);
    let year = match year {
        Some(short @ 0..=79) => 2000 + short,
        Some(short @ 80..=99) => 1900 + short,
        Some(year) => year,
        None => today[0],
    };
    // A day alone is one of this month.
    let month = month.unwrap_or(if day.is_some() && query.get(&format!("y{end}")).is_none() {
        today[1]
    } else if is_end {
        12
    } else {
        1
    });
    let day = day.unwrap_or(if is_end { days_of(year, month) } else { 1 });
    let [hour, minute, second] = clock;
    let clock =
        if is_end && clock == [None; 3] { [23, 59, 59] } else { [hour.unwrap_or(0), minute.unwrap_or(0), second.unwrap_or(0)] };
    let told = || BadFind::Date(format!("{day}.{month}.{year}"));
    zone.moment([year, month, day], clock).map(Some).ok_or_else(told)
}
