//! Searches by ELOG's addresses: every parameter, pages, orders, ranges.

mod support;

use support::site::{TestSite, WRITER};
use tampu_logbook::search::Stop;
use tampu_logbook::store::{Entries, Imports};

const CONFIG: &str = "[global]\nTime format = %Y-%m-%d %H:%M\n[shift]\nAttributes = Author, Type, System, Run number, Energy, Done, Day, Subject\n\
    Options Type = Routine, Problem, Problem Fixed\nMOptions System = RICH1, HLT, DAQ\nType Energy = numeric\nOptions Done = boolean\nType Day = datetime\n\
    [other]\nAttributes = Author, Subject\n";

/// Entries 1 to 4 of `shift`, 1 of `other`.
fn filled() -> TestSite {
    let site = TestSite::new(CONFIG);
    let posts: [(&str, &[&str], &str); 4] = [
        (
            "2026-01-10T08:00:00",
            &["Author=Anna Bauer", "Type=Routine", "System=RICH1 | HLT", "Run number=80123", "Energy=450", "Subject=HV trip"],
            "Channel 7 of LHC:MAG-01/cur tripped\nat 08:15",
        ),
        (
            "2026-02-10T08:00:00",
            &[
                "Author=Boris Costa",
                "Type=Problem",
                "System=HLT",
                "Run number=80124",
                "Energy=900",
                "Day=1767225600",
                "Subject=Farm",
            ],
            "Node a/b is out of memory (80% full)",
        ),
        (
            "2026-03-10T08:00:00",
            &["Author=anna Novak", "Type=Problem Fixed", "System=DAQ", "Done=1", "Subject=Anna's fix"],
            "HV back",
        ),
        (
            "2026-03-10T23:59:59",
            &["Author=Zoe Quartz", "Type=Routine", "Day=1767312000", "Subject=quiet [night]"],
            "nothing \\ to tell",
        ),
    ];
    for (date, said, text) in posts {
        site.post("shift", date, said, text);
    }
    site.post("other", "2026-04-01T00:00:00", &["Author=Anna Elsewhere", "Subject=HV"], "HV in another book");
    site
}

#[test]
fn parameters_mean_what_elog_means() {
    let site = filled();
    for (query, expected) in [
        ("", &[1, 2, 3, 4][..]),
        ("subtext=HV", &[3]),
        ("subtext=HV&sall=1", &[1, 3]),
        ("subtext=hv&casesensitive=1", &[]),
        ("subtext=HV&casesensitive=1", &[3]),
        ("subtext=tripped.at", &[1]),
        ("subtext=^HV+back%24", &[3]),
        ("subtext=^at", &[]),
        ("subtext=a%2Fb", &[2]),
        ("subtext=LHC%3AMAG-01%2Fcur", &[1]),
        ("subtext=%5B%5B%3Adigit%3A%5D%5D%7B2%7D%25", &[2]),
        ("subtext=%5C%5C", &[4]),
        ("subtext=channel+%5B67%5D|memory", &[1, 2]),
        ("Author=anna", &[1, 3]),
        ("Author=^Anna&casesensitive=1", &[1]),
        ("author=quartz", &[4]),
        ("Type=Problem", &[2, 3]),
        ("Type=^Problem%24", &[2]),
        ("Run+number=8012%5B34%5D", &[1, 2]),
        // ELOG ignores a name with underscores in place of its blanks.
        ("Run_number=80123", &[1, 2, 3, 4]),
        ("System=HLT", &[1, 2]),
        ("System_0=RICH1&System_2=DAQ", &[1, 3]),
        ("System=HLT&Author=anna", &[1]),
        ("Energy=%3E500", &[2]),
        ("Energy=%3C%3D450", &[1]),
        ("Done=1", &[3]),
        ("Subject=%5C%5Bnight%5C%5D", &[4]),
        ("ya=2026&ma=2", &[2, 3, 4]),
        ("ya=2026&ma=2&yb=2026&mb=2", &[2]),
        ("ya=2026&ma=3&da=10&yb=2026&mb=3&db=10", &[3, 4]),
        ("ya=2026&ma=3&da=10&ha=8&na=0&ca=1", &[4]),
        ("yb=2026&mb=3&db=10&hb=8&nb=0&cb=0", &[1, 2, 3]),
        ("ma=March&ya=26", &[3, 4]),
        ("yb=2025", &[]),
        // Day is attribute 6.
        ("y6a=2026&m6a=1&d6a=2", &[4]),
        ("y6b=2026&m6b=1&d6b=1", &[2]),
        ("reverse=1", &[4, 3, 2, 1]),
        ("REVERSE=1", &[4, 3, 2, 1]),
        ("sort=Subject", &[3, 2, 1, 4]),
        ("rsort=Subject", &[4, 1, 2, 3]),
        ("sort=Subject&reverse=1", &[4, 1, 2, 3]),
        ("sort=Energy", &[3, 4, 1, 2]),
        ("rsort=ID", &[4, 3, 2, 1]),
        ("sort=Nonsense", &[1, 2, 3, 4]),
        ("attach=1&printable=1", &[1, 2, 3, 4]),
        ("Coffee=strong&cmd=Search", &[1, 2, 3, 4]),
    ] {
        let answer = site.get(&format!("/shift/?{query}"));
        assert_eq!((answer.status.as_u16(), answer.ids()), (200, expected.to_vec()), "{query}");
    }
}

#[test]
fn all_books_of_a_group_are_searched() {
    let site = filled();
    let answer = site.get("/shift/?all=1&subtext=HV&sall=1");
    let links: Vec<String> =
        answer.page().all("tr").iter().filter_map(|row| row.all("td a").first().map(|a| a.get("href").to_owned())).collect();
    assert_eq!(
        links,
        ["../shift/1?all=1&subtext=HV&sall=1", "../shift/3?all=1&subtext=HV&sall=1", "../other/1?all=1&subtext=HV&sall=1"]
    );
    assert!(answer.page().texts("th.listtitle").iter().any(|title| title == "Logbook"));
    // A search omits books that the caller may not read.
    let mut caller = site.person("kim", &WRITER);
    caller.rights.0.remove("other");
    assert_eq!(site.ask(&caller, "/shift/?all=1&subtext=HV&sall=1", &[]).ids(), [1, 3]);
    let off = TestSite::new("[a]\nSearch all logbooks = 0\n[b]\n");
    off.post("b", "2026-01-01T00:00:00", &["Subject=x"], "x");
    assert_eq!(off.get("/a/?all=1&subtext=x").ids(), [0; 0]);
}

#[test]
fn what_cannot_be_searched_is_told() {
    let site = filled();
    for (query, told) in [
        ("subtext=%28", "Invalid regular expression \"(\": Unmatched ( or )"),
        ("Author=%5B", "Invalid regular expression"),
        ("subtext=a%7B40000%7D", "Invalid regular expression"),
        ("ya=2026&ma=2&da=30", "Invalid date"),
        ("ya=nonsense", "Invalid date"),
        ("yb=99999999999999999999", "Invalid date"),
    ] {
        let answer = site.get(&format!("/shift/?{query}"));
        assert_eq!(answer.status, 404, "{query}");
        assert!(answer.error().contains(told), "{query}: {}", answer.error());
    }
    // A costly expression is rejected or ends within its limits.
    let bomb = site.get("/shift/?subtext=%28%28a%7B200%7D%29%7B200%7D%29%7B200%7D");
    assert_eq!(bomb.status, 404, "{}", bomb.body);
}

#[test]
fn empty_parameters_are_taken_out_of_the_address() {
    let site = filled();
    let answer = site.get("/shift/?Author=&subtext=HV&Type=&npp=20");
    assert_eq!((answer.status.as_u16(), answer.location.as_str()), (302, "http://site.test:8080/shift/?subtext=HV&npp=20"));
    let answer = site.get("/shift/page2?subtext=");
    assert_eq!(answer.location, "http://site.test:8080/shift/page2");
}

/// Thirty entries, a minute apart.
fn thirty(more: &str) -> TestSite {
    let site = TestSite::new(&format!("[b]\nAttributes = Author, Subject\n{more}"));
    for nth in 1..=30 {
        let author = if nth % 3 == 0 { "Author=Zoe" } else { "Author=Kim" };
        site.post("b", &format!("2026-01-01T00:{nth:02}:00"), &[author, &format!("Subject=S{:02}", 31 - nth)], "text");
    }
    site
}

fn range(from: u32, to: u32) -> Vec<u32> {
    if from <= to { (from..=to).collect() } else { (to..=from).rev().collect() }
}

#[test]
fn pages_are_numbered_as_elog_numbers_them() {
    let site = thirty("Entries per page = 8\n");
    for (path, expected) in [
        // The last page is shown first, with the entries that remain after the full pages.
        ("/b/", range(25, 30)),
        ("/b/page1", range(1, 8)),
        ("/b/page2", range(9, 16)),
        ("/b/page4", range(25, 30)),
        ("/b/page9", range(25, 30)),
        ("/b/page-1", range(25, 30)),
        ("/b/page-2", range(17, 24)),
        ("/b/page2?npp=10", range(11, 20)),
        ("/b/?npp=7", range(29, 30)),
        ("/b/?npp=0", range(30, 30)),
        ("/b/page", range(1, 30)),
        ("/b/page?Author=Zoe", vec![3, 6, 9, 12, 15, 18, 21, 24, 27, 30]),
        ("/b/last3", range(28, 30)),
        ("/b/last99", range(1, 30)),
        ("/b/past7", vec![]),
        ("/b/past-12", vec![]),
        ("/b/past9999", range(1, 30)),
        ("/b/?last=9999", range(25, 30)),
        ("/b/?last=1", vec![]),
        ("/b/?id=12", range(9, 16)),
        ("/b/?id=30", range(25, 30)),
        ("/b/?id=1", range(1, 8)),
        ("/b/page1?reverse=1", range(30, 23)),
        ("/b/?reverse=1", range(30, 23)),
        ("/b/?reverse=1&id=22", range(22, 15)),
        ("/b/page1?sort=Subject", range(30, 23)),
        // As in elogd, a list in ascending order begins with its last page.
        ("/b/?sort=Subject", range(6, 1)),
        ("/b/page2?sort=Subject", range(22, 15)),
        ("/b/page2?Author=Kim", vec![13, 14, 16, 17, 19, 20, 22, 23]),
    ] {
        // Twice, because positions of pages are cached.
        for pass in ["first", "second"] {
            assert_eq!(site.get(path).ids(), expected, "{path}, {pass}");
        }
    }
    let page = site.get("/b/page2").page();
    let links = page.one("nav.pagelinks");
    assert_eq!(links.text(), "Goto page Previous 1 2 3 4 All Next");
    assert_eq!(
        links.all("a").iter().map(|link| link.get("href")).collect::<Vec<_>>(),
        ["page1", "page1", "page3", "page4", "page", "page3"]
    );
    assert_eq!(site.get("/b/?id=999").error(), "This entry has been deleted, or never existed: there is no entry b/999");
}

#[test]
fn the_newest_come_first_where_the_book_says_so() {
    let site = thirty("Entries per page = 8\nReverse sort = 1\n");
    assert_eq!(site.get("/b/").ids(), range(30, 23));
    assert_eq!(site.get("/b/?reverse=0").ids(), range(25, 30));
    assert_eq!(site.get("/b/last2").ids(), [30, 29]);
}

#[test]
fn pages_stay_right_when_entries_come() {
    let site = thirty("Entries per page = 8\nReverse sort = 1\n");
    assert_eq!(site.get("/b/page2").ids(), range(22, 15));
    assert_eq!(site.get("/b/page3").ids(), range(14, 7));
    site.post("b", "2026-01-02T00:00:00", &["Author=Kim"], "new");
    // The number of entries is read again from time to time; cached positions are then dropped.
    let begun = std::time::Instant::now();
    while site.get("/b/page2").ids() != range(23, 16) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", site.get("/b/page2").ids());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(site.get("/b/page3").ids(), range(15, 8));
}

#[test]
fn deep_pages_are_found_from_the_nearer_end() {
    let site = TestSite::new("[b]\nAttributes = Subject\n");
    let day = 86_400_000_000_000_i64;
    let batch: Vec<tampu_logbook::store::Imported> = (1..=5000_u32)
        .map(|id| {
            let mut entry = support::entry("b", "a", &id.to_string(), "x");
            entry.date = Some(tampu_types::Time(i64::from(id) * day));
            tampu_logbook::store::Imported { id, entry, thread: id, digest: [0; 16], draft: None, author: None }
        })
        .collect();
    site.store.import("b", batch, vec![], "test").unwrap();
    site.store.imported().unwrap();
    for (path, first) in [
        ("/b/page150", 2981),
        ("/b/page249", 4961),
        ("/b/page250", 4981),
        ("/b/page249?reverse=1", 40),
        ("/b/page150?reverse=1", 2020),
    ] {
        let ids = site.get(path).ids();
        assert_eq!((ids[0], ids.len()), (first, 20), "{path}");
    }
    assert_eq!(site.get("/b/page").ids().len(), 5000);
    // The page of an entry, in each order; the first one if the search does not find it.
    for (path, first, page) in [
        ("/b/?id=2990", 2981, 150),
        ("/b/?id=2990&reverse=1", 3000, 101),
        ("/b/?sort=ID&id=2990", 2981, 150),
        ("/b/?sort=ID&reverse=1&id=4444", 4460, 28),
        // Subjects are texts, of which 1000 stands after 100 and 1.
        ("/b/?sort=Subject&id=1000", 1, 1),
        ("/b/?sort=Subject&id=999", 981, 250),
        ("/b/?rsort=Subject&id=1", 1015, 250),
        ("/b/?sort=Subject&Subject=%5E49..%24&id=4990", 4980, 5),
        ("/b/?rsort=Subject&Subject=%5E49..%24&id=7", 4999, 1),
    ] {
        let answer = site.get(path);
        let ids = answer.ids();
        assert_eq!((ids[0], ids.len()), (first, 20), "{path}");
        let links = answer.page().one("nav.pagelinks").text();
        assert!(links.split_whitespace().any(|link| link == page.to_string()), "{path}: {links}");
    }
}

#[test]
fn more_than_are_counted_have_pages_from_the_end() {
    let site = TestSite::with("[b]\nAttributes = Author, Subject\nEntries per page = 8\n", |config| config.count_to = 10);
    for nth in 1..=30 {
        site.post("b", &format!("2026-01-01T00:{nth:02}:00"), &["Author=Kim"], "text");
    }
    let answer = site.get("/b/?Author=Kim");
    assert_eq!(answer.ids(), range(23, 30));
    let page = answer.page();
    assert!(page.one("div.told").text().contains("10 entries or more"), "{}", page.one("div.told").text());
    let hrefs: Vec<&str> = page.one("nav.pagelinks").all("a").iter().map(|link| link.get("href")).collect();
    assert_eq!(hrefs, ["page-2?Author=Kim", "page1?Author=Kim"]);
    assert_eq!(site.get("/b/page-2?Author=Kim").ids(), range(15, 22));
    assert_eq!(site.get("/b/page-4?Author=Kim").ids(), range(1, 6));
    assert_eq!(site.get("/b/page2?Author=Kim").ids(), range(9, 16));
}

#[test]
fn last_default_holds_unless_a_range_is_given() {
    let site = TestSite::new("[b]\nAttributes = Subject\nLast default = 31\n");
    site.post("b", "2020-01-01T00:00:00", &["Subject=old"], "old");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    // Two minutes more than a day, so that the last day does not include it.
    let recent = tampu_types::Time::from_unix(now - 86_520, 0).to_acs();
    site.post("b", &recent, &["Subject=new"], "new");
    for (path, expected) in [
        ("/b/", vec![2]),
        ("/b/page1", vec![2]),
        ("/b/?Subject=.", vec![2]),
        ("/b/?last=0", vec![1, 2]),
        ("/b/?last=_all_", vec![1, 2]),
        ("/b/?last=_all_&Subject=_all_", vec![1, 2]),
        ("/b/?last=9999", vec![1, 2]),
        ("/b/?ya=2019", vec![1, 2]),
        ("/b/page", vec![1, 2]),
        ("/b/past-48", vec![2]),
        ("/b/past-2", vec![]),
    ] {
        assert_eq!(site.get(path).ids(), expected, "{path}");
    }
    for (said, expected) in [("Month", vec![2]), ("1", vec![]), ("-- all --", vec![1, 2]), ("some", vec![1, 2])] {
        let mut book = site.store.book("b").unwrap();
        book.elog = vec![("Last default".to_owned(), said.to_owned())];
        site.store.put_book(&book).unwrap();
        assert_eq!(site.get("/b/").ids(), expected, "{said}");
    }
    let mut book = site.store.book("b").unwrap();
    book.elog = vec![("Last default".to_owned(), "31".to_owned())];
    site.store.put_book(&book).unwrap();
    let page = site.get("/b/").page();
    assert_eq!(page.one("div.told span.note").text(), "Of the last 31 days. Show older");
    assert_eq!(page.one("div.told span.note").one("a").get("href"), "./?last=_all_");
    for path in ["/b/?cmd=Find&last=_all_", "/b/?cmd=Find&last=0", "/b/?last=_all_"] {
        book.elog.push(("Quick filter".to_owned(), "Date, Subject".to_owned()));
        site.store.put_book(&book).unwrap();
        let page = site.get(path).page();
        let last = page.one("select[name=last]");
        assert_eq!(
            (last.one("option[selected]").get("value"), last.one("option[selected]").text()),
            ("_all_", "-- all --".to_owned()),
            "{path}"
        );
    }
    assert_eq!(site.get("/b/?Subject=_all_").page().one("form.quickfilter input[name=Subject]").get("value"), "");
}

#[test]
fn times_are_the_sites() {
    use tampu_elog::pages::Zone;
    let site = TestSite::with("[b]\nAttributes = Subject\nTime format = %d.%m.%Y %H:%M\n", |config| {
        config.zone = Zone::named("Europe/Zurich").unwrap();
    });
    site.post("b", "2026-06-30T22:30:00", &["Subject=after midnight"], "x");
    assert_eq!(site.get("/b/?ya=2026&ma=7&da=1").ids(), [1]);
    assert_eq!(site.get("/b/?yb=2026&mb=6&db=30").ids(), [0; 0]);
    assert!(site.get("/b/").page().texts("td.list1").contains(&"01.07.2026 00:30".to_owned()));
}

#[test]
fn a_search_that_nobody_waits_for_ends() {
    let site = filled();
    let caller = site.person("zoe", &WRITER);
    let stop = Stop::default();
    stop.stop();
    let mut nothing: &[u8] = &[];
    let body: &mut (dyn std::io::Read + Send) = &mut nothing;
    let mut request = http::Request::builder().uri("/shift/?subtext=%5B0-9%5D").body(body).unwrap();
    request.extensions_mut().insert(stop);
    let response = site.site.answer(&caller, request);
    let tampu_elog::pages::Body::Bytes(bytes) = response.into_body() else { panic!("a page") };
    assert!(String::from_utf8(bytes).unwrap().contains("The search was ended"));
}
