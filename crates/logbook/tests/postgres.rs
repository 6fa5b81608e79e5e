//! Tests of the database store alone: several hubs, a server that stops and restarts, statements cancelled from outside, and books large enough for several
//! spans of time.

#[path = "support/server.rs"]
mod server;
mod support;

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use server::server;
use support::{entry, found, ids, lasting::Model, shift_book};
use tampu_logbook::{
    book::EntryAttribute,
    entry::{Content, Draft, EntryRef},
    search::{Search, Sort, Start, Stop, Stopped},
    store::{
        Attachments, Changes, Drafts, Entries, ImportOutcome, Imported, Imports, MAX_ATTACHMENT, Maintenance, PagePart, Records,
        Store, StoreError, postgres::PostgresStore, sqlite::SqliteStore,
    },
};
use tampu_types::Time;

/// The directory of temporary files may be memory, and another user's limit.
#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn attachments_are_received_in_the_named_directory() {
    let server = server();
    let directory = tempfile::tempdir().unwrap();
    let store = PostgresStore::open(&server.address(), &server.domain()).unwrap().receiving_in(directory.path());
    store.put_book(&shift_book("A")).unwrap();
    let is_there = || fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let upload = store.upload(&mut &b"a plot"[..], MAX_ATTACHMENT).unwrap();
    assert!(is_there().any(|path| path.starts_with(directory.path())), "{:?}", is_there().collect::<Vec<_>>());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name, so a kill leaves nothing");
    let mut new = entry("A", "Zoe", "s", "with a plot");
    let sha = upload.sha().clone();
    new.content.attachments.push(upload.attachment("plot.png", Time::from_unix(0, 0)));
    store.post(new, vec![upload], "zoe").unwrap();
    let mut bytes = Vec::new();
    store.attachment(&sha).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"a plot");
    let lost = PostgresStore::open(&server.address(), &server.domain()).unwrap().receiving_in(&directory.path().join("gone"));
    assert!(lost.upload(&mut &b"x"[..], MAX_ATTACHMENT).unwrap_err().to_string().contains("gone"));
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn what_one_hub_posts_the_others_find_at_once() {
    let server = server();
    let domain = server.domain();
    let hubs: Vec<PostgresStore> = (0..3).map(|_| PostgresStore::open(&server.address(), &domain).unwrap()).collect();
    hubs[0].put_book(&shift_book("A")).unwrap();
    let all: BTreeSet<u32> = std::thread::scope(|scope| {
        let posting: Vec<_> = hubs
            .iter()
            .enumerate()
            .map(|(nth, hub)| {
                let others = &hubs;
                scope.spawn(move || {
                    let mut given = Vec::new();
                    for n in 0..20 {
                        let text = format!("hub{nth} number{n} fresh{nth}x{n}");
                        let at = hub.post(entry("A", "Zoe", "s", &text), vec![], "zoe").unwrap();
                        for other in others {
                            assert_eq!(ids(other, &format!("\"hub{nth} number{n}\"")), [at.id]);
                            assert_eq!(ids(other, &format!("~esh{nth}x{n} author:zoe")).first(), Some(&at.id));
                        }
                        given.push(at.id);
                    }
                    given
                })
            })
            .collect();
        posting.into_iter().flat_map(|posting| posting.join().unwrap()).collect()
    });
    // No id was used twice, and no id was skipped.
    assert_eq!(all, (1..=60).collect());
    // A change wakes a caller that waits at another hub.
    let begin = hubs[1].last_change().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| hubs[1].wait_for_change(begin, Duration::from_secs(60)).unwrap());
        hubs[2].delete(&EntryRef::new("A", 60), "max", false).unwrap();
        assert!(waiting.join().unwrap() > begin);
    });
    assert_eq!(hubs[0].post(entry("A", "Zoe", "s", "next"), vec![], "zoe").unwrap().id, 61);
    let bytes: Vec<u8> = (0..2_500_000u32).map(|n| (n % 253) as u8).collect();
    let upload = hubs[0].upload(&mut &bytes[..], MAX_ATTACHMENT).unwrap();
    let sha = upload.sha().clone();
    let mut new = entry("A", "Zoe", "s", "with a file");
    new.content.attachments = vec![upload.attachment("a.bin", Time(1))];
    hubs[0].post(new, vec![upload], "zoe").unwrap();
    // Reads at any position, across the ends of its pieces.
    let mut reader = hubs[2].attachment(&sha).unwrap();
    assert_eq!(reader.size(), 2_500_000);
    for (at, length) in [(0, 10), (1_048_570, 20), (2_097_000, 403_000), (2_499_990, 100)] {
        reader.seek(SeekFrom::Start(at)).unwrap();
        let mut read = Vec::new();
        reader.by_ref().take(length).read_to_end(&mut read).unwrap();
        let end = (at + length).min(2_500_000);
        assert!(read == bytes[at as usize..end as usize], "{length} at {at}");
    }
    for hub in &hubs {
        assert_eq!(hub.check(&mut |_, _| true).unwrap(), [""; 0]);
    }
}

/// A server of its own: the other tests' one stays up.
#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_server_that_comes_back_is_used_again() {
    let server = server::Server::start();
    let store = server.store();
    store.put_book(&shift_book("A")).unwrap();
    let first = store.post(entry("A", "Zoe", "s", "before"), vec![], "zoe").unwrap();
    // Several connections of each kind are open.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                found(&store, "before");
                store.entry(&first).unwrap();
            });
        }
    });
    let begin = store.last_change().unwrap();
    store.wait_for_change(begin, Duration::from_millis(1)).unwrap();
    server.end();
    type Call<'a> = &'a dyn Fn() -> Result<(), StoreError>;
    let calls: [(&str, Call<'_>); 3] = [
        ("entry", &|| store.entry(&first).map(drop)),
        ("search", &|| store.search(&Search::default(), &Stop::default()).map(drop)),
        ("post", &|| store.post(entry("A", "Zoe", "s", "lost"), vec![], "zoe").map(drop)),
    ];
    for (what, call) in calls {
        for _ in 0..2 {
            assert!(matches!(call(), Err(StoreError::Lost(_))), "{what} while there is no server");
        }
    }
    server.run();
    for (what, call) in calls {
        // An earlier call reported the loss; this one reconnects.
        call().unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert_eq!((ids(&store, "before"), ids(&store, "lost")), (vec![1], vec![2]));
    assert!(store.wait_for_change(begin, Duration::from_secs(60)).unwrap() > begin);
    // The server restarts while no call runs: one call fails, the next one succeeds.
    server.end();
    server.run();
    for (what, call) in calls {
        let failed = (0..3).filter(|_| call().is_err()).count();
        assert!(failed <= 1, "{what} failed {failed} times");
    }
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

/// Counts the statements on words that wait for a lock.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%word%'";

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_statement_of_an_abandoned_search_is_ended() {
    let server = server();
    let domain = server.domain();
    let store = PostgresStore::open(&server.address(), &domain).unwrap();
    store.put_book(&shift_book("A")).unwrap();
    store.post(entry("A", "Zoe", "s", "text"), vec![], "zoe").unwrap();
    // Another session locks the table, so that the statement does not end by itself.
    let mut other = postgres::Client::connect(&server.address(), postgres::NoTls).unwrap();
    let mut held = other.transaction().unwrap();
    // A transaction keeps its first view of other sessions; this connection gets a new view with each query.
    let mut watch = postgres::Client::connect(&server.address(), postgres::NoTls).unwrap();
    held.batch_execute(&format!("LOCK TABLE tampu_book_{domain}.word IN ACCESS EXCLUSIVE MODE")).unwrap();
    let stop = Stop::default();
    let search = Search { query: "text".into(), time: Duration::from_secs(60), ..Search::default() };
    let page = std::thread::scope(|scope| {
        let searching = scope.spawn(|| store.search(&search, &stop).unwrap());
        let begun = Instant::now();
        while watch.query_one(WAITING, &[]).unwrap().get::<_, i64>(0) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the search waits for nobody");
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.stop();
        searching.join().unwrap()
    });
    assert_eq!((page.stopped, page.hits.len(), page.next), (Some(Stopped::Abandoned), 0, None));
    let late = Search { query: "text".into(), time: Duration::from_millis(100), ..Search::default() };
    assert_eq!(store.search(&late, &Stop::default()).unwrap().stopped, Some(Stopped::TimeLimit));
    // The server ends their statements.
    let begun = Instant::now();
    while watch.query_one(WAITING, &[]).unwrap().get::<_, i64>(0) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "a statement goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    held.rollback().unwrap();
    assert_eq!(ids(&store, "text"), [1]);
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_database_of_a_later_release_is_left_alone() {
    let server = server();
    let domain = server.domain();
    drop(PostgresStore::open(&server.address(), &domain).unwrap());
    let mut client = postgres::Client::connect(&server.address(), postgres::NoTls).unwrap();
    client.batch_execute(&format!("UPDATE tampu_book_{domain}.layout SET done = 99")).unwrap();
    let error = PostgresStore::open(&server.address(), &domain).unwrap_err();
    assert!(error.to_string().contains("later release"), "{error}");
    let nowhere = PostgresStore::open("host=/nowhere user=x", "demo").unwrap_err();
    assert!(matches!(nowhere, StoreError::Lost(_)), "{nowhere}");
}

/// The hubs remember lists of entries with a word, and each must notice what the other changes.
#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn what_one_hub_remembers_ends_when_another_changes_entries() {
    let server = server();
    let domain = server.domain();
    let hubs: Vec<PostgresStore> = (0..2).map(|_| PostgresStore::open(&server.address(), &domain).unwrap()).collect();
    let mut model = Model::new(&hubs[0]);
    for round in 0..60 {
        let what = model.change(&hubs[round % 2], round % 20 == 0);
        for hub in &hubs {
            model.compare(hub, &format!("round {round}: {what}"));
        }
    }
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_database_of_a_former_release_learns_to_mark_changes() {
    let server = server();
    let domain = server.domain();
    let store = PostgresStore::open(&server.address(), &domain).unwrap();
    let mut model = Model::new(&store);
    for _ in 0..2 {
        model.change(&store, true);
    }
    assert!(model.entries() > 1000, "lists of words are long");
    drop(store);
    // The layout before its changes were marked.
    let mut client = postgres::Client::connect(&server.address(), postgres::NoTls).unwrap();
    client
        .batch_execute(&format!(
            "SET search_path TO tampu_book_{domain};
            DROP FUNCTION mark_taken CASCADE; DROP FUNCTION mark_between CASCADE; ALTER TABLE book DROP COLUMN rewrites;
            UPDATE layout SET done = 7"
        ))
        .unwrap();
    let store = PostgresStore::open(&server.address(), &domain).unwrap();
    for round in 0..20 {
        let what = model.change(&store, false);
        model.compare(&store, &format!("round {round}: {what}"));
    }
}

/// As after `pg_restore` into another server, whose transactions have smaller numbers.
#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn marks_of_another_server_and_a_renamed_schema_are_adopted() {
    let server = server();
    let (former, domain) = (server.domain(), server.domain());
    let mut model = Model::new(&PostgresStore::open(&server.address(), &former).unwrap());
    let mut client = postgres::Client::connect(&server.address(), postgres::NoTls).unwrap();
    client
        .batch_execute(&format!(
            "UPDATE tampu_book_{former}.book SET rewrites = txid_current() + 1000000;
            ALTER SCHEMA tampu_book_{former} RENAME TO tampu_book_{domain}"
        ))
        .unwrap();
    let store = PostgresStore::open(&server.address(), &domain).unwrap();
    let left = client.query_one(&format!("SELECT max(rewrites) FROM tampu_book_{domain}.book"), &[]).unwrap();
    assert_eq!(left.get::<_, i64>(0), 0);
    for round in 0..20 {
        let what = model.change(&store, false);
        model.compare(&store, &format!("round {round}: {what}"));
    }
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn many_open_new_logbooks_at_the_same_time() {
    let server = server();
    let domain = server.domain();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let store = PostgresStore::open(&server.address(), &domain).unwrap();
                store.put_book(&shift_book("A")).unwrap();
                // All threads post new words, attributes and options.
                let mut new = entry("A", "Zoe", "s", "the very same new words of all");
                new.content.attributes.push(EntryAttribute::new("System", "Magnet"));
                new.content.attributes.push(EntryAttribute::new("Place", "point 8"));
                store.post(new, vec![], "zoe").unwrap();
            });
        }
    });
    let store = PostgresStore::open(&server.address(), &domain).unwrap();
    assert_eq!(ids(&store, "\"very same\" ~agne system:magnet"), [6, 5, 4, 3, 2, 1]);
    assert_eq!(store.books().unwrap().len(), 1);
    assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_large_book_is_searched_span_by_span() {
    let server = server();
    let dir = tempfile::tempdir().unwrap();
    let stores: [Box<dyn Store>; 2] = [Box::new(SqliteStore::open(dir.path()).unwrap()), Box::new(server.store())];
    let total = 6000u32;
    let (mut date, mut batches) = (1_000_000_000, Vec::new());
    for id in 1..=total {
        // Bursts of one second, days, and years without entries; the order of ids differs from the order of dates.
        date += [0, 0, 1, 40, 3000, 90_000][(id * 7 % 6) as usize] + if id % 1500 == 0 { 100_000_000 } else { 0 };
        let text = format!(
            "common {} third{} n{id} {}",
            if id % 2 == 0 { "even" } else { "odd" },
            id % 3,
            if id % 997 == 0 { "rare\tword\\n" } else { "usual" }
        );
        let id = 1 + (id * 7919) % 6007;
        let mut new = entry("A", ["Zoe", "Max"][(id % 2) as usize], &format!("subject {}", id % 50), &text);
        new.date = Some(Time(date * 1_000_000_000));
        batches.push(Imported { id, thread: id, digest: [id as u8; 16], entry: new, draft: None, author: None });
    }
    for store in &stores {
        store.put_book(&shift_book("A")).unwrap();
        for batch in batches.chunks(700) {
            store.import("A", batch.to_vec(), vec![], "import").unwrap();
        }
        store.imported().unwrap();
    }
    let queries = [
        "",
        "common",
        "even third1",
        "rare",
        "\"rare word\"",
        "-even",
        "-even -third1",
        "even OR rare",
        "n17",
        "n1*",
        "~are",
        "third0 -(even OR rare)",
        "/n12\\d5 /",
        "author:max subject:=\"subject 7\"",
        "since:2003 until:2006 odd",
        "nothing",
        "\"common even third0\"",
        "until:2001-10 third2",
    ];
    for query in queries {
        for (sort, descending) in [
            (Sort::Date, true),
            (Sort::Date, false),
            (Sort::Id, true),
            (Sort::Attribute("Subject".into()), false),
            (Sort::Attribute("Author".into()), true),
        ] {
            let search = Search {
                query: query.into(),
                sort: sort.clone(),
                descending,
                limit: 300,
                count_to: 100_000,
                count_looks: 100_000,
                time: Duration::from_secs(60),
                ..Search::default()
            };
            let mut starts = [Start::First, Start::First];
            for page in 0..40 {
                let pages: Vec<_> = stores
                    .iter()
                    .zip(&starts)
                    .map(|(store, start)| {
                        let search = Search { start: start.clone(), ..search.clone() };
                        let page = store.search(&search, &Stop::default()).unwrap();
                        let ids: Vec<u32> = page.hits.iter().map(|hit| hit.entry.at.id).collect();
                        (ids, page.count, page.stopped, page.next)
                    })
                    .collect();
                let (a, b) = (&pages[0], &pages[1]);
                assert_eq!((&a.0, a.1, a.2), (&b.0, b.1, b.2), "{query:?} by {sort:?} {descending}, page {page}");
                let (Some(a), Some(b)) = (a.3.clone(), b.3.clone()) else { break };
                starts = [Start::After(a), Start::After(b)];
                // A few pages of the long searches show as much as all pages.
                if page == 3 && descending {
                    break;
                }
            }
        }
    }
    assert_eq!(stores[1].check(&mut |_, _| true).unwrap(), [""; 0]);
    assert_eq!(stores[0].digests("A").unwrap(), stores[1].digests("A").unwrap());
    // A repeated import changes nothing.
    let again = stores[1].import("A", batches[..50].to_vec(), vec![], "import").unwrap();
    assert!(again.iter().all(|outcome| *outcome == tampu_logbook::store::ImportOutcome::Same));
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn any_text_is_kept_as_it_is() {
    let server = server();
    let store = server.store();
    store.put_book(&shift_book("A")).unwrap();
    for text in ["a\0b nul", "\u{1}\"odd\"", "\\N", "tab\tand\r\nline", "😀 装置停止"] {
        let at = store.post(entry("A", "Zoe", "s", text), vec![], "zoe").unwrap();
        assert_eq!(store.entry(&at).unwrap().content.text, text);
        let imported =
            Imported { id: at.id + 100, thread: at.id + 100, entry: entry("A", "Zoe", "s", text), ..Imported::default() };
        store.import("A", vec![imported], vec![], "import").unwrap();
        assert_eq!(store.entry(&EntryRef::new("A", at.id + 100)).unwrap().content.text, text);
        store.delete(&EntryRef::new("A", at.id + 100), "zoe", false).unwrap();
    }
    // More words than the index can count positions of, and a phrase at the end.
    let long: String = (0..200_000).map(|n| format!("w{} ", n % 3000)).collect::<String>() + "the end";
    let at = store.post(entry("A", "Zoe", "s", &long), vec![], "zoe").unwrap();
    assert_eq!((ids(&store, "\"the end\""), ids(&store, "\"w2999 w0 w1\"")), (vec![at.id], vec![at.id]));
}

/// The variables with the database's address, set only in the other process.
const ADDRESS: &str = "TAMPU_TEST_ADDRESS";
const DOMAIN: &str = "TAMPU_TEST_DOMAIN";

/// Not a test by itself: what the other process does.
#[test]
fn be_the_one_who_posts() {
    let (Ok(address), Ok(domain)) = (std::env::var(ADDRESS), std::env::var(DOMAIN)) else { return };
    let store = PostgresStore::open(&address, &domain).unwrap();
    for n in 0..u32::MAX {
        let bytes: Vec<u8> = (0..1_200_000 + n).map(|at| (at * 31 + n * 7) as u8).collect();
        let upload = store.upload(&mut &bytes[..], MAX_ATTACHMENT).unwrap();
        let mut new = entry("A", "Zoe", &format!("number {n}"), "posted until the end");
        new.content.attachments = vec![upload.attachment("data.bin", Time(1))];
        let at = store.post(new, vec![upload], "zoe").unwrap();
        println!("posted {}", at.id);
    }
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_hub_that_is_killed_leaves_entries_whole() {
    let server = server();
    let domain = server.domain();
    let store = PostgresStore::open(&server.address(), &domain).unwrap();
    store.put_book(&shift_book("A")).unwrap();
    let mut last = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "be_the_one_who_posts", "--nocapture"])
            .env(ADDRESS, server.address())
            .env(DOMAIN, &domain)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut posted = out.lines().map_while(Result::ok).filter_map(|line| line.strip_prefix("posted ")?.parse::<u32>().ok());
        for _ in 0..1 + round % 3 {
            last = posted.next().expect("it posts until it is killed");
        }
        std::thread::sleep(Duration::from_millis(3 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        last = posted.last().unwrap_or(last);
        // The server detects the kill and rolls back the uncommitted transaction; the next post waits for that.
        let own = store.post(entry("A", "Max", "s", "own"), vec![], "max").unwrap().id;
        assert!((last + 1..=last + 2).contains(&own), "{last} answered, then {own}");
        assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0], "after round {round}");
        assert_eq!(store.books().unwrap()[0].entries, u64::from(own));
    }
}

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_backup_goes_into_another_database() {
    let server = server();
    let store = server.store();
    store.put_book(&shift_book("A")).unwrap();
    store.put_book(&shift_book("Other")).unwrap();
    let bytes: Vec<u8> = (0..2_500_000u32).map(|at| ((at * 7) >> 3) as u8).collect();
    for (nth, bytes) in [&bytes[..], b"", b"short"].into_iter().enumerate() {
        let upload = store.upload(&mut &*bytes, MAX_ATTACHMENT).unwrap();
        let mut new = entry("A", "Zoe", "s", &format!("a\tb\\c\0 number{nth} Müller"));
        new.content.attachments = vec![upload.attachment("a.txt", Time(1))];
        store.post(new, vec![upload], "zoe").unwrap();
    }
    let one = EntryRef::new("A", 1);
    let content = Content { text: "changed".to_owned(), ..store.entry(&one).unwrap().content };
    store.edit(&one, content, vec![], "max", None).unwrap();
    store.delete(&EntryRef::new("A", 3), "zoe", false).unwrap();
    store.copy(&one, "Other", "zoe", false).unwrap();
    let imported = |draft: Option<&str>, id| {
        let draft = draft.map(str::to_owned);
        Imported { id, entry: entry("A", "Ann", "s", "imported"), thread: id, digest: [7; 16], draft, author: None }
    };
    store.import("A", vec![imported(None, 9), imported(Some("ann"), 10)], vec![], "elog").unwrap();
    let draft = Draft {
        owner: "max".to_owned(),
        book: "A".to_owned(),
        saved: Time(5),
        number: 0,
        edits: None,
        parent: None,
        content: Content::default(),
    };
    store.save_draft(&draft).unwrap();
    store.save_search("max", "mine", "HV \"trip\"").unwrap();
    store.put_record("user", "max", &serde_json::json!({ "login": "max" }), Some(0)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    store.backup(dir.path(), &mut |_, _| true).unwrap();
    let source = SqliteStore::open(dir.path()).unwrap();

    let other = server.store();
    // Records that a hub creates for itself do not count.
    other.put_record("site", "secret", &serde_json::json!("x"), Some(0)).unwrap();
    assert!(other.restore(&source, &mut |_, _| false).is_err(), "ended before its end");
    assert_eq!(other.books().unwrap(), []);
    let mut told = Vec::new();
    other
        .restore(&source, &mut |done, total| {
            told.push((done, total));
            true
        })
        .unwrap();
    assert!(
        told.windows(2).all(|two| two[0].0 <= two[1].0) && told.last().is_some_and(|(done, total)| done == total),
        "{told:?}"
    );
    assert_eq!(other.check(&mut |_, _| true).unwrap(), [""; 0]);
    assert_eq!(other.books().unwrap(), store.books().unwrap());
    for query in ["", "müller", "number1", "~umber", "author:ann", "has:attachment"] {
        assert_eq!(found(&other, query), found(&store, query), "{query}");
    }
    for at in [&one, &EntryRef::new("A", 3), &EntryRef::new("A", 9), &EntryRef::new("Other", 1)] {
        assert_eq!(other.history_page(at, PagePart::default()).unwrap(), store.history_page(at, PagePart::default()).unwrap());
    }
    assert!(matches!(other.entry(&EntryRef::new("A", 3)), Err(StoreError::Gone(_))));
    let sha = other.entry(&one).unwrap().content.attachments[0].sha.clone().unwrap();
    let mut read = Vec::new();
    other.attachment(&sha).unwrap().read_to_end(&mut read).unwrap();
    assert!(read == bytes);
    assert_eq!(
        (other.drafts("max").unwrap(), other.drafts("ann").unwrap()),
        (store.drafts("max").unwrap(), store.drafts("ann").unwrap())
    );
    assert_eq!(other.saved_searches("max").unwrap(), store.saved_searches("max").unwrap());
    assert_eq!(other.record("user", "max").unwrap(), store.record("user", "max").unwrap());
    assert_eq!((other.record("site", "secret").unwrap(), other.digests("A").unwrap()), (None, store.digests("A").unwrap()));
    // The copy continues where the original was: no number is reused, and imported entries are known.
    assert_eq!(
        other.import("A", vec![imported(None, 9), imported(Some("ann"), 10)], vec![], "elog").unwrap(),
        [ImportOutcome::Same; 2]
    );
    assert_eq!(other.post(entry("A", "Zoe", "s", "next"), vec![], "zoe").unwrap().id, 11);
    assert_eq!(other.save_draft(&draft).unwrap(), store.save_draft(&draft).unwrap());
    assert!(matches!(other.restore(&source, &mut |_, _| true), Err(StoreError::Directory { .. })));
}
