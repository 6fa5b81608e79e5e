//! The roles of a hub as processes: what one of them is made to do leaves the others alone.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::Write,
    process::{Child, ChildStdin, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;

use crate::site::{Hub, Site, acs_file, until};

/// The processes of a hub's roles, by role. A process that has not become a role yet is missing.
fn roles(hub: &Hub) -> BTreeMap<String, i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let of = |pid: i32| -> Option<(String, i32)> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut after_name = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, parent) = (after_name.next()?, after_name.next()?);
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let role = line.strip_prefix("tampu\0role\0")?.trim_end_matches('\0').to_owned();
        (state != "Z" && parent.parse() == Ok(hub.pid())).then_some((role, pid))
    };
    processes.filter_map(|entry| of(entry.file_name().to_str()?.parse().ok()?)).collect()
}

pub fn role(hub: &Hub, name: &str) -> i32 {
    *roles(hub).get(name).unwrap_or_else(|| panic!("no process of {name}: {:?}", roles(hub)))
}

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Kills the process of a role and waits for the next one.
pub fn kill(hub: &Hub, name: &str) {
    let old = role(hub, name);
    send(old, Signal::KILL);
    until(&format!("{name} has a new process"), || roles(hub).get(name).is_some_and(|new| *new != old));
}

/// A process that logs numbered lines.
struct Talker {
    process: Child,
    input: ChildStdin,
    said: u32,
}

impl Talker {
    fn start(site: &Site) -> Talker {
        let mut process =
            site.command(&["log", "send", "-p", "talker", "--timeout", "60s"]).stdin(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        Talker { process, input, said: 0 }
    }

    fn say(&mut self, lines: u32) {
        (self.said..self.said + lines).for_each(|number| writeln!(self.input, "line {number}").unwrap());
        self.said += lines;
        self.input.flush().unwrap();
    }

    /// Checks that each line is kept once, and ends it.
    fn all_is_kept(mut self, site: &Site) {
        let mut texts = Vec::new();
        until("every line is kept", || {
            // A collector that starts again does not answer yet.
            let said = site.tampu(&["log", "query", "--json", "-p", "talker", "-n", "0"]);
            let found = if said.code == 0 { said.json() } else { Vec::new() };
            texts = found.iter().map(|record| record["message"].as_str().unwrap().to_owned()).collect();
            texts.len() >= self.said as usize
        });
        let different: HashSet<&String> = texts.iter().collect();
        assert_eq!((texts.len(), different.len()), (self.said as usize, self.said as usize));
        drop(self.input);
        self.process.wait().unwrap();
    }
}

fn book_url(site: &Site) -> Option<String> {
    let place: Value = serde_json::from_str(&fs::read_to_string(site.path("run/local/book.json")).ok()?).ok()?;
    Some(place["url"].as_str()?.to_owned())
}

fn page(address: &str) -> String {
    ureq::get(&format!("http://{address}/metrics")).call().unwrap().body_mut().read_to_string().unwrap()
}

/// The address of the metrics, which the hub logs.
fn metrics_address(site: &Site) -> String {
    let record = site.find(1, &["metrics are at"]).remove(0);
    let text = record["message"].as_str().unwrap().to_owned();
    text.split_once("http://").unwrap().1.trim_end_matches("/metrics").to_owned()
}

#[test]
fn a_killed_book_costs_no_record_and_comes_back_where_it_was() {
    let site = Site::new();
    let hub = site.hub_of_roles(&[]);
    let (node, collector, url) = (role(&hub, "node"), role(&hub, "collector"), book_url(&site));
    site.tampu(&["book", "make", "Shift", "-a", "Author"]).ok();
    let mut talker = Talker::start(&site);
    for _ in 0..3 {
        talker.say(300);
        kill(&hub, "book");
        talker.say(300);
    }
    // A book that hangs stops nothing.
    send(role(&hub, "book"), Signal::STOP);
    talker.say(300);
    talker.all_is_kept(&site);
    send(role(&hub, "book"), Signal::CONT);
    until("the book answers", || site.tampu(&["book", "post", "Shift", "-a", "Author=Zoe", "-t", "again"]).code == 0);
    assert_eq!(book_url(&site), url, "the address stays");
    assert_eq!((role(&hub, "node"), role(&hub, "collector")), (node, collector));
    let told = site.find(3, &["-p", "hub@*", "--contains", "was ended by signal 9"]);
    assert!(told.iter().all(|record| record["message"].as_str().unwrap().starts_with("the role book (process ")), "{told:?}");
    let findings = site.tampu(&["doctor", "--json"]).json();
    let found = findings.iter().find(|finding| finding["check"] == "roles").unwrap_or_else(|| panic!("{findings:?}"));
    let text = found["found"].as_str().unwrap();
    assert!(text.contains(&format!("collector is process {collector};")) && text.contains("3 restarts"), "{text}");
}

#[test]
fn a_book_beyond_its_memory_dies_alone() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[limits]\nbook = { memory = \"700MiB\", open_files = 512 }\n");
    let hub = site.hub_of_roles(&["--config", &config]);
    site.tampu(&["book", "make", "Shift", "-a", "Author"]).ok();
    let (node, collector, book) = (role(&hub, "node"), role(&hub, "collector"), role(&hub, "book"));
    let told = site.find(1, &["-p", "hub-book@*", "--contains", "memory: "]);
    let told = told[0]["message"].as_str().unwrap();
    assert!(told.starts_with("memory: 700MiB by ") && told.ends_with("open files: 512"), "{told}");
    let limit = |pid: i32, name: &str| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        line.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(limit(book, "Max open files"), "512");
    if told.contains("RLIMIT_DATA") {
        assert_eq!(limit(book, "Max data size"), (700 << 20).to_string());
    }
    assert_eq!(limit(collector, "Max data size"), "unlimited");
    let mut talker = Talker::start(&site);
    talker.say(200);
    // Rendering this takes several MB.
    site.tampu_reading("*y* ".repeat(250_000).as_bytes(), &["book", "post", "Shift", "-a", "Author=Zoe"]).ok();
    let place: Value = serde_json::from_str(&fs::read_to_string(site.path("run/local/book.json")).unwrap()).unwrap();
    let (url, token) = (place["url"].as_str().unwrap(), place["token"].as_str().unwrap());
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10))).build().into();
    let (bearer, entry) = (format!("Bearer {token}"), format!("{url}/api/v1/books/Shift/entries/1"));
    let memory = |bytes: u64| {
        let maximum = told.contains("RLIMIT_DATA").then_some(700 << 20);
        let _ = prlimit(Pid::from_raw(book), Resource::Data, Rlimit { current: Some(bytes), maximum });
    };
    until("the book has a new process", || {
        // The entry is read once, so that its text has room later. Then nothing is left of the memory.
        memory(700 << 20);
        let plain = agent.get(&entry).header("Authorization", &bearer).call();
        let _ = plain.map(|mut answer| answer.body_mut().read_to_vec());
        memory(1);
        // No answer comes from a process that dies.
        let _ = agent.get(format!("{entry}?html=true")).header("Authorization", &bearer).call();
        roles(&hub).get("book").is_some_and(|new| *new != book)
    });
    talker.say(200);
    talker.all_is_kept(&site);
    assert_eq!((role(&hub, "node"), role(&hub, "collector")), (node, collector));
    let died = site.find(1, &["-p", "hub@*", "--contains", "the role book (process"]);
    assert!(died[0]["message"].as_str().unwrap().contains("ended by signal"), "{died:?}");
}

#[test]
fn a_killed_collector_and_a_killed_node_are_restarted_and_every_record_arrives() {
    let site = Site::new();
    let hub = site.hub_of_roles(&["--roles", "node,collector"]);
    let mut talker = Talker::start(&site);
    // It must have joined: a command that finds no hub at its start ends.
    talker.say(1);
    site.find(1, &["-p", "talker"]);
    for name in ["collector", "node", "collector", "node"] {
        talker.say(200);
        kill(&hub, name);
        talker.say(200);
    }
    talker.all_is_kept(&site);
    // The reports of the deaths are kept too.
    site.find(2, &["-p", "hub@*", "--contains", "the role node (process"]);
    site.find(2, &["-p", "hub@*", "--contains", "the role collector (process"]);
}

#[test]
fn an_orderly_end_and_a_killed_supervisor_leave_no_process() {
    let site = Site::new();
    let hub = site.hub_of_roles(&[]);
    let of_first: Vec<i32> = roles(&hub).into_values().collect();
    assert_eq!(of_first.len(), 4);
    let (code, said) = hub.end(Signal::TERM);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("has stopped"), "{said}");
    let lives = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with("tampu\0role"));
    assert!(!of_first.iter().any(lives));

    let hub = site.hub_of_roles(&[]);
    let of_second: Vec<i32> = roles(&hub).into_values().collect();
    hub.end(Signal::KILL);
    // Its locks are free for the next one.
    let hub = site.hub_of_roles(&[]);
    until("the roles of the killed hub are gone", || !of_second.iter().any(lives));
    let stops: Vec<String> = site
        .find(4, &["-p", "hub-*", "--contains", "the role", "--oldest-first", "-n", "0"])
        .iter()
        .filter_map(|record| record["message"].as_str()?.strip_suffix(" stops").map(str::to_owned))
        .collect();
    let first: HashSet<&str> = stops.iter().take(2).map(String::as_str).collect();
    assert_eq!(first, HashSet::from(["the role book", "the role gateway"]), "{stops:?}");
    drop(hub);
}

#[test]
fn an_error_of_a_role_at_the_start_ends_the_hub_with_its_code() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[metrics]\nenabled = true\nlisten = \"192.0.2.1:9\"\nplain_http = true\n");
    let said = site.tampu(&["up", "--config", &config]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.err.lines().filter(|line| line.contains("metrics cannot be served")).count(), 1, "{said:?}");
    let key = site.file("domain.key", "correct horse battery");
    rustix::fs::chmod(&key, rustix::fs::Mode::from_bits_truncate(0o600)).unwrap();
    let said = site.tampu(&["up", "--domain", "lab", "--key-file", &key, "--lan", "not an address"]);
    assert_eq!((said.code, said.err.lines().count()), (2, 1), "{said:?}");
    assert!(said.err.contains("network.listen"), "{said:?}");
    let said = site.tampu(&["role", "book"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("'tampu role book' is a part of 'tampu up'"), "{said:?}");
}

#[test]
fn one_page_of_metrics_has_the_figures_of_all_roles() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[metrics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n");
    let hub = site.hub_of_roles(&["--config", &config]);
    let address = metrics_address(&site);
    kill(&hub, "book");
    let has = |page: &str, line: &str| page.lines().any(|one| one == line);
    until("the book works again", || has(&page(&address), "tampu_role_up{role=\"book\"} 1"));
    let page = page(&address);
    for line in
        ["tampu_role_restarts{role=\"book\"} 1", "tampu_role_restarts{role=\"collector\"} 0", "tampu_role_up{role=\"node\"} 1"]
    {
        assert!(has(&page, line), "{line}: {page}");
    }
    for start in ["tampu_build_info{", "tampu_node_processes ", "tampu_collector_records_total ", "tampu_spool_bytes "] {
        assert_eq!(page.lines().filter(|line| line.starts_with(start)).count(), 1, "{start}: {page}");
    }
    let workers_of = |role: &str| page.lines().any(|line| line.starts_with(&format!("tampu_workers{{role=\"{role}\"")));
    assert!(["node", "collector", "book", "metrics"].into_iter().all(workers_of), "{page}");
    let types: Vec<&str> = page.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    assert_eq!(types.iter().collect::<HashSet<_>>().len(), types.len(), "each family stands once");
}

#[test]
fn confined_roles_get_changed_settings_and_cannot_read_the_configuration() {
    let site = Site::new();
    let policy = site.path("policy.toml");
    let text = |level: &str| {
        let beside = policy.display();
        format!(
            "[metrics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n[access]\npolicy = \"{beside}\"\n[log]\nlevel = \"{level}\"\n"
        )
    };
    let config = site.file("tampu.toml", text("Debug"));
    let hub = site.hub_of_roles(&["--config", &config]);
    let before = roles(&hub);
    // The rules: the logbook's role shows those that it has.
    let shows = |what: &str| site.tampu(&["access", "list"]).ok().out.contains(what);
    for what in ["book/One", "book/Two"] {
        // As editors do it.
        let new = site.file("policy.new", format!("[[deny]]\nwho = \"guest\"\nmay = [\"read\"]\nwhat = \"{what}\"\n"));
        fs::rename(new, &policy).unwrap();
        until("the rule holds", || shows(what));
    }
    fs::remove_file(&policy).unwrap();
    site.find(1, &["-p", "hub-book@*", "--contains", "is gone or empty"]);
    assert!(shows("book/Two"));
    // The settings of the log.
    let level = |name: &str, verb: &[&str]| {
        let process = format!("hub-{name}@*");
        let rows = site.tampu(&[&["log", "levels"], verb, &["--process", &process, "--json"]].concat()).ok().json();
        rows[0]["central"].as_str().unwrap().to_owned()
    };
    assert_eq!(level("metrics", &[]), "Debug");
    let new = site.file("tampu.new", text("Notice"));
    fs::rename(new, &config).unwrap();
    for name in ["metrics", "book", "collector"] {
        assert_eq!(level(name, &["refresh"]), "Notice", "{name}");
    }
    site.file("tampu.toml", "[log]\nlevle = 1\n");
    let said = site.tampu(&["log", "levels", "refresh", "--process", "hub-metrics@*"]);
    assert!(said.code == 1 && said.err.contains("tampu.toml, line 2"), "{said:?}");
    assert_eq!(roles(&hub), before, "no role has started again");
}

#[test]
fn a_broken_file_of_changed_settings_stops_no_role_that_starts_again() {
    let site = Site::new();
    let file = site.path("data/local/settings/changed.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "[\"quota.streams\"]\nvalue = 77\nby = \"zoe\"\nat = \"2026-11-30T00:00:00\"\n").unwrap();
    let hub = site.hub_of_roles(&[]);
    let said = site.tampu(&["settings", "set", "collector.keep_days", "40"]);
    assert!(said.code == 1 && said.err.contains("remove records") && said.err.contains("--yes"), "{said:?}");
    // A role that was taken over can put this there: whoever opens it to read waits for ever.
    fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    for name in ["collector", "book"] {
        kill(&hub, name);
    }
    until("the settings hold", || site.tampu(&["settings"]).out.contains("quota.streams = 77  (changed by zoe"));
    for name in ["collector", "book"] {
        let process = format!("hub-{name}@*");
        site.find(1, &["-p", &process, "--contains", "changed.toml: it is no regular file"]);
    }
}

#[test]
fn a_hub_that_cannot_start_is_led_back_without_one() {
    let site = Site::new();
    let file = site.path("data/local/settings/changed.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let change = |name: &str, value: &str| format!("[\"{name}\"]\nvalue = {value}\nby = \"zoe\"\nat = \"2026-11-30T00:00:00\"\n");
    fs::write(&file, change("quota.streams", "77") + &change("collector.keep_days", "\"many\"")).unwrap();
    let doctor = || {
        let all = site.tampu(&["doctor", "--json"]).json();
        all.into_iter()
            .find(|finding| finding["check"] == "settings")
            .map(|finding| finding["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(doctor().as_deref(), Some("fail"));
    let said = site.tampu(&["settings", "reset", "route", "--offline"]);
    assert!(said.code == 1 && said.err.contains("has no change of 'route'"), "{said:?}");
    let said = site.tampu(&["settings", "reset", "collector.keep_days", "--offline"]);
    assert!(said.code == 1 && said.err.contains("--yes"), "{said:?}");
    let said = site.tampu(&["settings", "reset", "collector.keep_days", "--offline", "--yes"]).ok();
    assert!(said.out.contains("collector.keep_days"), "{said:?}");
    assert_eq!(doctor().as_deref(), Some("ok"));
    let hub = site.hub(&[]);
    assert!(site.tampu(&["settings"]).ok().out.contains("quota.streams = 77  (changed by zoe"));
    let said = site.tampu(&["settings", "reset", "--all", "--offline"]);
    assert!(said.code == 1 && said.err.contains("the hub runs"), "{said:?}");
    site.tampu(&["settings", "set", "quota.streams", "78"]).ok();
    drop(hub);
    // A lost file keeps the hub away, with and without processes for its roles.
    fs::remove_file(&file).unwrap();
    assert_eq!(doctor().as_deref(), Some("fail"));
    for up in [&["up"][..], &["up", "--in-process"]] {
        let said = site.tampu(up);
        assert!(said.code == 1 && said.err.contains("has changes of quota.streams"), "{said:?}");
        assert!(said.err.contains("changed.toml.copy") && said.err.contains("reset --all --offline"), "{said:?}");
    }
    // The hub was killed, and its logbooks may lie in a database: that is no obstacle.
    site.file("run/local/book.json", r#"{"url": "http://127.0.0.1:1", "token": "x"}"#);
    let said = site.tampu(&["settings", "reset", "--all", "--offline"]).ok();
    assert!(said.out.contains("quota.streams") && said.out.contains("changed.toml.before"), "{said:?}");
    assert_eq!(site.tampu(&["settings", "reset", "x", "--all", "--offline"]).code, 2);
    let hub = site.hub(&["--roles", "node,collector"]);
    fs::write(&file, change("quota.streams", "77")).unwrap();
    // Other commands find no logbook here, and not even the run-time directory.
    for run in ["run", "elsewhere"] {
        let reset =
            site.command(&["settings", "reset", "quota.streams", "--offline"]).env("TAMPU_RUN_DIR", site.path(run)).output();
        let said = String::from_utf8(reset.unwrap().stderr).unwrap();
        assert!(said.contains("the hub runs (process "), "{said}");
    }
    drop(hub);
    site.tampu(&["settings", "reset", "quota.streams", "--offline"]).ok();
}

#[test]
fn a_tighter_retention_is_answered_by_the_archives_of_the_hub_that_it_changes() {
    let site = Site::new();
    let other = site.hub_of_roles(&["--roles", "node,collector"]);
    site.tampu(&["log", "import", &site.file("old.xml", acs_file(&["one", "two"]))]).ok();
    site.tampu(&["log", "archive", "compact"]).ok();
    let data = site.path("data of another").to_string_lossy().into_owned();
    let own = site.hub_of_roles(&["--roles", "collector,book", "--data", &data]);
    let refused = || {
        let said = site.tampu(&["settings", "set", "collector.keep_days", "30"]);
        assert!(said.code == 1 && said.err.contains("remove records"), "{said:?}");
        said.err
    };
    // Each collector answers alone while the other one hangs.
    let [other, own] = [&other, &own].map(|hub| role(hub, "collector"));
    send(other, Signal::STOP);
    let said = refused();
    assert!(said.contains("at this moment nothing is beyond the new limits"), "{said}");
    send(other, Signal::CONT);
    send(own, Signal::STOP);
    let said = refused();
    assert!(!said.contains("at this moment"), "the other hub keeps its records, whatever this one's limits: {said}");
    send(own, Signal::CONT);
}

#[test]
fn a_role_starts_again_for_a_replaced_file_beside_the_configuration() {
    let site = Site::new();
    let trusted = site.path("trusted.crt");
    let put = |name: &str| {
        let made = site.path(name);
        site.tampu(&["cert", "init", "--certificates", &made.to_string_lossy()]).ok();
        fs::rename(made.join("authority.crt"), &trusted).unwrap();
    };
    put("first");
    let config = site.file("tampu.toml", format!("[book]\nwebhook_certificates = {trusted:?}\n"));
    let hub = site.hub_of_roles(&["--config", &config]);
    let confined = site.find(1, &["-p", "hub-book@*", "--contains", "sandbox: "])[0]["message"].to_string();
    let (old, others) = (role(&hub, "book"), [role(&hub, "node"), role(&hub, "collector")]);
    put("second");
    if confined.contains("Landlock ABI") {
        site.find(1, &["-p", "hub-book@*", "--contains", "trusted.crt was replaced or removed"]);
        until("the book has a new process", || roles(&hub).get("book").is_some_and(|new| *new != old));
    }
    until("the book answers", || site.tampu(&["book", "list"]).code == 0);
    assert_eq!([role(&hub, "node"), role(&hub, "collector")], others);
}

#[test]
fn every_thread_of_the_book_is_confined() {
    let site = Site::new();
    let hub = site.hub_of_roles(&[]);
    let filters = |name: &str| -> HashSet<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", role(&hub, name))).unwrap().flatten();
        let status = |path: std::path::PathBuf| fs::read_to_string(path.join("status")).ok();
        let line = |text: String| text.lines().find(|line| line.starts_with("Seccomp:")).map(str::to_owned);
        tasks.filter_map(|task| line(status(task.path())?)).collect()
    };
    assert_eq!(filters("book"), HashSet::from(["Seccomp:\t2".to_owned()]));
    assert!(filters("collector").contains("Seccomp:\t0"));
    let told = site.find(1, &["-p", "hub-book@*", "--contains", "sandbox: "]);
    assert!(told[0]["message"].as_str().unwrap().contains("seccomp denies"), "{told:?}");
}
