//! What every store has to do. The suite is generic: a store has a line at the end.

#[path = "support/server.rs"]
mod server;
mod support;
#[path = "support/together.rs"]
mod together;

use std::{io::Read, time::Duration};

use support::{entry, found, ids, shift_book};
use tampu_logbook::{
    attachment::Attachment,
    book::{AttributeDef, AttributeKind, EntryAttribute},
    entry::{Change, Content, Draft, EntryRef, Link, NewEntry},
    search::{Count, Search, Sort, Start, Stop, Stopped},
    store::{ImportOutcome, Imported, MAX_ATTACHMENT, Store, StoreError, sqlite::SqliteStore},
};
use tampu_types::Time;
use together::{a_lock_is_handed_on, files_of_one_name_and_second_have_addresses_of_their_own, several_posts_are_one};

fn posting_and_editing(store: &dyn Store) {
    store.put_book(&shift_book("Shift")).unwrap();
    let at = store.post(entry("shift", "Zoe", "HV trip", "Channel 7 tripped."), vec![], "zoe").unwrap();
    assert_eq!(at, EntryRef::new("Shift", 1));
    let first = store.entry(&at).unwrap();
    assert_eq!((first.by.as_str(), first.revision, first.thread, first.parent), ("zoe", 0, 1, None));
    assert_eq!(ids(store, "tripped"), [1]);

    let mut content = first.content.clone();
    content.text = "Channel 8 tripped, not 7.".to_owned();
    assert_eq!(store.edit(&at, content.clone(), vec![], "max", Some(0)).unwrap(), 1);
    // The same again is no change; an edit of what was read before is refused.
    assert_eq!(store.edit(&at, content.clone(), vec![], "max", None).unwrap(), 1);
    let late = Content { text: "mine".to_owned(), ..content };
    let refused = store.edit(&at, late, vec![], "zoe", Some(0)).unwrap_err();
    assert!(matches!(refused, StoreError::Changed { expected: 0, is: 1, .. }), "{refused}");
    assert_eq!((ids(store, "\"channel 8\""), ids(store, "\"channel 7\"")), (vec![1], vec![]));
    let history = store.history(&at).unwrap();
    let told: Vec<_> = history.iter().map(|r| (r.number, r.by.as_str(), r.what, r.content.text.as_str())).collect();
    assert_eq!(told, [(0, "zoe", Change::Posted, "Channel 7 tripped."), (1, "max", Change::Edited, "Channel 8 tripped, not 7.")]);

    // What is wrong is refused and leaves nothing behind, not even an id.
    let mut bad = entry("Shift", "Zoe", "x", "never seen");
    bad.content.attributes.push(EntryAttribute::new("Type", "Party"));
    assert!(matches!(store.post(bad, vec![], "zoe"), Err(StoreError::Invalid(_))));
    assert!(matches!(store.post(entry("None", "Zoe", "x", ""), vec![], "zoe"), Err(StoreError::NoBook(_))));
    let orphan = NewEntry { parent: Some(99), ..entry("Shift", "Zoe", "x", "never seen") };
    assert!(matches!(store.post(orphan, vec![], "zoe"), Err(StoreError::NoEntry(_))));
    assert!(ids(store, "\"never seen\"").is_empty());
    let zone = NewEntry { zone: 1441, ..entry("Shift", "Zoe", "x", "never seen") };
    assert!(matches!(store.post(zone, vec![], "zoe"), Err(StoreError::Invalid(_))));
    // A new option of an extendable attribute is an option from then on.
    let mut new = entry("Shift", "Max", "y", "second");
    new.content.attributes.push(EntryAttribute { name: "system".to_owned(), values: vec!["RICH1".into(), "Magnet".into()] });
    assert_eq!(store.post(new, vec![], "max").unwrap().id, 2);
    assert_eq!(store.book("shift").unwrap().attribute("System").unwrap().options, ["RICH1", "HLT", "Magnet"]);
    assert_eq!(ids(store, "system:magnet"), [2]);
    let books = store.books().unwrap();
    assert_eq!((books[0].entries, books[0].newest), (2, Some(Time(1_221_000_000_000_000_000))));
    // The book becomes another: what its entries said stays good until somebody changes it.
    let mut book = store.book("Shift").unwrap();
    (book.attributes[2].options, book.attributes[2].extendable) = (vec!["Other".to_owned()], false);
    book.attributes[3].required = true;
    store.put_book(&book).unwrap();
    let second = EntryRef::new("Shift", 2);
    let mut content = store.entry(&second).unwrap().content;
    content.text = "corrected".to_owned();
    store.edit(&second, content.clone(), vec![], "max", None).unwrap();
    content.attributes.iter_mut().find(|said| said.name == "System").unwrap().values = vec!["HLT".to_owned()];
    assert!(matches!(store.edit(&second, content, vec![], "max", None), Err(StoreError::Invalid(_))));
}

fn threads_deletion_and_moving(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    store.put_book(&shift_book("B")).unwrap();
    let post = |parent: Option<u32>, text: &str| {
        store.post(NewEntry { parent, ..entry("A", "Zoe", "s", text) }, vec![], "zoe").unwrap().id
    };
    let root = post(None, "root");
    let child = post(Some(root), "child");
    let grandchild = post(Some(child), "grandchild");
    let other = post(Some(root), "other");
    let thread = |book: &str, id: u32| {
        let entries = store.thread(&EntryRef::new(book, id)).unwrap();
        entries.iter().map(|entry| (entry.at.id, entry.parent)).collect::<Vec<_>>()
    };
    let whole = [(root, None), (child, Some(root)), (grandchild, Some(child)), (other, Some(root))];
    assert_eq!(thread("A", grandchild), whole);
    assert_eq!(ids(store, &format!("thread:{root} is:reply")), [other, grandchild, child]);

    // A copy has ids and a history of its own; the answers go along, with their parents.
    let copy = store.copy(&EntryRef::new("A", child), "B", "max", true).unwrap();
    assert_eq!(thread("B", copy.id), [(1, None), (2, Some(1))]);
    assert_eq!(store.history(&copy).unwrap()[0].what, Change::Copied);

    // What loses its parent begins a thread.
    assert_eq!(store.delete(&EntryRef::new("A", child), "max", false).unwrap(), 1);
    assert_eq!(thread("A", root), [(root, None), (other, Some(root))]);
    assert_eq!(thread("A", grandchild), [(grandchild, None)]);
    assert_eq!(ids(store, &format!("thread:{grandchild}")), [grandchild]);
    let gone = store.entry(&EntryRef::new("A", child)).unwrap_err();
    assert!(matches!(&gone, StoreError::Gone(t) if t.by == "max" && t.moved_to.is_none()), "{gone}");
    let history = store.history(&EntryRef::new("A", child)).unwrap();
    assert_eq!((history[0].content.text.as_str(), history[1].what), ("child", Change::Deleted));

    // Moving takes the history along and leaves a pointer.
    let moved = store.move_to(&EntryRef::new("A", root), "B", "max", true).unwrap();
    assert_eq!(thread("B", moved.id), [(moved.id, None), (moved.id + 1, Some(moved.id))]);
    let gone = store.entry(&EntryRef::new("A", root)).unwrap_err();
    assert!(matches!(&gone, StoreError::Gone(t) if t.moved_to == Some(moved.clone())), "{gone}");
    let told: Vec<_> = store.history(&moved).unwrap().into_iter().map(|revision| revision.what).collect();
    assert_eq!(told, [Change::Posted, Change::Moved]);

    // What is not there cannot go anywhere, not even where it would be.
    for (id, to) in [(99, "A"), (99, "B"), (root, "A")] {
        assert!(store.move_to(&EntryRef::new("A", id), to, "max", false).is_err(), "{id} to {to}");
    }

    // The id of the last entry is not given again, though it was deleted.
    assert_eq!(store.delete(&EntryRef::new("A", grandchild), "max", true).unwrap(), 1);
    assert_eq!(post(None, "new"), other + 1);
    let counts: Vec<u64> = store.books().unwrap().iter().map(|book| book.entries).collect();
    assert_eq!(counts, [1, 4]);
}

fn attachments(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let bytes: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let upload = store.upload(&mut &bytes[..], MAX_ATTACHMENT).unwrap();
    let sha = upload.sha().clone();
    let mut new = entry("A", "Zoe", "plot", "see the plot");
    new.content.attachments = vec![upload.attachment("../trend plot.png", Time(5))];
    let missing = store.post(new.clone(), vec![], "zoe").unwrap_err();
    assert!(matches!(missing, StoreError::NoBlob(_)), "{missing}");
    let at = store.post(new.clone(), vec![upload], "zoe").unwrap();
    let mut read = Vec::new();
    store.attachment(&sha).unwrap().read_to_end(&mut read).unwrap();
    assert!(read == bytes);
    assert_eq!(store.entry(&at).unwrap().content.attachments[0].name, "trend plot.png");
    assert_eq!((ids(store, "has:attachment"), ids(store, "attachment:trend")), (vec![1], vec![1]));
    // Bytes that some entry has need not be sent again; those of a post that failed go.
    store.post(new, vec![], "zoe").unwrap();
    let upload = store.upload(&mut &b"lost"[..], MAX_ATTACHMENT).unwrap();
    let (lost, mut bad) = (upload.sha().clone(), entry("A", "Zoe", "bad", "x"));
    bad.content.attachments =
        vec![upload.attachment("x", Time(5)), Attachment { sha: Some(sha), ..upload.attachment("y", Time(5)) }];
    bad.content.attributes.push(EntryAttribute::new("Energy", "none"));
    assert!(store.post(bad, vec![upload], "zoe").is_err());
    assert!(store.attachment(&lost).is_err());
    assert!(store.upload(&mut &bytes[..], 1000).is_err());
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

fn two_people_and_one_entry(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let at = store.post(entry("A", "Zoe", "s", "text"), vec![], "zoe").unwrap();
    let hour = Duration::from_secs(3600);
    let lock = store.lock(&at, "zoe", "pc7", hour).unwrap();
    assert_eq!(store.lock(&at, "zoe", "pc7", hour).unwrap().since, lock.since);
    assert!(matches!(store.lock(&at, "max", "pc8", hour), Err(StoreError::Locked { .. })));
    let content = Content { text: "mine".to_owned(), ..store.entry(&at).unwrap().content };
    assert!(matches!(store.edit(&at, content.clone(), vec![], "max", None), Err(StoreError::Locked { .. })));
    assert!(matches!(store.delete(&at, "max", false), Err(StoreError::Locked { .. })));
    store.unlock(&at, "max").unwrap();
    assert_eq!(store.locked(&at).unwrap().unwrap().by, "zoe");
    store.edit(&at, content.clone(), vec![], "zoe", Some(0)).unwrap();
    store.unlock(&at, "zoe").unwrap();
    assert!(store.locked(&at).unwrap().is_none());
    // A lock ends by itself.
    store.lock(&at, "zoe", "pc7", Duration::ZERO).unwrap();
    store.edit(&at, Content { text: "yours".to_owned(), ..content }, vec![], "max", Some(1)).unwrap();
}

fn drafts_and_saved_searches(store: &dyn Store) {
    let content = Content { text: "begun".to_owned(), ..Content::default() };
    let draft = Draft { number: 0, owner: "zoe".into(), book: "A".into(), edits: None, parent: Some(3), saved: Time(5), content };
    let number = store.save_draft(&draft).unwrap();
    let later = Draft { number, saved: Time(9), content: Content { text: "more".into(), ..Content::default() }, ..draft };
    assert_eq!(store.save_draft(&later).unwrap(), number);
    assert_eq!(store.drafts("zoe").unwrap(), std::slice::from_ref(&later));
    // Somebody else's draft is neither changed nor thrown away.
    assert_ne!(store.save_draft(&Draft { owner: "max".into(), ..later }).unwrap(), number);
    assert!(!store.drop_draft("max", number).unwrap() && store.drop_draft("zoe", number).unwrap());
    assert!(store.drafts("zoe").unwrap().is_empty());

    store.save_search("zoe", "trips", "trip*").unwrap();
    store.save_search("zoe", "trips", "trip* last:7d").unwrap();
    assert_eq!(store.saved_searches("zoe").unwrap(), [("trips".to_owned(), "trip* last:7d".to_owned())]);
    assert!(store.saved_searches("max").unwrap().is_empty());
    assert!(store.drop_search("zoe", "trips").unwrap() && !store.drop_search("zoe", "trips").unwrap());
}

fn queries(store: &dyn Store) {
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
        ("quiet OR", &[2]),
        ("OR quiet", &[2]),
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
        ("author:(zoe", &[3, 1]),
        ("author:-", &[3, 2, 1]),
        ("energy:-450", &[1]),
        ("(quiet", &[2]),
    ] {
        assert_eq!(ids(store, query), expected, "{query}");
    }
    // A part of many words, and of more than an index is asked for; many such parts together.
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
    // A book that is named twice is one.
    let twice = Search { books: vec!["A".into(), "a".into()], query: "quiet".into(), ..Search::default() };
    let page = store.search(&twice, &Stop::default()).unwrap();
    assert_eq!((page.hits.len(), page.count), (1, Some(Count::Exactly(1))));
}

fn words_of_any_length_and_number(store: &dyn Store) {
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
    // More new words than are learned at once: all of them are found, whole and by part.
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
    // Stopped wherever it is: in the vocabulary, too.
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

fn more_entries_of_a_second_than_it_has_places(store: &dyn Store) {
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
        store.search(&search, &Stop::default()).unwrap().hits.iter().map(|hit| hit.entry.at.id).collect::<Vec<_>>()
    };
    let last: Vec<u32> = (4201..=4210).rev().collect();
    assert_eq!((ids_of(Sort::Date), ids_of(Sort::Id)), (last.clone(), last));
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

fn pages_are_bounded_in_bytes(store: &dyn Store) {
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

fn pages_and_orders(store: &dyn Store) {
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
    let orders = [Sort::Date, Sort::Id, Sort::Attribute("Subject".into()), Sort::Attribute("energy".into())];
    for (sort, descending) in orders.iter().flat_map(|sort| [(sort, false), (sort, true)]) {
        for (query, books) in
            [("", vec![]), ("common", vec![]), ("word1", vec!["A", "B"]), ("/ord1 c/", vec!["B"]), ("nothing", vec![])]
        {
            let books = books.into_iter().map(str::to_owned).collect();
            let search = Search { query: query.into(), books, sort: sort.clone(), descending, limit: 1000, ..Search::default() };
            let whole = store.search(&search, &Stop::default()).unwrap();
            let all: Vec<EntryRef> = whole.hits.iter().map(|hit| hit.entry.at.clone()).collect();
            assert_eq!(whole.count, Some(Count::Exactly(all.len() as u64)));
            for far in [1000, u64::MAX - 1000, u64::MAX] {
                let far = Search { start: Start::Skip(far), ..search.clone() };
                assert_eq!(store.search(&far, &Stop::default()).unwrap().hits, []);
            }
            // Page by page it is the same, whatever the pages' size.
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
    let search = Search { limit: 5, ..Search::default() };
    let next = store.search(&search, &Stop::default()).unwrap().next.unwrap();
    let other = Search { query: "common".into(), start: Start::After(next), ..search };
    assert!(matches!(store.search(&other, &Stop::default()), Err(StoreError::OtherSearch)));
    // Up to a cap it is counted exactly.
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
    // A new attribute orders the entries that were there before.
    let mut book = store.book("A").unwrap();
    book.attributes.insert(0, AttributeDef::new("Run", AttributeKind::Numeric));
    store.put_book(&book).unwrap();
    let search = Search { books: vec!["A".into()], sort: Sort::Attribute("Run".into()), ..Search::default() };
    assert_eq!(store.search(&search, &Stop::default()).unwrap().hits.len(), 20);
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

fn an_abandoned_search_ends(store: &dyn Store) {
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
    // The connection it had is good for the next.
    assert_eq!(store.search(&search, &Stop::default()).unwrap().stopped, None);
}

fn many_at_once(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                for n in 0..15 {
                    let text = format!("writer{writer} number{n}");
                    let at = store.post(entry("A", "Zoe", "s", &text), vec![], "zoe").unwrap();
                    // What was posted is found at once.
                    assert_eq!(ids(store, &format!("\"{text}\"")), [at.id]);
                }
            });
        }
        // More than there are connections.
        for _ in 0..12 {
            scope.spawn(|| {
                let mut last = 0;
                while last < 60 {
                    let Some(Count::Exactly(count)) = found(store, "number*").count else { panic!("it is counted") };
                    assert!(count >= last, "{count} after {last}");
                    last = count;
                }
            });
        }
    });
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

/// What is checked while others post is as it should be.
fn checking_beside_writers(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let post = |n: u32| {
        let upload = store.upload(&mut &n.to_le_bytes()[..], MAX_ATTACHMENT).unwrap();
        let mut new = entry("A", "Zoe", "s", "with a file");
        new.content.attachments = vec![upload.attachment("a.bin", Time(5))];
        store.post(new, vec![upload], "zoe").unwrap();
    };
    post(0);
    let mut posted = 0;
    let faults = store.check(&mut |_, _| {
        posted += 1;
        post(posted);
        true
    });
    assert_eq!((faults.unwrap(), posted > 0), (vec![], true));
}

fn importing(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let one = |id: u32, text: &str, digest: u8| {
        let mut imported = Imported { id, thread: id, digest: [digest; 16], ..Imported::default() };
        imported.entry = entry("A", "Zoe", "s", text);
        imported
    };
    let import = |entries: Vec<Imported>| store.import("A", entries, vec![], "import").unwrap();
    use ImportOutcome::{Changed, Conflict, Gone, New, Same};
    assert_eq!(import(vec![one(5, "five", 1), one(3, "three", 1)]), [New, New]);
    assert_eq!(import(vec![one(5, "five", 1), one(3, "tres", 2)]), [Same, Changed]);
    assert_eq!((ids(store, "tres"), ids(store, "three")), (vec![3], vec![]));
    let five = EntryRef::new("A", 5);
    let content = Content { text: "V".into(), ..store.entry(&five).unwrap().content };
    store.edit(&five, content, vec![], "zoe", None).unwrap();
    store.delete(&EntryRef::new("A", 3), "zoe", false).unwrap();
    assert_eq!(import(vec![one(5, "cinco", 3), one(3, "drei", 3)]), [Conflict, Gone]);
    assert_eq!(store.post(entry("A", "Zoe", "s", "next"), vec![], "zoe").unwrap().id, 6);
    store.imported().unwrap();
    assert_eq!(store.digests("A").unwrap(), [(5, [1; 16])]);
    // What an import took away itself comes back with its number; an answer to what is gone begins a thread.
    store.delete(&EntryRef::new("A", 5), "import", false).unwrap();
    let answer = |id: u32, parent: u32| {
        let imported = one(id, "answer", 4);
        Imported { thread: 3, entry: NewEntry { parent: Some(parent), ..imported.entry }, ..imported }
    };
    assert_eq!(import(vec![one(5, "again", 9), answer(7, 3), answer(8, 7)]), [New, New, New]);
    let read = |id: u32| store.entry(&EntryRef::new("A", id)).unwrap();
    assert_eq!((read(5).revision, read(7).parent, read(7).thread, read(8).thread), (3, None, 7, 7));
    assert!(store.import("A", vec![one(u32::MAX - 1, "far too high", 1)], vec![], "import").is_err());
    let draft = Imported { draft: Some("zoe".to_owned()), ..one(9, "begun", 1) };
    assert_eq!(import(vec![draft.clone(), draft]), [New, Same]);
    assert_eq!((store.drafts("zoe").unwrap().len(), ids(store, "begun")), (1, vec![]));
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

fn records(store: &dyn Store) {
    use serde_json::json;
    assert_eq!(store.record("user", "zoe").unwrap(), None);
    assert_eq!(store.put_record("user", "zoe", &json!({ "name": "Zoë" }), Some(0)).unwrap(), 1);
    assert_eq!(store.put_record("group", "zoe", &json!([1]), None).unwrap(), 1);
    assert_eq!(store.put_record("user", "zoe", &json!({ "name": "Zoe" }), Some(1)).unwrap(), 2);
    assert_eq!(store.put_record("user", "Max", &json!(null), None).unwrap(), 1);
    // Who has read what is no longer there changes nothing, nor does who believes that nothing is there.
    for expected in [0, 1, 3] {
        let refused = store.put_record("user", "zoe", &json!("mine"), Some(expected)).unwrap_err();
        assert!(matches!(refused, StoreError::RecordChanged { is: 2, .. }), "{refused}");
    }
    assert!(matches!(store.put_record("user", "new", &json!(1), Some(4)), Err(StoreError::RecordChanged { is: 0, .. })));
    let all: Vec<_> =
        store.records("user").unwrap().into_iter().map(|(name, record)| (name, record.version, record.value)).collect();
    assert_eq!(all, [("Max".to_owned(), 1, json!(null)), ("zoe".to_owned(), 2, json!({ "name": "Zoe" }))]);
    assert!(store.drop_record("user", "zoe").unwrap() && !store.drop_record("user", "zoe").unwrap());
    assert_eq!(store.record("group", "zoe").unwrap().map(|record| record.value), Some(json!([1])));
    // Of many who want the next version one gets it.
    let won = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                if store.put_record("group", "zoe", &json!([2]), Some(1)).is_ok() {
                    won.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(won.into_inner(), 1);
}

fn changes(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    store.put_book(&shift_book("B")).unwrap();
    let begin = store.last_change().unwrap();
    assert_eq!(store.wait_for_change(begin, Duration::ZERO).unwrap(), begin);
    let at = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| store.wait_for_change(begin, Duration::from_secs(60)).unwrap());
        let at = store.post(entry("A", "Zoe", "s", "one"), vec![], "zoe").unwrap();
        assert!(waiting.join().unwrap() > begin);
        at
    });
    let content = Content { text: "two".into(), ..store.entry(&at).unwrap().content };
    store.edit(&at, content, vec![], "zoe", None).unwrap();
    let to = store.move_to(&at, "B", "zoe", false).unwrap();
    store.delete(&to, "zoe", false).unwrap();
    // What was refused is no change.
    assert!(store.post(entry("None", "Zoe", "s", "x"), vec![], "zoe").is_err());
    let told = store.changes(begin, 100).unwrap();
    let what: Vec<_> = told.iter().map(|change| (change.at.book.as_str(), change.at.id, change.what)).collect();
    use Change::{Deleted, Edited, Moved, Posted};
    let (here, there) = (("A", 1, Moved), ("B", 1, Moved));
    assert_eq!((what[..2].to_vec(), what[4..].to_vec()), (vec![("A", 1, Posted), ("A", 1, Edited)], vec![("B", 1, Deleted)]));
    assert!(what.len() == 5 && what.contains(&here) && what.contains(&there), "{what:?}");
    assert!(told.windows(2).all(|pair| pair[0].number < pair[1].number) && told[0].number > begin);
    assert_eq!(store.changes(told[2].number, 1).unwrap(), told[3..4]);
    assert_eq!(store.last_change().unwrap(), told[4].number);
}

/// Whatever the store, its backup is a directory.
fn backups(store: &dyn Store) {
    let open = |dir: &std::path::Path| SqliteStore::open(dir).unwrap();
    store.put_book(&shift_book("A")).unwrap();
    let upload = store.upload(&mut &b"bytes"[..], MAX_ATTACHMENT).unwrap();
    let mut new = entry("A", "Zoe", "s", "kept");
    new.content.attachments = vec![upload.attachment("a.txt", Time(1))];
    let at = store.post(new, vec![upload], "zoe").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("copy");
    store.backup(&target, &mut |_, _| true).unwrap();
    store.post(entry("A", "Zoe", "s", "later"), vec![], "zoe").unwrap();
    let copy = open(&target);
    assert_eq!(copy.entry(&at).unwrap(), store.entry(&at).unwrap());
    assert_eq!((ids(&copy, "kept"), ids(&copy, "later")), (vec![1], vec![]));
    assert_eq!(copy.check(&mut |_, _| true).unwrap(), [""; 0]);
    drop(copy);
    // Once more brings it up to date.
    store.backup(&target, &mut |_, _| true).unwrap();
    assert_eq!(ids(&open(&target), "later"), [2]);
    // Others go on writing: the copy is of one moment.
    for _ in 0..6 {
        store.post(entry("A", "Zoe", "large", &"... ".repeat(300_000)), vec![], "zoe").unwrap();
    }
    let mut steps = 0;
    let target = dir.path().join("moment");
    let progress = &mut |_, _| {
        steps += 1;
        store.post(entry("A", "Zoe", "s", "meanwhile"), vec![], "zoe").is_ok()
    };
    store.backup(&target, progress).unwrap();
    assert!(steps > 1, "it was long enough for somebody to write meanwhile");
    let copy = open(&target);
    assert_eq!((copy.books().unwrap()[0].entries, ids(&copy, "meanwhile")), (8, vec![]));
    assert_eq!(copy.check(&mut |_, _| true).unwrap(), [""; 0]);
    drop(copy);
    // Not onto what somebody uses.
    let target = dir.path().join("copy");
    let other = open(&target);
    assert!(matches!(store.backup(&target, &mut |_, _| true), Err(StoreError::Directory { .. })));
    assert!(matches!(other.backup(&target, &mut |_, _| true), Err(StoreError::Directory { .. })));
    drop(other);
    assert!(store.backup(&target, &mut |_, _| false).is_err());
    assert_eq!(ids(&open(&target), "later"), [2]);
}

/// A file that comes with what is not taken is nobody's, and does not stay.
fn what_is_not_taken_leaves_nothing(store: &dyn Store) {
    store.put_book(&shift_book("A")).unwrap();
    let import = |digest: u8, text: &str, bytes: &[u8]| {
        let upload = store.upload(&mut &*bytes, MAX_ATTACHMENT).unwrap();
        let mut new = entry("A", "Zoe", "s", text);
        new.content.attachments = vec![upload.attachment("a.txt", Time(1))];
        let imported = Imported { id: 5, entry: new, thread: 5, digest: [digest; 16], draft: None };
        store.import("A", vec![imported], vec![upload], "elog").unwrap()[0]
    };
    assert_eq!(import(1, "first", b"first bytes"), ImportOutcome::New);
    let at = EntryRef::new("A", 5);
    let here = store.entry(&at).unwrap().content;
    store.edit(&at, Content { text: "changed here".to_owned(), ..here }, vec![], "max", None).unwrap();
    assert_eq!(import(2, "changed there", b"other bytes"), ImportOutcome::Conflict);
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
    // What others have stays, and what comes again is taken.
    assert_eq!(import(3, "changed there again", b"first bytes"), ImportOutcome::Conflict);
    assert_eq!(store.entry(&at).unwrap().content.text, "changed here");
    let upload = store.upload(&mut &b"other bytes"[..], MAX_ATTACHMENT).unwrap();
    let mut new = entry("A", "Zoe", "s", "posted");
    new.content.attachments = vec![upload.attachment("b.txt", Time(1))];
    store.post(new, vec![upload], "zoe").unwrap();
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

/// The suite for one store: `with` gives an empty one to a test.
macro_rules! conforms {
    ($store:ident, $with:expr $(, $ignored:meta)?) => {
        mod $store {
            use super::*;

            conforms!(@each ($with) ($($ignored)?) posting_and_editing threads_deletion_and_moving attachments two_people_and_one_entry
                drafts_and_saved_searches queries words_of_any_length_and_number
                more_entries_of_a_second_than_it_has_places pages_are_bounded_in_bytes pages_and_orders an_abandoned_search_ends
                many_at_once checking_beside_writers importing what_is_not_taken_leaves_nothing records changes
                backups several_posts_are_one a_lock_is_handed_on files_of_one_name_and_second_have_addresses_of_their_own);
        }
    };
    (@each ($with:expr) $ignored:tt $($name:ident)*) => {
        $(conforms!(@one ($with) $ignored $name);)*
    };
    (@one ($with:expr) ($($ignored:meta)?) $name:ident) => {
        #[test]
        $(#[$ignored])?
        fn $name() {
            $with(super::$name);
        }
    };
}

fn in_directory(test: impl FnOnce(&dyn Store)) {
    let dir = tempfile::tempdir().unwrap();
    test(&SqliteStore::open(dir.path()).unwrap());
}

fn in_database(test: impl FnOnce(&dyn Store)) {
    let server = server::server();
    test(&server.store());
}

conforms!(sqlite, in_directory);
conforms!(postgres, in_database, ignore = "needs PostgreSQL: make test-all");
