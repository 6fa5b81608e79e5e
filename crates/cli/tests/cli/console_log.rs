//! The log over HTTP: a hub whose roles are processes, and what the command line says about the same records.

use std::fmt::Write as _;

use serde_json::Value;
use ureq::Agent;

use crate::site::{Hub, Site};

/// A hub with records of one import.
pub struct Console {
    pub site: Site,
    _hub: Hub,
    url: String,
    token: String,
    agent: Agent,
}

impl Console {
    pub fn new() -> Console {
        Console::with("")
    }

    /// A hub with this configuration.
    pub fn with(config: &str) -> Console {
        let site = Site::new();
        let config = site.file("hub.toml", config);
        let hub = site.hub_of_roles(&["--config", &config]);
        let text = std::fs::read_to_string(site.path("run/local/book.json")).unwrap();
        let place: Value = serde_json::from_str(&text).unwrap();
        let said = |name: &str| place[name].as_str().unwrap().to_owned();
        let agent = Agent::config_builder().http_status_as_error(false).build().into();
        Console { url: said("url"), token: said("token"), site, _hub: hub, agent }
    }

    /// Returns the body of an answer with status 200.
    #[track_caller]
    pub fn text(&self, path: &str) -> String {
        let request = self.agent.get(format!("{}/api/v1{path}", self.url));
        let mut answer = request.header("authorization", &format!("Bearer {}", self.token)).call().unwrap();
        let text = answer.body_mut().with_config().limit(1 << 30).read_to_string().unwrap();
        assert_eq!(answer.status().as_u16(), 200, "{path}: {text}");
        text
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path)).unwrap()
    }

    /// Posts JSON, which is accepted.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) {
        let request = self.agent.post(format!("{}/api/v1{path}", self.url));
        let request = request.header("authorization", &format!("Bearer {}", self.token));
        let mut answer = request.header("content-type", "application/json").send(body.to_string()).unwrap();
        assert!(answer.status().is_success(), "{}", answer.body_mut().read_to_string().unwrap());
    }

    /// Imports records: for each second `a_second` records that share their time.
    fn import(&self, seconds: usize, a_second: usize) {
        let mut text = String::new();
        for number in 0..seconds * a_second {
            let (second, level) = (number / a_second, ["Info", "Warning", "Error"][number % 3]);
            let (minute, second) = (second / 60, second % 60);
            writeln!(
                text,
                r#"{{"time":"2026-01-02T03:{minute:02}:{second:02}.000000001Z","level":"{level}","message":"m{number}","process":"P{}","stack_id":"s{}","stack_level":{}}}"#,
                number % 2,
                number / 3,
                2 - number % 3
            )
            .unwrap();
        }
        let file = self.site.file("records.jsonl", text);
        self.site.tampu(&["log", "import", &file]).ok();
        self.site.find(seconds * a_second, &["-p", "P*", "-n", "0"]);
    }
}

const RANGE: &str = "since=2026-01-02T00:00:00Z&until=2026-01-03T00:00:00Z";

fn messages(records: &Value) -> Vec<String> {
    records.as_array().unwrap().iter().map(|record| record["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn pages_lead_both_ways_through_records_that_share_a_time_without_hole_or_double() {
    let console = Console::new();
    console.import(20, 7);
    let whole = messages(&console.get(&format!("/log/query?{RANGE}&order=oldest&limit=1000"))["records"]);
    assert_eq!(whole.len(), 140);
    for order in ["oldest", "newest"] {
        let base = format!("/log/query?{RANGE}&order={order}&limit=9");
        let (mut forth, mut page) = (Vec::new(), console.get(&base));
        loop {
            forth.extend(messages(&page["records"]));
            let Some(next) = page["next"].as_str() else { break };
            page = console.get(&format!("{base}&after={next}"));
        }
        let wanted: Vec<String> = if order == "oldest" { whole.clone() } else { whole.iter().rev().cloned().collect() };
        assert_eq!(forth, wanted, "{order}");
        // Back from the last page, which is short.
        let mut back = messages(&page["records"]);
        while let Some(previous) = page["previous"].as_str() {
            page = console.get(&format!("{base}&before={previous}"));
            back.splice(0..0, messages(&page["records"]));
        }
        assert_eq!(back, wanted, "{order}");
    }
    // A jump to a time, from which both ways are open.
    let jump = console.get("/log/query?since=2026-01-02T03:00:10Z&order=oldest&limit=3");
    let earlier = console.get(&format!("/log/query?order=oldest&limit=3&before={}", jump["previous"].as_str().unwrap()));
    let at = whole.iter().position(|message| *message == messages(&jump["records"])[0]).unwrap();
    assert_eq!([messages(&earlier["records"]), messages(&jump["records"])].concat(), whole[at - 3..at + 3]);
}

#[test]
fn filters_counts_context_and_files_are_those_of_the_command_line() {
    let console = Console::new();
    console.import(20, 6);
    let site = &console.site;
    for (parameters, options) in [
        ("min_level=warn", vec!["-l", "warn"]),
        ("level=info,err", vec!["--level", "info,err"]),
        ("process=P1&word=m7", vec!["-p", "P1", "m7"]),
        ("source=P0&exclude=m1", vec!["-s", "P0", "--exclude", "m1"]),
        ("not=level%3Ddebug&not=process%3DP1", vec!["--not", "level=debug", "--not", "process=P1"]),
        ("field=stack_id%3Ds1*&regex=%5Em%5B345%5D", vec!["--field", "stack_id=s1*", "--regex", "^m[345]"]),
        ("contains=M11", vec!["--contains", "M11"]),
        ("stack=s3", vec!["--stack", "s3"]),
        ("where=stack_id%20%3D%20s4%20or%20process%20%3D%20P1", vec!["--where", "stack_id = s4 or process = P1"]),
        ("mode=operator", vec!["--mode", "operator"]),
    ] {
        let said = console.get(&format!("/log/query?{RANGE}&limit=1000&{parameters}"));
        let span = ["--since", "2026-01-02T00:00:00Z", "--until", "2026-01-03T00:00:00Z", "-n", "0"];
        let command = [&["log", "query", "--json"][..], &span, &options].concat();
        let lines = site.tampu(&command).ok().json();
        let own: Vec<String> = lines.iter().map(|record| record["message"].as_str().unwrap().to_owned()).collect();
        assert!(!own.is_empty(), "{parameters}");
        assert_eq!(messages(&said["records"]), own, "{parameters}");
        let histogram = console.get(&format!("/log/histogram?{RANGE}&bins=48&{parameters}"));
        assert_eq!(histogram["total"].as_u64(), Some(own.len() as u64), "{histogram}");
    }

    let narrow = console.get("/log/histogram?since=2026-01-02T03:00:00Z&until=2026-01-02T03:00:20Z&bins=20");
    assert_eq!((narrow["every_ns"].as_str(), narrow["bins"].as_u64()), (Some("1000000000"), Some(20)));
    for level in ["Info", "Warning", "Error"] {
        assert_eq!(narrow["levels"][level], serde_json::json!(vec![2; 20]), "{narrow}");
    }
    let fine = console.get("/log/histogram?since=2026-01-02T03:00:05Z&until=2026-01-02T03:00:05.00000001Z&every_ns=1");
    assert_eq!(fine["levels"]["Info"], serde_json::json!([0, 2, 0, 0, 0, 0, 0, 0, 0, 0]));
    let stat = console.get(&format!("/log/stat?{RANGE}&by=process&limit=1"));
    assert_eq!((&stat["total"], &stat["others"], &stat["rows"][0]["value"]), (&120.into(), &60.into(), &"P0".into()));

    let all = console.get(&format!("/log/query?{RANGE}&order=oldest&limit=1000"));
    let middle = &all["records"][60];
    let id = middle["id"].as_str().unwrap();
    for of in [format!("at={}", middle["cursor"].as_str().unwrap()), format!("id={id}")] {
        let context = console.get(&format!("/log/context?{of}&older=5&newer=7"));
        assert_eq!(context["at"], 5, "{context}");
        assert_eq!(messages(&context["records"]), messages(&all["records"])[55..68]);
    }
    let same = console.get(&format!("/log/context?id={id}&older=2&newer=2&same=process"));
    assert!(same["records"].as_array().unwrap().iter().all(|record| record["process"] == middle["process"]), "{same}");

    // A link of an entry leads to its record, over HTTP and on the command line.
    assert_eq!(console.get(&format!("/log/records/{id}"))["record"]["message"], middle["message"]);
    let time = middle["time"].as_str().unwrap();
    assert_eq!(console.get(&format!("/log/records/{id}?time={time}"))["record"]["message"], middle["message"]);
    let found = site.tampu(&["log", "query", "--id", id, "--json"]).ok().json();
    assert_eq!((found.len(), &found[0]["message"]), (1, &middle["message"]));
    assert_eq!(site.tampu(&["log", "query", "--id", "7"]).code, 2);

    let chain = console.get("/log/chain?stack=s4");
    assert_eq!(messages(&chain["records"]), ["m14", "m13", "m12"], "the outermost first");

    let exported = console.text(&format!("/log/export?{RANGE}&order=oldest"));
    let file = site.path("exported.jsonl");
    std::fs::write(&file, &exported).unwrap();
    assert_eq!(exported.lines().count(), 120);
    let first: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    assert!(first["id"].is_object(), "as spec/wire/json-lines.md: {first}");
    let csv = console.text(&format!("/log/export?{RANGE}&format=csv&columns=message,level&limit=2"));
    let last = all["records"].as_array().unwrap().last().unwrap();
    let [message, level, process] = ["message", "level", "process"].map(|name| last[name].as_str().unwrap());
    assert_eq!(csv.lines().take(2).collect::<Vec<_>>(), ["message,level", &format!("{message},{level}")]);
    assert_eq!(csv.lines().count(), 3);
    let text = console.text(&format!("/log/export?{RANGE}&format=text&limit=1"));
    assert_eq!(text, format!("2026-01-02T03:00:19.000000001Z  {level:<9}  {process}  {message}\n"));
    let xml = console.text(&format!("/log/export?{RANGE}&format=xml"));
    assert!(xml.starts_with("<?xml") && xml.trim_end().ends_with("</Log>") && xml.contains("m7"), "{xml}");

    // In Parquet the same are found.
    site.tampu(&["log", "archive", "compact"]).ok();
    assert_eq!(console.get(&format!("/log/records/{id}"))["record"]["message"], middle["message"]);
    assert_eq!(console.get(&format!("/log/query?{RANGE}&order=oldest&limit=1000"))["records"], all["records"]);
}
