//! Attributes, transfers, the site, links and the timeline over HTTP, with real publishers and senders.

use std::time::Instant;

use serde_json::{Value, json};

use crate::{
    bulk::beside::{Beside, send},
    console_log::Console,
    events::Publisher,
    site::PATIENCE,
};

const NAME: &str = "lab/vacuum/1/pressure";

/// Repeats a request until its answer satisfies the test.
#[track_caller]
fn until(console: &Console, path: &str, satisfied: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = console.get(path);
        if satisfied(&answer) {
            return answer;
        }
        assert!(Instant::now() < end, "{path}: {answer}");
    }
}

fn count(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len)
}

#[test]
fn attributes_are_listed_read_and_have_a_history_that_keeps_peaks() {
    let console = Console::with("[events]\nkeep = [\"*/vacuum/*/pressure\"]\n");
    let mut pump = Publisher::start(&console.site, &[NAME, "--unit", "mbar", "--user", "--process", "pump"]);
    let _other = Publisher::start(&console.site, &["lab/mast/wind/speed", "--user"]);
    let values = ["1", "2", "90", "3", "-7", "4", "5", "6", "7", "8"];
    values.iter().for_each(|value| pump.say(value));

    let listed = until(&console, "/event/attributes", |answer| answer["total"] == 2);
    assert_eq!((&listed["attributes"][1]["name"], &listed["attributes"][1]["unit"]), (&json!(NAME), &json!("mbar")));
    let first = console.get("/event/attributes?limit=1");
    let second = console.get(&format!("/event/attributes?limit=1&after={}", first["next"].as_str().unwrap()));
    assert_eq!((&second["attributes"][0]["name"], &second["next"]), (&json!(NAME), &Value::Null));
    assert_eq!(console.get("/event/attributes?contains=WIND")["total"], 1);
    assert_eq!(console.get("/event/attributes?pattern=*/vacuum/*")["total"], 1);
    let top = console.get("/event/tree");
    assert_eq!((&top["children"][0]["name"], &top["children"][0]["attributes"]), (&json!("lab"), &json!(2)));
    let leaf = console.get("/event/tree?path=lab/vacuum/1");
    assert_eq!((&leaf["children"][0]["path"], &leaf["children"][0]["attribute"]["source"]), (&json!(NAME), &json!("pump")));

    let path = format!("/event/values?name={NAME}&name=lab/no/1/such");
    let now = until(&console, &path, |answer| answer["values"][0]["value"] == 8.0);
    assert_eq!((&now["values"][0]["sequence"], &now["missing"]), (&json!("10"), &json!(["lab/no/1/such"])));
    assert_eq!((&now["values"][0]["source"], &now["values"][0]["text"]), (&json!("pump"), &json!("8")));

    let whole = until(&console, &format!("/event/history?name={NAME}"), |answer| answer["count"] == 10);
    assert_eq!((&whole["decimated"], &whole["unit"], count(&whole["values"])), (&json!(false), &json!("mbar"), 10));
    let few = console.get(&format!("/event/history?name={NAME}&points=2"));
    let points = few["points"].as_array().unwrap();
    let number = |name: &'static str| points.iter().map(move |point| point[name].as_f64().unwrap());
    assert!(few["decimated"] == true && few["values"] == json!([]), "{few}");
    assert_eq!(number("count").sum::<f64>(), 10.0, "{few}");
    assert_eq!((number("max").fold(0.0, f64::max), number("min").fold(0.0, f64::min)), (90.0, -7.0), "no peak is lost");

    let page = console.get(&format!("/event/rows?name={NAME}&order=oldest&limit=4"));
    let rest = console.get(&format!("/event/rows?name={NAME}&order=oldest&limit=100&after={}", page["next"].as_str().unwrap()));
    let all = [page["rows"].as_array().unwrap().clone(), rest["rows"].as_array().unwrap().clone()].concat();
    let read: Vec<f64> = all.iter().filter_map(|row| row["value"].as_f64()).collect();
    assert_eq!(read, values.map(|value| value.parse::<f64>().unwrap()));
    let lines = console.text(&format!("/event/export?name={NAME}&order=oldest"));
    let exported: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(exported, all, "the file has the rows of the pages");
    let csv = console.text("/event/export?name=*/vacuum/*&order=oldest&format=csv&limit=3");
    assert_eq!((csv.lines().count(), csv.starts_with("time,received,name,reason,")), (4, true), "{csv}");
    assert!(csv.lines().nth(3).unwrap().contains(",90,mbar,pump,"), "{csv}");
    assert_eq!(console.get(&format!("/event/doctor?pattern={NAME}"))[0]["source"], "pump");
}

#[test]
fn links_lead_to_records_events_and_transfers_and_back_and_all_stand_on_one_timeline() {
    let console = Console::with("[events]\nkeep = [\"*/vacuum/*/pressure\"]\n");
    let site = &console.site;
    let mut pump = Publisher::start(site, &[NAME, "--user", "--process", "pump"]);
    pump.say("1.5");
    site.tampu(&["log", "send", "HV tripped", "--level", "Error"]).ok();
    let file = site.file("dump.bin", "data");
    let receiver = Beside::receiver(site, &[]);
    send(site, &[&file]).ok();

    let record = until(&console, "/log/query?word=tripped", |answer| count(&answer["records"]) == 1)["records"][0].clone();
    let transfers = until(&console, "/bulk/transfers?outcome=complete", |answer| count(&answer["transfers"]) == 1);
    let transfer = &transfers["transfers"][0];
    let encoded = transfer["id"].as_str().unwrap().replace('#', "%23").replace('/', "%2F");
    assert_eq!(console.get(&format!("/bulk/transfers/{encoded}"))["bytes"], 4);
    assert_eq!(console.get("/bulk/transfers?stream=none")["transfers"], json!([]));
    assert_eq!(count(&console.get("/bulk/running")["processes"]), 1);
    until(&console, &format!("/event/history?name={NAME}"), |answer| answer["count"] == 1);

    site.tampu(&["book", "make", "Shift", "-a", "Subject"]).ok();
    // Another process made it: the hub knows within a second.
    until(&console, "/books", |books| count(books) == 1);
    let links = [
        format!("record:{}", record["id"].as_str().unwrap()),
        format!("event:{NAME}"),
        format!("transfer:{}", transfer["id"].as_str().unwrap()),
        "run:80123".to_owned(),
        "entry:shift/1".to_owned(),
        "entry:Shift/9".to_owned(),
    ];
    let entry = json!({ "attributes": { "Subject": "the trip" }, "text": "see there", "links": links });
    console.post("/books/Shift/entries", &entry);
    let resolved = console.get("/books/Shift/entries/1/links/resolved");
    assert_eq!(resolved[0]["record"]["message"], "HV tripped", "{resolved}");
    assert_eq!(resolved[1]["event"]["value"], 1.5, "{resolved}");
    assert_eq!(resolved[2]["transfer"]["id"], transfer["id"], "{resolved}");
    assert_eq!((&resolved[3]["found"], resolved[3]["why"].is_string()), (&json!(false), true), "{resolved}");
    assert_eq!((&resolved[4]["entry"]["title"], &resolved[4]["entry"]["id"]), (&json!("the trip"), &json!(1)), "{resolved}");
    assert_eq!((&resolved[5]["found"], resolved[5]["why"].is_string()), (&json!(false), true), "{resolved}");
    for link in &links {
        let link = link.replace('#', "%23");
        let mentions = console.get(&format!("/mentions?to={link}"));
        assert_eq!((count(&mentions), &mentions[0]["title"]), (1, &json!("the trip")), "{link}: {mentions}");
    }
    assert_eq!(console.get("/mentions?to=run:8012"), json!([]));
    assert_eq!(count(&console.get("/mentions?to=entry:SHIFT/1")), 1, "a logbook is the same in any case");
    let more = json!({ "attributes": { "Subject": "again" }, "text": "see there", "links": ["run:80123", format!("event:{NAME}@2026-01-02T03:04:05Z")] });
    console.post("/books/Shift/entries", &more);
    let asked: Vec<String> = links.iter().map(|link| format!("to={}", link.replace('#', "%23"))).collect();
    let counted = console.get(&format!("/mentions/counts?to=run:8012&{}", asked.join("&")));
    let counted: Vec<(&str, u64)> =
        counted.as_array().unwrap().iter().map(|one| (one["to"].as_str().unwrap(), one["entries"].as_u64().unwrap())).collect();
    let expected =
        [("run:8012", 0), (&*links[0], 1), (&*links[1], 2), (&*links[2], 1), ("run:80123", 2), (&*links[4], 1), (&*links[5], 1)];
    assert_eq!(counted, expected, "an attribute is mentioned by links to its events");

    let timeline = console.get(&format!("/timeline?since=1h&until=now&event={NAME}&word=tripped&bins=60"));
    assert_eq!(timeline["log"]["total"], 1, "{timeline}");
    assert_eq!((&timeline["events"][0]["count"], count(&timeline["transfers"])), (&json!(1), 1), "{timeline}");
    assert_eq!((&timeline["entries"][1]["title"], &timeline["missing"]), (&json!("the trip"), &json!([])), "{timeline}");
    let before = console.get(&format!("/timeline?since=3h&until=2h&event={NAME}"));
    assert_eq!((&before["log"]["total"], count(&before["transfers"]), count(&before["entries"])), (&json!(0), 0, 0));

    let seen = until(&console, "/site?all_readers=true", |answer| {
        // The process that answers is part of the site, too.
        let has = |name: &str| {
            answer["processes"].as_array().unwrap().iter().any(|process| process["source"].as_str().unwrap().starts_with(name))
        };
        has("pump") && has("hub-book@")
    });
    assert_eq!((count(&seen["hosts"]), &seen["hosts"][0]["version"]), (1, &json!(env!("CARGO_PKG_VERSION"))), "{seen}");
    assert!(count(&seen["topics"]) > 0 && count(&seen["readers"]) > 0, "{seen}");
    assert!(seen["findings"].as_array().unwrap().iter().any(|finding| finding["subject"] == "hosts"), "{seen}");
    drop(receiver);
}
