//! The bridge to Tango where its other half misbehaves. That is a script here that speaks its lines; the real one, with real servers and
//! clients of Tango, is in `tests/peers/tango_bridge.py`.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Instant,
};

use serde_json::Value;

use crate::site::{Following, PATIENCE, Site};

const HELLO: &str = r#"{"hello":{"protocol":1,"pytango":"10.3.1","tango":"10.3.3","database":null}}"#;
const ADDRESS: &str = "tango://127.0.0.1:1/lab/gauge/1/pressure#dbase=no";

/// A program that is started instead of Python: a shell script.
fn stand_in(site: &Site, script: &str) -> String {
    let path = site.file("python", format!("#!/bin/sh\n{script}"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The bridge, and what it says on standard error. Killed when dropped.
struct Bridge {
    child: Child,
    errors: Receiver<String>,
}

impl Bridge {
    fn start(site: &Site, arguments: &[&str]) -> Bridge {
        let mut all = vec!["event", "bridge-tango", "--no-database", "--interval", "100ms"];
        all.extend(arguments);
        let mut child = site.command(&all).stdout(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (tell, errors) = channel();
        // The thread ends with the process.
        std::thread::spawn(move || lines.for_each(|line| drop(tell.send(line))));
        Bridge { child, errors }
    }

    #[track_caller]
    fn says(&self, what: &str) -> String {
        let (until, mut heard) = (Instant::now() + PATIENCE, Vec::new());
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.errors.recv_timeout(left).unwrap_or_else(|_| panic!("no '{what}' in {heard:#?}"));
            if line.contains(what) {
                return line;
            }
            heard.push(line);
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_is_missing_is_named_with_the_way_out() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let no_pytango = r#"echo '{"error":{"failure":{"reason":"Tampu_NoPyTango","description":"No module named tango; install it with: python3 -m pip install pytango","origin":"","severity":"error"}}}'; exit 3"#;
    let no_database = format!(
        "echo '{HELLO}'; read line; echo '{}'; read line",
        r#"{"id":0,"error":{"failure":{"reason":"API_CantConnectToDatabase","description":"nobody is there","origin":"","severity":"error"}}}"#
    );
    let later = r#"echo '{"hello":{"protocol":7,"pytango":"99"}}'; read line"#;
    for (script, host, wanted) in [
        (no_pytango, None, "python3 -m pip install pytango"),
        ("echo 'Traceback' >&2; exit 1", None, "did not begin: it ended (exit status: 1); its last words: Traceback"),
        ("echo 'hello, world'; read line", None, "cannot be read"),
        (later, None, "speaks protocol 7, not 1"),
        (no_database.as_str(), Some("nowhere:10000"), "--no-database"),
    ] {
        let python = stand_in(&site, script);
        let database = host.map_or_else(|| vec!["--no-database"], |host| vec!["--tango-host", host]);
        let arguments = [&["event", "bridge-tango", "--serve", "*", "--python", &python][..], &database].concat();
        let said = site.tampu(&arguments);
        assert!(said.code == 3 && said.err.contains(wanted) && said.out.is_empty(), "{script}: {said:?}");
    }
    let said = site.tampu(&["event", "bridge-tango", "--no-database", "--serve", "*", "--python", "/no/such/python"]);
    assert!(
        said.code == 3 && said.err.contains("/no/such/python cannot be started") && said.err.contains("--python PATH"),
        "{said:?}"
    );
}

#[test]
fn a_python_side_that_dies_is_told_and_comes_back_and_garbage_is_passed_over() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    // The runs of the script: the first checks that it exists, the second dies on command, the third stays.
    let script = format!(
        r#"lives=$(cat lives 2>/dev/null || echo 0)
echo $((lives + 1)) > lives
sleep 0.3
echo '{HELLO}'
while read -r line; do
  case $line in *'"subscribe"'*)
    echo 'no json at all'
    echo '{{"event":{{"attribute":"{ADDRESS}","kind":"change","reason":"maybe"}}}}'
    echo '{{"something":{{"of":"a later release"}}}}'
    echo '{{"config":{{"attribute":"{ADDRESS}","config":{{"name":"lab/gauge/1/pressure","data_type":"DevLong","format":"scalar","unit":"Pa"}}}}}}'
    echo '{{"event":{{"attribute":"{ADDRESS}","kind":"change","reason":"first","time_ns":1700000000250000000,"quality":"alarm","value":{{"data_type":"DevLong","format":"scalar","x":1,"y":0,"data":['$lives']}}}}}}'
    echo '{{"event":{{"attribute":"{ADDRESS}","kind":"change","reason":"update","value":{{"data_type":"DevLong","format":"scalar","x":1,"y":0,"data":["x"]}}}}}}'
    if [ "$lives" = 1 ]; then
      while [ ! -e die ]; do sleep 0.05; done
      echo 'out of memory' >&2
      exit 9
    fi;;
  esac
done
"#
    );
    let python = stand_in(&site, &script);
    let bridge = Bridge::start(&site, &["--subscribe", ADDRESS, "--python", &python]);
    bridge.says("no json at all");
    bridge.says("cannot be carried: invalid DevLong \"x\"");
    let mut follower = Following::start(&site, &["event", "sub", "--json", "lab/gauge/1/pressure"]);
    let mut next = || -> Value { serde_json::from_str(&follower.lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!((&first["reason"], &first["value"], &first["quality"]), (&"first".into(), &1.into(), &"alarm".into()), "{first}");
    assert_eq!(first["time"], "2023-11-14T22:13:20.250000000Z", "{first}");
    site.file("die", "");
    let died = next();
    assert_eq!((&died["errors"][0]["reason"], &died["value"]), (&"Tango_BridgeEnded".into(), &Value::Null), "{died}");
    assert!(died["errors"][0]["description"].as_str().is_some_and(|text| text.contains("last words: out of memory")), "{died}");
    bridge.says("it is started again in");
    let back = next();
    assert_eq!((&back["value"], &back["reason"]), (&2.into(), &"update".into()), "{back}");
    bridge.says(", 1 restarts");
}

#[test]
fn a_hub_runs_the_bridge_tells_of_it_and_goes_on_without_it() {
    let site = Site::new();
    let script = format!(
        r#"echo '{HELLO}'
while read -r line; do
  case $line in *'"subscribe"'*)
    echo '{{"config":{{"attribute":"{ADDRESS}","config":{{"name":"lab/gauge/1/pressure","data_type":"DevLong","format":"scalar"}}}}}}'
    echo '{{"event":{{"attribute":"{ADDRESS}","kind":"change","reason":"first","value":{{"data_type":"DevLong","format":"scalar","x":1,"y":0,"data":[42]}}}}}}';;
  esac
done
"#
    );
    let python = stand_in(&site, &script);
    let config = |python: &str| {
        format!(
            "[tango]\nenabled = true\ndatabase = \"none\"\ninstance = \"site\"\npython = \"{python}\"\nsubscribe = [\"{ADDRESS}\"]\n\
             [metrics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n"
        )
    };
    let hub = site.hub(&["--config", &site.file("tampu.toml", config(&python))]);
    let mut follower = Following::start(&site, &["event", "sub", "--json", "lab/*", "-n", "3"]);
    let value = |line: String| serde_json::from_str::<Value>(&line).unwrap();
    let event = follower.lines.by_ref().map(|line| value(line.unwrap())).find(|event| !event["value"].is_null()).unwrap();
    assert_eq!((&event["value"], &event["source"]), (&42.into(), &"tango@site".into()));
    let told = site.find(1, &["metrics are at"]).remove(0);
    let address = told["data"].as_array().unwrap().iter().find(|datum| datum["name"] == "address").unwrap()["value"].clone();
    let mut stream = TcpStream::connect(address.as_str().unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.contains("\ntampu_tango_events_total{direction=\"from_tango\"} 1\n"), "{page}");
    assert!(page.contains("\ntampu_tango_attributes{direction=\"from_tango\"} 1\n"), "{page}");
    let begun = site.find(1, &["PyTango 10.3.1"]).remove(0);
    assert_eq!(begun["level"], "Notice", "{begun}");
    drop(hub);

    // A site without its Python still has a hub, and gets a report.
    let _hub = site.hub(&["--config", &site.file("tampu.toml", config("/no/such/python"))]);
    let told = site.find(1, &["/no/such/python cannot be started"]).remove(0);
    assert_eq!(told["level"], "Warning", "{told}");
    let wrong = site.file("wrong.toml", "[tango]\nenabled = true\nsubscribe = [\"sr/*/*/pressure\"]\n");
    let said = site.tampu(&["up", "--config", &wrong]);
    assert!(said.code == 2 && said.err.contains("tango.subscribe: 'sr/*/*/pressure' needs a Tango database"), "{said:?}");
}

#[test]
fn an_attribute_that_belongs_to_somebody_here_is_not_taken_from_tango() {
    let site = Site::new();
    let _hub = site.hub(&["--roles", "node"]);
    let script = format!(
        r#"echo '{HELLO}'
while read -r line; do
  case $line in *'"subscribe"'*)
    echo '{{"config":{{"attribute":"{ADDRESS}","config":{{"name":"lab/gauge/1/pressure","data_type":"DevLong","format":"scalar"}}}}}}'
    for number in $(seq 100); do
      echo '{{"event":{{"attribute":"{ADDRESS}","kind":"change","reason":"update","value":{{"data_type":"DevLong","format":"scalar","x":1,"y":0,"data":['$number']}}}}}}'
      sleep 0.1
    done;;
  esac
done
"#
    );
    let python = stand_in(&site, &script);
    let _owner =
        Following::start(&site, &["event", "pub", "lab/gauge/1/pressure", "1.5", "--process", "gauge", "--stay", "100s"]);
    let until = Instant::now() + PATIENCE;
    while site.tampu(&["event", "list", "lab/*"]).out.is_empty() {
        assert!(Instant::now() < until, "the attribute is not listed");
    }
    let bridge = Bridge::start(&site, &["--subscribe", ADDRESS, "--python", &python]);
    let said = bridge.says("is not bridged");
    assert!(said.contains("it belongs to gauge") && said.contains(ADDRESS), "{said}");
}
