//! Searches: queries, pages, orders, and the end of a search.

use std::time::Duration;

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, EntryAttribute},
    entry::{Content, EntryRef, Link, NewEntry},
    search::{Count, Search, Sort, Start, Stop, Stopped},
    store::{Imported, Store, StoreError},
};
use tampu_types::Time;

use crate::support::{entry, found, ids, shift_book};

pub fn queries(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let texts = [
        ("Zoe Quartz", "RICH1: HV trip", "Device LHC:MAG-01/cur tripped at 08:15, then recovered."),
        ("Max Müller", "Shift summary", "Quiet. The RICH1 was in STANDBY; node hlt0123_DAQ excluded."),
        ("Zoe Quartz", "Fill 1234", "Beam dump: BLM interlock in point 7 (see run 80123)."),
    ];
    for (at, (author, subject, text)) in texts.into_iter().enumerate() {
        let mut new = entry("A", author, subject, text);
        new.date = Some(Time(1_221_000_000_000_000_000 + at as i64 * 86_400_000_000_000));
        new.content.attributes.push(EntryAttribute::new("Energy", ["450", "3500", "6500"][at]));
        let systems = if at < 2 { vec!["RICH1".into(), "HLT".into()] } else { vec![] };
        new.content.attributes.push(EntryAttribute { name: "System".into(), values: systems });
        new.content.links.extend(["run:80123".parse::<Link>().unwrap()].into_iter().filter(|_| at == 2));
        store.post(new, vec![], ["zoe", "max.m", "zoe"][at]).unwrap();
    }
    for (query, expected) in [
        ("", &[3, 2, 1][..]),
        ("rich1", &[2, 1]),
        ("summary quiet", &[2]),
        ("text:summary", &[]),
        ("\"tripped at\"", &[1]),
        ("\"at tripped\"", &[]),
        ("LHC:MAG-01/cur", &[1]),
        ("MAG-01", &[1]),
        ("lhc", &[1]),
        ("trip", &[1]),
        ("trip*", &[1]),
        ("~ripp", &[1]),
        ("*tandb*", &[2]),
        ("~\"-01/c\"", &[1]),
        ("~\"01 c\"", &[]),
        ("/hlt\\d+_daq/", &[2]),
        ("/HLT\\d+/c", &[]),
        ("/(BLM|cryo) .*lock/", &[3]),
        ("/\\d{5}/", &[3]),
        ("author:muller", &[2]),
        ("author:\"zoe quartz\"", &[3, 1]),
        ("author:=\"Zoe Quartz\"", &[3, 1]),
        ("author:=Zoe", &[]),
        ("author:/^zoe/ -rich1", &[3]),
        ("subject:=\"RICH1 HV trip\"", &[1]),
        ("system:\"rich1 hlt\"", &[]),
        ("by:max", &[2]),
        ("quiet OR dump", &[3, 2]),
        ("rich1 -(quiet OR dump)", &[1]),
        ("NOT rich1", &[3]),
        ("Energy>450", &[3, 2]),
        ("Energy<=3500 energy>=3500", &[2]),
        ("link:run:80123", &[3]),
        ("has:link", &[3]),
        ("has:Type", &[]),
        ("on:2008-09-09", &[1]),
        ("since:2008-09-10", &[3, 2]),
        ("until:2008-09-10", &[2, 1]),
        ("on:2008-09 rich1", &[2, 1]),
        ("quiet OR on:2008-09-09", &[2, 1]),
        ("last:1d", &[]),
        ("id:2", &[2]),
        ("is:reply", &[]),
        ("nosuchword", &[]),
        ("rich1 AND", &[2, 1]),
        ("quiet OR ~", &[2]),
        ("rich1 -()", &[2, 1]),
        ("author:(quartz OR nobody)", &[3, 1]),
        ("author:(zoe hv)", &[]),
        ("author:(zoe subject:hv)", &[1]),
        ("subject:(hv OR \"fill 1234\") rich1", &[1]),
        ("author:-zoe", &[2]),
        ("author:-(zoe OR nobody)", &[2]),
        ("author:(-zoe)", &[2]),
        ("rich1 author:-~uell", &[2, 1]),
        ("author:=(\"Zoe Quartz\" OR Max)", &[3, 1]),
        ("energy:-450", &[1]),
    ] {
        assert_eq!(ids(store, query), expected, "{query}");
    }
    for unfinished in ["quiet OR", "OR quiet", "author:(zoe", "author:-", "author:=", "(quiet", "\"quiet", "quiet)"] {
        let search = Search { query: unfinished.into(), ..Search::default() };
        let error = store.search(&search, &Stop::default()).map(|page| page.hits.len()).unwrap_err();
        assert!(error.to_string().contains("invalid query at character"), "{unfinished}: {error}");
    }
    // A part of many words, of more than one index query takes; then many such parts together.
    let many: Vec<String> = (0..250).map(|n| format!("nq{n:03} mq{n:03}x")).collect();
    store.post(entry("A", "Max", "many words", &many.join(" ")), vec![], "max").unwrap();
    let parts: Vec<String> = (0..25).map(|n| format!("~q{}", n % 3)).collect();
    for query in ["nq*", "~q1", "\"nq007 mq\"*", "/nq\\d+ mq249x/", &parts.join(" "), &parts.join(" OR ")] {
        assert_eq!(ids(store, query), [4], "{query}");
    }
    let hit = &found(store, "rich1 stand*").hits[0];
    let marked: Vec<&str> = hit.snippet.marks.iter().map(|mark| &hit.snippet.text[mark.clone()]).collect();
    assert_eq!(marked, ["RICH1", "STANDBY"]);
    assert!(store.search(&Search { query: "/(/".into(), ..Search::default() }, &Stop::default()).is_err());
    // A book that is named twice is searched once.
    let twice = Search { books: vec!["A".into(), "a".into()], query: "quiet".into(), ..Search::default() };
    let page = store.search(&twice, &Stop::default()).unwrap();
    assert_eq!((page.hits.len(), page.count), (1, Some(Count::Exactly(1))));
}

pub fn words_of_any_length_and_number(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let long = format!("{}needle{}", "a".repeat(70), "b".repeat(10));
    store.post(entry("A", "Zoe", "s", &format!("short {long}")), vec![], "zoe").unwrap();
    store.post(entry("A", &long, "s", "a long value"), vec![], "zoe").unwrap();
    store.post(entry("A", "Zoe", "s", "a short needle"), vec![], "zoe").unwrap();
    for (query, expected) in [
        ("~needle", &[3, 2, 1][..]),
        ("text:~needleb", &[1]),
        ("/a+needle/", &[2, 1]),
        ("/needleb{9,}/", &[2, 1]),
        ("author:~edlebb", &[2]),
        ("needle", &[3]),
        ("~eedl -needle", &[2, 1]),
    ] {
        assert_eq!(ids(store, query), expected, "{query}");
    }
    // More new words than one batch learns: all of them are found, whole and by part.
    let words: Vec<String> =
        (0..4000).map(|n| format!("{}{n:04}z", char::from(b'f' + (n % 8) as u8).to_string().repeat(58))).collect();
    store.post(entry("A", "Zoe", "s", &words.join(" ")), vec![], "zoe").unwrap();
    store.post(entry("A", "Zoe", "s", &words[3999]), vec![], "zoe").unwrap();
    let begins = format!("{}*", &words[3999][..60]);
    for (query, expected) in [
        (words[3999].as_str(), &[5, 4][..]),
        ("~3999z", &[5, 4]),
        (begins.as_str(), &[5, 4]),
        ("/m3998./", &[]),
        ("/l3998./", &[4]),
    ] {
        assert_eq!(ids(store, query), expected, "{query}");
    }
    // A search stops at every stage, also in the vocabulary.
    let stop = Stop::default();
    stop.stop();
    for query in ["/f+\\d+z/", "~ff", "", "needle"] {
        let page = store.search(&Search { query: query.into(), limit: 1, ..Search::default() }, &stop).unwrap();
        match page.stopped {
            Some(why) => assert_eq!((why, page.next), (Stopped::Abandoned, None), "{query}"),
            None => assert!(!query.starts_with(['/', '~']), "{query} takes longer than that"),
        }
    }
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

pub fn more_entries_of_a_second_than_it_has_places(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let one = |id: u32| {
        // The last ones are a second later.
        let second = 1_221_000_000 + i64::from(id > 4200);
        let entry = NewEntry { date: Some(Time(second * 1_000_000_000 + 5)), ..entry("A", "Zoe", "s", "word") };
        Imported { id, thread: id, digest: [1; 16], entry, ..Imported::default() }
    };
    store.import("A", (1..=4210).map(one).collect(), vec![], "import").unwrap();
    let count = |query: &str, sort: Sort| {
        let search = Search { query: query.into(), sort, limit: 1, count_to: 9999, count_looks: 9999, ..Search::default() };
        store.search(&search, &Stop::default()).unwrap().count.unwrap()
    };
    let (day, second) = ("2008-09-09", "2008-09-09T22:40:00");
    assert_eq!(store.entry(&EntryRef::new("A", 1)).unwrap().date.to_acs()[..19], *second);
    for (query, expected) in [
        (format!("on:{second}"), 4200),
        (format!("on:{second} word"), 4200),
        ("since:2008-09-09T22:40:01".to_owned(), 10),
        ("until:2008-09-09T22:40:01 word".to_owned(), 4200),
        ("since:2008-09-09T22:40:02".to_owned(), 0),
        (format!("on:{day}"), 4210),
    ] {
        assert_eq!(count(&query, Sort::Date), Count::Exactly(expected), "{query}");
    }
    let ids_of = |sort: Sort| {
        let search = Search { query: "since:2008-09-09T22:40:01".into(), sort, limit: 1000, ..Search::default() };
        let page = store.search(&search, &Stop::default()).unwrap();
        let all: Vec<EntryRef> = page.hits.into_iter().map(|hit| hit.entry.at).collect();
        assert_pages_of(store, &search, &all);
        all.iter().map(|at| at.id).collect::<Vec<_>>()
    };
    let last: Vec<u32> = (4201..=4210).rev().collect();
    assert_eq!((ids_of(Sort::Date), ids_of(Sort::Id)), (last.clone(), last));
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

pub fn pages_are_bounded_in_bytes(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    for _ in 0..5 {
        store.post(entry("A", "Zoe", "s", &"... ".repeat(6 << 18)), vec![], "zoe").unwrap();
    }
    let search = Search { limit: 1000, ..Search::default() };
    let first = store.search(&search, &Stop::default()).unwrap();
    assert_eq!((first.hits.len(), first.count), (3, Some(Count::Exactly(5))));
    let rest = Search { start: Start::After(first.next.unwrap()), ..search };
    let rest = store.search(&rest, &Stop::default()).unwrap();
    assert_eq!((rest.hits.len(), rest.next), (2, None));
}

/// Checks that pages of any size begin where the entries of a search say so, which are all that it finds, in order.
fn assert_pages_of(store: &dyn Store, search: &Search, all: &[EntryRef]) {
    for limit in [1, 7, 30] {
        let search = Search { limit, count_to: 0, start: Start::First, ..search.clone() };
        for (nth, at) in all.iter().enumerate().step_by(1 + all.len() / 7) {
            let found = store.page_of(&search, at, &Stop::default()).unwrap().unwrap();
            let before = nth / limit * limit;
            assert_eq!(found.before, before as u64, "{at} is number {nth} of {search:?}");
            let start = found.after.map_or(Start::First, Start::After);
            assert_eq!(start == Start::First, before == 0, "{at}: {search:?}");
            let page = store.search(&Search { start, ..search.clone() }, &Stop::default()).unwrap();
            let shown: Vec<EntryRef> = page.hits.into_iter().map(|hit| hit.entry.at).collect();
            assert_eq!(shown, all[before..all.len().min(before + limit)], "{at}: {search:?}");
        }
    }
}

pub fn pages_and_orders(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    store.put_book(&shift_book("B")).unwrap();
    let mut plain = shift_book("C");
    plain.attributes.truncate(2);
    store.put_book(&plain).unwrap();
    for n in 0..60u32 {
        let mut new =
            entry(["A", "B", "C"][n as usize % 3], "Zoe", &format!("subject {}", n * 7 % 60), &format!("word{} common", n % 2));
        // Several entries of one second, in several books.
        new.date = Some(Time(1_221_000_000_000_000_000 + i64::from(n / 5) * 1_000_000_000));
        new.content.attributes.push(EntryAttribute::new("Energy", &format!("{}", (n * 13) % 17)));
        store.post(new, vec![], "zoe").unwrap();
    }
    let orders = [Sort::Date, Sort::Id, Sort::Thread, Sort::Attribute("Subject".into()), Sort::Attribute("energy".into())];
    for (sort, descending) in orders.iter().flat_map(|sort| [(sort, false), (sort, true)]) {
        for (query, books) in [
            ("", vec![]),
            ("", vec!["A"]),
            ("common", vec![]),
            ("word1", vec!["A", "B"]),
            ("/ord1 c/", vec!["B"]),
            ("/[vw]ord1/", vec![]),
            ("subject:/1$/ since:2008-09-09T22:40:03", vec![]),
            ("until:2008-09-09T22:40:05", vec!["B", "C"]),
            ("nothing", vec![]),
        ] {
            let books = books.into_iter().map(str::to_owned).collect();
            let search = Search { query: query.into(), books, sort: sort.clone(), descending, limit: 1000, ..Search::default() };
            let whole = store.search(&search, &Stop::default()).unwrap();
            let all: Vec<EntryRef> = whole.hits.iter().map(|hit| hit.entry.at.clone()).collect();
            assert_eq!(whole.count, Some(Count::Exactly(all.len() as u64)));
            assert_pages_of(store, &search, &all);
            for far in [1000, u64::MAX - 1000, u64::MAX] {
                let far = Search { start: Start::Skip(far), ..search.clone() };
                assert_eq!(store.search(&far, &Stop::default()).unwrap().hits, []);
            }
            // Pages of any size return the same entries.
            for limit in [1, 7, 30] {
                let (mut pages, mut start) = (Vec::new(), Start::First);
                loop {
                    let search = Search { limit, start, count_to: 0, ..search.clone() };
                    let page = store.search(&search, &Stop::default()).unwrap();
                    let skipped = Search { start: Start::Skip(pages.len() as u64), ..search.clone() };
                    let skipped = store.search(&skipped, &Stop::default()).unwrap();
                    assert_eq!(skipped.hits, page.hits, "{sort:?} {descending} {query:?} by {limit} after {}", pages.len());
                    pages.extend(page.hits.into_iter().map(|hit| hit.entry.at));
                    match page.next {
                        Some(next) => start = Start::After(next),
                        None => break,
                    }
                }
                assert_eq!(pages, all, "{sort:?} {descending} {query:?} by {limit}");
            }
        }
    }
    // An entry that the search does not find has the page on which it would stand; one that is nowhere has none.
    let odd = Search { query: "word1".into(), books: vec!["A".into()], limit: 3, descending: false, ..Search::default() };
    let (even, nowhere) = (EntryRef::new("A", 19), EntryRef::new("A", 99));
    assert_eq!(store.page_of(&odd, &even, &Stop::default()).unwrap().unwrap().before, 9);
    for (search, at) in [(&odd, nowhere), (&odd, EntryRef::new("B", 1))] {
        assert_eq!(store.page_of(search, &at, &Stop::default()).unwrap(), None, "{at}");
    }
    let search = Search { limit: 5, ..Search::default() };
    let next = store.search(&search, &Stop::default()).unwrap().next.unwrap();
    let other = Search { query: "common".into(), start: Start::After(next), ..search };
    assert!(matches!(store.search(&other, &Stop::default()), Err(StoreError::OtherSearch)));
    // The count is exact up to a limit.
    for (to, expected) in [(59, Count::AtLeast(59)), (60, Count::Exactly(60))] {
        let search = Search { query: "common".into(), count_to: to, ..Search::default() };
        assert_eq!(store.search(&search, &Stop::default()).unwrap().count, Some(expected));
    }
    let sorted = |name: &str, descending| {
        let sort = Sort::Attribute(name.into());
        let search = Search { books: vec!["A".into()], sort, descending, limit: 3, ..Search::default() };
        let page = store.search(&search, &Stop::default()).unwrap();
        page.hits.iter().map(|hit| hit.entry.content.attribute(name).unwrap().joined()).collect::<Vec<_>>()
    };
    assert_eq!(sorted("Energy", false), ["0", "0", "1"]);
    assert_eq!(sorted("Subject", true), ["subject 9", "subject 6", "subject 57"]);
    let unknown = Search { sort: Sort::Attribute("nope".into()), ..Search::default() };
    let error = store.search(&unknown, &Stop::default()).unwrap_err();
    assert!(matches!(&error, StoreError::NoOrder { .. }) && error.to_string().contains("use date, id, Author, Type"), "{error}");
    // A new attribute orders the entries that were there before.
    let mut book = store.book("A").unwrap();
    book.attributes.insert(0, AttributeDef::new("Run", AttributeKind::Numeric));
    store.put_book(&book).unwrap();
    let search = Search { books: vec!["A".into()], sort: Sort::Attribute("Run".into()), ..Search::default() };
    assert_eq!(store.search(&search, &Stop::default()).unwrap().hits.len(), 20);
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

pub fn threads_are_ordered_by_their_newest_entries(store: &dyn Store) {
    for book in ["A", "B"] {
        store.put_book(&shift_book(book)).unwrap();
    }
    let post = |book: &str, second: i64, parent: Option<u32>| {
        let new =
            NewEntry { parent, date: Some(Time::from_unix(1_221_000_000 + second, 0)), ..entry(book, "Zoe", "s", "common") };
        store.post(new, vec![], "zoe").unwrap()
    };
    let search = |books: &[&str], query: &str, descending| Search {
        books: books.iter().map(|book| (*book).to_owned()).collect(),
        query: query.to_owned(),
        sort: Sort::Thread,
        descending,
        ..Search::default()
    };
    let heads = |books: &[&str], query: &str, descending| {
        let page = store.search(&search(books, query, descending), &Stop::default()).unwrap();
        assert_eq!(page.count, Some(Count::Exactly(page.hits.len() as u64)));
        let all: Vec<EntryRef> = page.hits.into_iter().map(|hit| hit.entry.at).collect();
        assert_pages_of(store, &search(books, query, descending), &all);
        all.iter().map(EntryRef::to_string).collect::<Vec<_>>()
    };
    for second in [10, 20, 30] {
        post("A", second, None);
    }
    post("B", 25, None);
    assert_eq!(heads(&["A"], "", true), ["A/3", "A/2", "A/1"]);
    // A reply brings its thread to the front, a reply to the reply too.
    let reply = post("A", 40, Some(1));
    assert_eq!(heads(&["A"], "", true), ["A/1", "A/3", "A/2"]);
    assert_eq!(heads(&["A"], "", false), ["A/2", "A/3", "A/1"]);
    let deep = post("A", 50, Some(reply.id));
    post("B", 45, Some(1));
    assert_eq!(heads(&["A", "B"], "common", true), ["A/1", "B/1", "A/3", "A/2"]);
    // An edit leaves the order alone; what is removed from a thread does not count.
    let old = store.entry(&deep).unwrap();
    store.edit(&deep, Content { text: "other".into(), ..old.content }, vec![], "zoe", None).unwrap();
    store.delete(&deep, "zoe", false).unwrap();
    assert_eq!(heads(&["A", "B"], "", true), ["B/1", "A/1", "A/3", "A/2"]);
    // The replies to a deleted entry are threads of their own.
    store.delete(&EntryRef::new("A", 1), "zoe", false).unwrap();
    assert_eq!(heads(&["A"], "", true), [reply.to_string().as_str(), "A/3", "A/2"]);
    store.move_to(&EntryRef::new("A", 2), "B", "zoe", true).unwrap();
    assert_eq!(heads(&["B"], "", true), ["B/1", "B/3"]);
    // Imported threads, in whatever order their entries come.
    let imported = |id: u32, second: i64, parent: Option<u32>| {
        let date = Some(Time::from_unix(1_221_000_000 + second, 0));
        let entry = NewEntry { parent, date, ..entry("A", "Zoe", "s", "common") };
        Imported { id, entry, thread: 20, digest: [id as u8; 16], draft: None, author: None }
    };
    let entries = vec![imported(20, 5, None), imported(21, 60, Some(20)), imported(22, 55, Some(21))];
    store.import("A", entries, vec![], "elog").unwrap();
    assert_eq!(heads(&["A"], "", true)[0], "A/20");
    // Pages of one, over both books.
    let (mut pages, mut start) = (Vec::new(), Start::First);
    loop {
        let page = Search { limit: 1, start, ..search(&["A", "B"], "", true) };
        let page = store.search(&page, &Stop::default()).unwrap();
        pages.extend(page.hits.into_iter().map(|hit| hit.entry.at.to_string()));
        match page.next {
            Some(next) => start = Start::After(next),
            None => break,
        }
    }
    assert_eq!(pages, heads(&["A", "B"], "", true));
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

pub fn an_abandoned_search_ends(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    for _ in 0..50 {
        store.post(entry("A", "Zoe", "s", "some text"), vec![], "zoe").unwrap();
    }
    let search = Search { query: "/x\\d/".into(), ..Search::default() };
    let stop = Stop::default();
    stop.stop();
    let page = store.search(&search, &stop).unwrap();
    assert_eq!((page.stopped, page.hits.len(), page.count), (Some(Stopped::Abandoned), 0, None));
    let late = Search { time: Duration::ZERO, ..search.clone() };
    assert_eq!(store.search(&late, &Stop::default()).unwrap().stopped, Some(Stopped::TimeLimit));
    // The connection of the stopped search is still usable.
    assert_eq!(store.search(&search, &Stop::default()).unwrap().stopped, None);
}

/// The page and its count may be found in one pass, which must not change either of them.
pub fn counts_do_not_depend_on_the_page(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let texts = ["beam lost", "stable beam", "lost beam found", "lost a key", "nothing"];
    let posts = (0..90).map(|nth: usize| (entry("A", "Zoe", "s", texts[nth * nth % 7 % texts.len()]), None));
    store.post_all(posts.collect(), "zoe").unwrap();
    let queries = ["beam", "beam -lost", "\"lost beam\"", "/bea[mn]/", "/beam$/ lost", "~eam", "-/key/", ""];
    for (nth, query) in queries.iter().enumerate() {
        for count_to in [1, 17, 1000] {
            for count_looks in [0, 7, 40, 300] {
                for (limit, skip) in [(1, 0), (20, 3), (200, 0)] {
                    // A time limit of its own, so that no search is remembered for another one.
                    let query = format!("{query} last:{}d", 20_000 + nth);
                    let search = Search {
                        books: vec!["A".into()],
                        query,
                        limit,
                        start: Start::Skip(skip),
                        count_to,
                        count_looks,
                        ..Search::default()
                    };
                    let page = store.search(&search, &Stop::default()).unwrap();
                    let alone = Search { descending: false, ..search.clone() };
                    assert_eq!(page.count, store.search(&alone, &Stop::default()).unwrap().count, "{search:?}");
                    let uncounted = store.search(&Search { count_to: 0, ..search.clone() }, &Stop::default()).unwrap();
                    assert_eq!((page.hits, page.next), (uncounted.hits, uncounted.next), "{search:?}");
                }
            }
        }
    }
}
