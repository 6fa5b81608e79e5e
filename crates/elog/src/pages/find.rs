//! Converts the parameters of ELOG into a search: `?subtext=HV&Author=Quartz&ma=11&da=1&ya=2026`.

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, same_name},
    search::{Search, Sort, Start},
    store::StoreError,
};
use tampu_types::Time;

use crate::{
    option_values::ALL,
    pages::{
        address::ListPart,
        clock::{Zone, days_of},
        ere,
        request::BookRequest,
        settings::{ListMode, MAX_PER_PAGE, has},
        visit,
    },
};

const DAY: i64 = 86_400_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// A search, and the way to show its result.
#[derive(Debug, Clone)]
pub struct ListSearch {
    /// The search, without the page.
    pub search: Search,
    /// The criteria to show above the list: names and values.
    pub criteria: Vec<(String, String)>,
    /// True if a threaded list shows the found entries alone, as elogd does, and not their threads.
    pub is_flat: bool,
    /// The days that the list goes back if the request names none.
    pub only_last: Option<i64>,
    /// True if it searches several books.
    pub all_books: bool,
    /// The column of the order, by ELOG's name; empty for the date.
    pub sorted_by: String,
    /// The way to show entries.
    pub mode: ListMode,
    /// Entries of a page.
    pub per_page: usize,
    /// The attributes of all books that are searched.
    pub attributes: Vec<AttributeDef>,
}

/// The reason for an invalid search.
#[derive(Debug, thiserror::Error)]
pub enum BadListSearch {
    /// An invalid regular expression.
    #[error("Invalid regular expression \"{expression}\": {why}")]
    Expression { expression: String, why: ere::BadExpression },
    /// An invalid date.
    #[error("Invalid date: {0}")]
    Date(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the parameters of a request.
pub fn find(request: &BookRequest<'_>, part: ListPart) -> Result<ListSearch, BadListSearch> {
    let (query, settings) = (&request.query, &request.settings);
    let all_books = query.get("all").map_or(settings.search_all() == 2 && has_filters(request), |all| all != "0")
        && settings.search_all() > 0;
    let books = if all_books { request.group()? } else { vec![request.book.name.clone()] };
    let mut attributes = request.book.attributes.clone();
    if all_books {
        for info in request.site.books()?.iter().filter(|info| has(&books, &info.book.name)) {
            for def in &info.book.attributes {
                if !attributes.iter().any(|known| same_name(&known.name, &def.name)) {
                    attributes.push(def.clone());
                }
            }
        }
    }
    let mut terms = SearchTerms {
        terms: Vec::new(),
        criteria: Vec::new(),
        sensitive: query.is_on("casesensitive") || settings.case_sensitive(),
    };
    terms.text(request)?;
    terms.attributes(request, &attributes)?;
    let is_ranged = terms.dates(request, part)?;
    let is_flat = !terms.terms.is_empty() || matches!(part, ListPart::Last(_));
    let mut only_last = None;
    if !is_ranged {
        only_last = settings.last().filter(|_| part == ListPart::Default || matches!(part, ListPart::Page(_)));
        if let Some(days) = only_last {
            terms.since(Time(request.now.0.saturating_sub(days.saturating_mul(DAY))));
        }
    }
    let (sort, sorted_by, descending) = order(request, &attributes);
    let mode = query.get("mode").and_then(ListMode::named).unwrap_or_else(|| settings.mode());
    let per_page = query.number::<usize>("npp").map_or_else(|| settings.per_page(), |npp| npp.clamp(1, MAX_PER_PAGE));
    let search = Search {
        books,
        query: terms.terms.join(" "),
        sort,
        descending,
        start: Start::First,
        limit: per_page,
        count_to: request.site.config.count_to,
        time: request.site.config.search_time,
        shown: request.shown_in_all()?,
        ..Search::default()
    };
    Ok(ListSearch { search, criteria: terms.criteria, is_flat, only_last, all_books, sorted_by, mode, per_page, attributes })
}

/// Returns true if the address has search criteria.
fn has_filters(request: &BookRequest<'_>) -> bool {
    let named = |def: &AttributeDef| request.query.get(&def.name).is_some_and(|value| value != ALL);
    request.query.get("subtext").is_some() || request.book.attributes.iter().any(named)
}

/// Returns the attribute that the result is sorted by, in ELOG's terms, and whether the order is reversed.
fn order(request: &BookRequest<'_>, attributes: &[AttributeDef]) -> (Sort, String, bool) {
    let query = &request.query;
    // ELOG compares only this parameter without case.
    let reverse = query.0.iter().find(|(name, _)| name.eq_ignore_ascii_case("reverse")).map(|(_, value)| value != "0");
    let (name, descending) = match (query.get("rsort"), query.get("sort")) {
        (Some(name), _) => (name.to_owned(), true),
        (None, Some(name)) => (name.to_owned(), reverse.unwrap_or(false)),
        (None, None) => {
            let configured = request.settings.sort_attributes().into_iter().next().unwrap_or_default();
            (configured, reverse.unwrap_or_else(|| request.settings.reverse()))
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

/// Parts of the query, which must all match.
struct SearchTerms {
    terms: Vec<String>,
    criteria: Vec<(String, String)>,
    sensitive: bool,
}

impl SearchTerms {
    /// Writes `/expression/` of the query language. An expression that is plain text is searched as text, with the
    /// index alone.
    fn matches(&self, expression: &str) -> Result<String, BadListSearch> {
        if !self.sensitive && ere::is_plain(expression) {
            return Ok(format!("~\"{expression}\""));
        }
        let bad = |why| BadListSearch::Expression { expression: expression.to_owned(), why };
        let translated = ere::translate(expression).map_err(bad)?;
        Ok(format!("/{translated}/{}", if self.sensitive { "c" } else { "" }))
    }

    fn add_criterion(&mut self, name: &str, value: &str) {
        self.criteria.push((name.to_owned(), value.to_owned()));
    }

    fn text(&mut self, request: &BookRequest<'_>) -> Result<(), BadListSearch> {
        if let Some(text) = request.query.get("subtext") {
            let expression = self.matches(text)?;
            let anywhere = request.query.is_on("sall");
            self.terms.push(if anywhere { expression } else { format!("text:{expression}") });
            self.add_criterion(if anywhere { "Text or attributes" } else { "Text" }, text);
        }
        Ok(())
    }

    fn attributes(&mut self, request: &BookRequest<'_>, attributes: &[AttributeDef]) -> Result<(), BadListSearch> {
        let query = &request.query;
        // A name with a quotation mark cannot be written in our query language.
        for (index, def) in attributes.iter().enumerate().filter(|(_, def)| !def.name.contains('"')) {
            if matches!(def.kind, AttributeKind::Date | AttributeKind::DateTime) {
                self.between(request, index, def)?;
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
                .filter(|(name, value)| !value.is_empty() && value != ALL && is_own(name))
                .map(|(_, value)| value.as_str())
                .collect();
            let mut either = Vec::new();
            for value in &values {
                either.push(self.attribute(def, value)?);
            }
            match either.len() {
                0 => continue,
                1 => self.terms.append(&mut either),
                _ => self.terms.push(format!("({})", either.join(" OR "))),
            }
            self.add_criterion(&def.name, &values.join(" | "));
        }
        Ok(())
    }

    fn attribute(&self, def: &AttributeDef, value: &str) -> Result<String, BadListSearch> {
        if def.kind == AttributeKind::Numeric {
            let digits = value.trim_start_matches(['<', '>', '=']);
            let sign = &value[..value.len() - digits.len()];
            if matches!(sign, "<" | ">" | "<=" | ">=") && tampu_logbook::book::number(digits).is_some() {
                return Ok(format!("\"{}\"{sign}{}", def.name, digits.trim()));
            }
        }
        if def.kind.is_multiple() && value.contains(" | ") {
            // elogd finds several values in the whole text of the attribute.
            let bare = value.trim_start_matches('^').trim_end_matches('$');
            let each = bare.split(" | ").map(|part| Ok(format!("\"{}\":{}", def.name, self.matches(part.trim())?)));
            return Ok(format!("({})", each.collect::<Result<Vec<_>, BadListSearch>>()?.join(" ")));
        }
        let found = format!("\"{}\":{}", def.name, self.matches(value)?);
        // An expression that fits nothing at all finds entries without a value, as in elogd.
        Ok(if ere::fits_nothing(value) { format!("({found} OR -has:\"{}\")", def.name) } else { found })
    }

    /// Adds the range of an attribute that is a time. The names of its fields contain its index in the book.
    fn between(&mut self, request: &BookRequest<'_>, index: usize, def: &AttributeDef) -> Result<(), BadListSearch> {
        for (end, sign, what) in [("a", ">=", "from"), ("b", "<=", "to")] {
            if let Some(at) = moment(request, &format!("{index}{end}"), end == "b")? {
                self.terms.push(format!("\"{}\"{sign}{}", def.name, at.0.div_euclid(SECOND)));
                let shown = request.zone.write(at, 0, request.settings.date_format(Some(&def.name)));
                self.add_criterion(&format!("{} {what}", def.name), &shown);
            }
        }
        Ok(())
    }

    fn since(&mut self, from: Time) {
        self.terms.push(format!("since:{}", &from.to_ns_text()[..19]));
    }

    /// Adds the range of dates of the address; returns true if there is one.
    fn dates(&mut self, request: &BookRequest<'_>, part: ListPart) -> Result<bool, BadListSearch> {
        let (query, zone) = (&request.query, &request.zone);
        let mut ranged = matches!(part, ListPart::Last(_) | ListPart::Past(_) | ListPart::All);
        if let ListPart::Past(days) = part {
            let span = if days < 0 { days.saturating_neg().saturating_mul(DAY / 24) } else { days.saturating_mul(DAY) };
            self.since(Time(request.now.0.saturating_sub(span)));
            let criteria = if days < 0 { format!("last {} hours", days.unsigned_abs()) } else { format!("last {days} days") };
            self.add_criterion("Date", &criteria);
        }
        if query.is_on(visit::NEW_ENTRIES)
            && let Some(last) = visit::last(request)
        {
            ranged = true;
            self.since(last);
            self.add_criterion("Date", &format!("since {}", zone.write(last, 0, request.settings.time_format(None))));
        }
        if let Some(last) = query.get("last") {
            ranged = true;
            // `_all_` and 0 mean all days, and extend a list that shows only some days.
            if let Some(days) = last.parse::<i64>().ok().filter(|days| *days > 0) {
                self.since(Time(request.now.0.saturating_sub(days.saturating_mul(DAY))));
                self.add_criterion("Date", &format!("last {days} days"));
            }
        }
        let format = request.settings.time_format(None);
        if let Some(from) = moment(request, "a", false)? {
            self.since(from);
            self.add_criterion("From", &zone.write(from, 0, format));
            ranged = true;
        }
        if let Some(to) = moment(request, "b", true)? {
            self.terms.push(format!("until:{}", &Time(to.0.saturating_add(SECOND)).to_ns_text()[..19]));
            self.add_criterion("To", &zone.write(to, 0, format));
            ranged = true;
        }
        Ok(ranged)
    }
}

/// Reads the time of fields such as `ya`, `ma`, `da`, `ha`, `na`, `ca`. A missing field is the first possible value, or
/// the last one for the end of a range. A missing year is the present one.
fn moment(request: &BookRequest<'_>, end: &str, is_end: bool) -> Result<Option<Time>, BadListSearch> {
    let query = &request.query;
    let field = |letter: char| -> Result<Option<i64>, BadListSearch> {
        let Some(text) = query.get(&format!("{letter}{end}")) else { return Ok(None) };
        let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        let named = || {
            let lower = text.to_lowercase();
            months.iter().position(|month| letter == 'm' && lower.starts_with(month)).map(|at| at as i64 + 1)
        };
        let number = text.trim().parse().ok().or_else(named).ok_or_else(|| BadListSearch::Date(text.to_owned()))?;
        Ok(Some(number))
    };
    let (year, month, day) = (field('y')?, field('m')?, field('d')?);
    let clock = [field('h')?, field('n')?, field('c')?];
    if year.is_none() && month.is_none() && day.is_none() {
        return Ok(None);
    }
    let zone: &Zone = &request.zone;
    let today = zone.fields(request.now, 0);
    let year = match year {
        Some(short @ 0..=79) => 2000 + short,
        Some(short @ 80..=99) => 1900 + short,
        Some(year) => year,
        None => today[0],
    };
    // A day without a month is one of this month.
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
    let criteria = || BadListSearch::Date(format!("{day}.{month}.{year}"));
    zone.moment([year, month, day], clock).map(Some).ok_or_else(criteria)
}
