//! A hub with a logbook, and who asks it.

use std::{
    io::Read,
    time::{Duration, Instant},
};

use http::{HeaderMap, Method, Request};
use serde_json::{Value, json};
use tampu_hub::{Config, Hub, Role, book::settings::BookSettings};
use tempfile::TempDir;
use ureq::Agent;

/// A password of everybody here.
pub const PASSWORD: &str = "correct horse";

/// Longest wait for work that a hub does in the background.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Interval of looks at it.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until the look finds something. An error is what it saw instead.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(instead) => assert!(Instant::now() < end, "{what}: {instead}"),
        }
        std::thread::sleep(LOOK);
    }
}

pub struct Site {
    pub hub: Option<Hub>,
    pub url: String,
    config: Config,
    _directory: TempDir,
}

/// A response of the site.
#[derive(Debug)]
pub struct Said {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Said {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    #[track_caller]
    pub fn is(self, status: u16) -> Said {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.bytes));
        self
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Returns the kind of the problem.
    #[track_caller]
    pub fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
        problem["type"].as_str().unwrap().trim_start_matches("urn:tampu:problem:").to_owned()
    }

    pub fn cookie(&self) -> String {
        self.header("set-cookie").split(';').next().unwrap().to_owned()
    }
}

/// Somebody who asks.
#[derive(Clone)]
pub struct Client {
    pub url: String,
    pub headers: Vec<(String, String)>,
    agent: Agent,
}

impl Site {
    pub fn new() -> Site {
        Site::with(BookSettings::default())
    }

    pub fn with(settings: BookSettings) -> Site {
        Site::configured(|config| config.book = BookSettings { listen: config.book.listen, ..settings })
    }

    /// A hub that also keeps logs and events.
    pub fn with_collector() -> Site {
        Site::of_roles(vec![Role::Node, Role::Collector, Role::Book], |_| {})
    }

    pub fn configured(change: impl FnOnce(&mut Config)) -> Site {
        Site::of_roles(vec![Role::Node, Role::Book], change)
    }

    fn of_roles(roles: Vec<Role>, change: impl FnOnce(&mut Config)) -> Site {
        let directory = tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp").unwrap();
        let mut config = Config::isolated(directory.path());
        change(&mut config);
        config.roles = roles;
        let hub = Hub::start(config.clone()).unwrap();
        let url = hub.book().unwrap().url().unwrap();
        Site { hub: Some(hub), url, config, _directory: directory }
    }

    /// Stops the hub, changes the directory of its data, and starts it again.
    pub fn restart(&mut self, change: impl FnOnce(&std::path::Path)) {
        let directory = self.directory();
        self.hub = None;
        change(&directory.join("book"));
        let hub = Hub::start(self.config.clone()).unwrap();
        self.url = hub.book().unwrap().url().unwrap();
        self.hub = Some(hub);
    }

    /// Returns the directory of the domain's data.
    pub fn directory(&self) -> std::path::PathBuf {
        self.hub.as_ref().unwrap().book().unwrap().kept_in().trim_end_matches("/book").into()
    }

    /// A client without a name: the owner, while there are no users.
    pub fn anybody(&self) -> Client {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(Duration::from_secs(600)))
            .build()
            .into();
        Client { url: self.url.clone(), headers: Vec::new(), agent }
    }

    /// The owner, also when there are users.
    pub fn owner(&self) -> Client {
        let config = self.hub.as_ref().unwrap().client_settings();
        let run = config.run_dir.domain(&config.domain).unwrap();
        let place = tampu_hub::book::locate(run.path()).unwrap();
        assert_eq!(place.url, self.url);
        self.anybody().with("authorization", &format!("Bearer {}", place.token))
    }

    /// A user with a password, and with a token of theirs.
    pub fn user(&self, user: Value) -> Client {
        let mut user = user;
        user["password"] = json!(PASSWORD);
        let login = user["login"].as_str().unwrap().to_owned();
        self.owner().post("/users", user).is(201);
        let token = self.owner().post("/tokens", json!({ "login": login, "comment": "test" })).is(201).json();
        self.anybody().with("authorization", &format!("Bearer {}", token["secret"].as_str().unwrap()))
    }

    /// Registers a new user with the form of a book whose grade is 3; returns the page.
    pub fn register(&self, book: &str, login: &str) -> String {
        let password = PASSWORD.replace(' ', "+");
        let form = format!(
            "cmd=New+user&new_user_name={login}&new_full_name=New+{login}&new_user_email=new@example.org&newpwd={password}&newpwd2={password}"
        );
        let url = format!("{}/elog/{book}/", self.url.trim_end_matches('/'));
        let request = ureq::post(url).header("content-type", "application/x-www-form-urlencoded");
        let answer = request.config().http_status_as_error(false).build().send(form).unwrap();
        answer.into_body().read_to_string().unwrap()
    }

    /// The book of most tests.
    pub fn shift(&self) {
        let attributes = json!([
            { "name": "Author", "kind": "text" },
            { "name": "Type", "kind": "options", "options": ["Routine", "Problem"] },
            { "name": "System", "kind": "multiple", "options": ["RICH1", "HLT"], "extendable": true },
            { "name": "Subject", "kind": "text" },
        ]);
        self.owner().put("/books/Shift", json!({ "name": "Shift", "attributes": attributes })).is(201);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.take() {
            hub.stop();
        }
    }
}

impl Client {
    pub fn with(&self, name: &str, value: &str) -> Client {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| known != name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let path = if path.starts_with("http") {
            path.to_owned()
        } else if path.starts_with("/elog") {
            format!("{}{path}", self.url)
        } else {
            format!("{}/api/v1{path}", self.url)
        };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request
    }

    fn said(&self, answer: Result<http::Response<ureq::Body>, ureq::Error>) -> Said {
        let (head, mut body) = answer.unwrap().into_parts();
        let bytes = body.with_config().limit(1 << 32).read_to_vec().unwrap_or_default();
        Said { status: head.status.as_u16(), headers: head.headers, bytes }
    }

    pub fn send(&self, method: &str, path: &str, bytes: &[u8]) -> Said {
        self.said(self.agent.run(self.request(method.parse().unwrap(), path).body(bytes.to_vec()).unwrap()))
    }

    /// Sends what is read, as it comes.
    pub fn stream(&self, path: &str, mut from: impl Read) -> Said {
        let body = ureq::SendBody::from_reader(&mut from);
        self.said(self.agent.run(self.request(Method::POST, path).body(body).unwrap()))
    }

    /// The answer, as it comes.
    pub fn open(&self, path: &str) -> http::Response<ureq::Body> {
        self.agent.run(self.request(Method::GET, path).body(()).unwrap()).unwrap()
    }

    pub fn with_json(&self, method: &str, path: &str, body: Value) -> Said {
        self.with("content-type", "application/json").send(method, path, body.to_string().as_bytes())
    }

    pub fn get(&self, path: &str) -> Said {
        self.said(self.agent.run(self.request(Method::GET, path).body(()).unwrap()))
    }

    pub fn delete(&self, path: &str) -> Said {
        self.said(self.agent.run(self.request(Method::DELETE, path).body(()).unwrap()))
    }

    pub fn post(&self, path: &str, body: Value) -> Said {
        self.with_json("POST", path, body)
    }

    pub fn put(&self, path: &str, body: Value) -> Said {
        self.with_json("PUT", path, body)
    }

    /// Posts an entry; its number.
    #[track_caller]
    pub fn entry(&self, text: &str) -> u64 {
        let said = self.post("/books/Shift/entries", json!({ "attributes": { "Author": "Zoe" }, "text": text })).is(201);
        said.json()["id"].as_u64().unwrap()
    }

    /// Returns the number of entries that a search finds.
    #[track_caller]
    pub fn found(&self, q: &str) -> usize {
        self.get(&format!("/search?q={q}")).is(200).json()["hits"].as_array().unwrap().len()
    }
}
