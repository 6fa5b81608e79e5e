//! TLS between hosts: the bus and the logbook's HTTP, seen by somebody on the wire and by hosts that do not belong to the domain.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use rustls::{ClientConnection, ServerConnection, StreamOwned, pki_types::ServerName};
use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice, ServerCertificate, client};

use crate::site::{Hub, PATIENCE, Said, Site};

const KEY: &str = "correct horse battery staple";
const SECRET: &str = "the beam was lost at noon";

/// Carries bytes between a client and a hub, and keeps all of them.
struct Recorder {
    port: u16,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    fn before(port: u16) -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let recorder = Recorder { port: listener.local_addr().unwrap().port(), seen: Arc::default() };
        let seen = recorder.seen.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(hub) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(client.try_clone(), hub.try_clone()), (Ok(hub), Ok(client))] {
                    let (from, to, seen) = (from.unwrap(), to.unwrap(), seen.clone());
                    std::thread::spawn(move || carry(from, to, &seen));
                }
            }
        });
        recorder
    }

    fn saw(&self, text: &str) -> bool {
        self.seen.lock().windows(text.len()).any(|window| window == text.as_bytes())
    }

    fn bytes(&self) -> usize {
        self.seen.lock().len()
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, seen: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 16_384];
    while let Ok(length) = from.read(&mut buffer)
        && length > 0
    {
        seen.lock().extend_from_slice(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// A domain with a hub, and somebody on another host.
pub struct Lab {
    pub site: Site,
    pub elsewhere: Site,
    key: String,
}

impl Lab {
    fn new() -> Lab {
        let (site, elsewhere) = (Site::new(), Site::new());
        let key = site.file("domain.key", KEY);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        Lab { site, elsewhere, key }
    }

    pub fn with_certificates() -> Lab {
        let lab = Lab::new();
        lab.site.tampu(&["--domain", "lab", "cert", "init"]).ok();
        lab
    }

    /// Returns the file of the domain's key.
    pub fn key(&self) -> &Path {
        Path::new(&self.key)
    }

    pub fn certificates(&self) -> PathBuf {
        self.site.path("data/lab/cert")
    }

    /// The same with the authority, as `tampu cert` has them.
    pub fn certificate_dir(&self) -> CertificateDir {
        CertificateDir::new(self.certificates()).with_authority(self.site.path("data/lab/authority"))
    }

    fn up(&self, more: &[&str]) -> Hub {
        self.site.hub(&[&["--domain", "lab", "--key-file", &self.key], more].concat())
    }

    /// Starts a hub whose bus is open, and returns its port.
    pub fn open(&self) -> (Hub, u16) {
        self.open_with(&[])
    }

    pub fn open_with(&self, more: &[&str]) -> (Hub, u16) {
        let mut hub = self.up(&[&["--lan", "127.0.0.1:0"], more].concat());
        hub.wait_for("listening at 127.0.0.1:");
        let line = hub.heard.lines().find(|line| line.contains("listening at")).unwrap();
        let port = line.rsplit(':').next().unwrap().parse().unwrap();
        (hub, port)
    }

    /// A command on the other host, with these certificates or none.
    pub fn far(&self, port: u16, certificates: Option<&Path>, arguments: &[&str]) -> Said {
        let all = self.far_arguments(port, certificates, arguments);
        self.elsewhere.tampu(&all.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The arguments of such a command.
    pub fn far_arguments(&self, port: u16, certificates: Option<&Path>, arguments: &[&str]) -> Vec<String> {
        let hub = format!("127.0.0.1:{port}");
        let mut all = ["--domain", "lab", "--key-file", &self.key, "--hub", &hub].map(str::to_owned).to_vec();
        if let Some(path) = certificates {
            all.extend(["--certificates".to_owned(), path.to_str().unwrap().to_owned()]);
        }
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        all
    }
}

/// Files of a host of another authority, or of another time.
pub fn host_files(directory: &CertificateDir, authority: &Authority, issued: SystemTime) -> CertificateDir {
    let at = directory.of_host("mast");
    authority.issue(&at, &HostNames::new("mast", &[]).unwrap(), KeyPairChoice::New, issued).unwrap();
    at
}

#[test]
fn nobody_on_the_wire_reads_records_or_the_key() {
    let lab = Lab::with_certificates();
    let (_hub, port) = lab.open();
    let wire = Recorder::before(port);
    let own = lab.certificates();
    lab.far(wire.port, Some(&own), &["log", "send", "-p", "mast", SECRET]).ok();
    let until = Instant::now() + PATIENCE;
    loop {
        let found = lab.far(wire.port, Some(&own), &["log", "query", "--json", "-p", "mast"]).ok();
        if found.out.contains(SECRET) {
            break;
        }
        assert!(Instant::now() < until, "{found:?}");
    }
    assert!(wire.bytes() > 2000);
    assert!(!wire.saw(SECRET) && !wire.saw(KEY) && !wire.saw("mast"));

    // Without certificates the same wire shows the record.
    let plain = Lab::new();
    let (_hub, port) = plain.open();
    let wire = Recorder::before(port);
    plain.far(wire.port, None, &["log", "send", "-p", "mast", SECRET]).ok();
    assert!(wire.saw(SECRET));
}

#[test]
fn a_host_needs_a_valid_certificate_of_the_domains_authority() {
    let lab = Lab::with_certificates();
    let (_hub, port) = lab.open();
    let own = lab.certificate_dir();
    let authority = Authority::open(&own).unwrap();
    let now = SystemTime::now();
    let place = tempfile::tempdir().unwrap();
    let others = CertificateDir::new(place.path().join("cert"));
    let foreign = host_files(&others, &Authority::create(&others, "lab", now).unwrap(), now);
    let expired = host_files(&own, &authority, now - Duration::from_secs(400 * 86_400));
    let stat = ["log", "query", "-n", "1"];
    let refused = |certificates: Option<&Path>| {
        let said = lab.far(port, certificates, &stat);
        assert_eq!(said.code, 3, "{said:?}");
        said.err
    };
    let why = refused(Some(foreign.path()));
    assert!(why.contains("TLS fails") && why.contains("invalid peer certificate"), "{why}");
    let why = refused(Some(expired.path()));
    assert!(why.contains("TLS fails") && why.to_lowercase().contains("expired"), "{why}");
    let why = refused(None);
    assert!(why.contains("TAMPU_CERTIFICATES"), "{why}");
    let why = refused(Some(Path::new("nowhere")));
    assert!(why.contains("there is no") && why.contains("'tampu cert host NAME'"), "{why}");
    // With the authority's certificate and the key, but without a certificate of its own, nobody gets in.
    let half = CertificateDir::new(place.path().join("half"));
    let stranger = Authority::create(&half, "lab", now).unwrap();
    let half = host_files(&half, &stranger, now);
    fs::copy(own.authority(), half.authority()).unwrap();
    let why = refused(Some(half.path()));
    assert!(why.contains("TLS fails"), "{why}");
    lab.far(port, Some(own.path()), &stat).ok();
    // A host of the domain with another key is told so.
    let wrong = lab.elsewhere.file("wrong.key", "another key of sufficient length");
    fs::set_permissions(&wrong, fs::Permissions::from_mode(0o600)).unwrap();
    let (hub, path) = (format!("127.0.0.1:{port}"), own.path().to_str().unwrap());
    let all = ["--domain", "lab", "--key-file", &wrong, "--hub", &hub, "--certificates", path, "log", "query", "-n", "1"];
    let said = lab.elsewhere.tampu(&all);
    assert!(said.code == 3 && said.err.contains("domain 'lab' and its key must be the same there"), "{said:?}");
    // The hub's log has the failed handshakes.
    let asked = Instant::now();
    while !lab
        .far(port, Some(own.path()), &["log", "query", "--logger", "engine", "--contains", "TLS handshake"])
        .ok()
        .out
        .contains("TLS handshake with 127.0.0.1")
    {
        assert!(asked.elapsed() < PATIENCE, "no record about a failed handshake");
    }
}

#[test]
fn a_host_that_a_rule_shuts_out_loses_its_connection_and_gets_no_other() {
    let lab = Lab::with_certificates();
    let (_hub, port) = lab.open();
    let own = lab.certificate_dir();
    let mast = host_files(&own, &Authority::open(&own).unwrap(), SystemTime::now());
    fs::copy(own.authority(), mast.authority()).unwrap();
    let send = ["log", "send", "-p", "mast", "--timeout", "60s", "before"];
    lab.far(port, Some(mast.path()), &send).ok();

    let deny = ["--domain", "lab", "access", "deny", "host:mast", "enter", "**", "--reason", "it was stolen"];
    lab.site.tampu(&deny).ok();
    let query = ["log", "query", "-n", "1"];
    let until = Instant::now() + PATIENCE;
    loop {
        let said = lab.far(port, Some(mast.path()), &query);
        if said.code == 3 {
            assert!(said.err.contains("it does not let the host 'mast' in"), "{said:?}");
            break;
        }
        assert!(Instant::now() < until, "{said:?}");
    }
    // Another host is not concerned, and the log says who was refused.
    lab.far(port, Some(own.path()), &query).ok();
    let audit = ["--domain", "lab", "log", "query", "--json", "--logger", "audit", "refused"];
    let until = Instant::now() + PATIENCE;
    loop {
        let said = lab.site.tampu(&audit).ok();
        if said.out.contains("the host 'mast' may not enter") && said.out.contains("it was stolen") {
            break;
        }
        assert!(Instant::now() < until, "{said:?}");
    }
}

#[test]
fn a_false_hub_learns_nothing_to_pass_on() {
    let lab = Lab::with_certificates();
    let place = tempfile::tempdir().unwrap();
    let others = CertificateDir::new(place.path().join("cert"));
    let foreign = host_files(&others, &Authority::create(&others, "lab", SystemTime::now()).unwrap(), SystemTime::now());
    let served = ServerCertificate::open(&foreign.host(), &foreign.host_key()).unwrap();
    let mut config = (*served.config()).clone();
    config.alpn_protocols.clear();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It accepts everything that a client sends, and would pass it on to the real hub.
    let learned: Arc<Mutex<(usize, Vec<u8>)>> = Arc::default();
    let heard = learned.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut tls = ServerConnection::new(Arc::new(config.clone())).unwrap();
            heard.lock().0 += 1;
            while tls.complete_io(&mut stream).is_ok_and(|(read, _)| read > 0) {
                let mut bytes = Vec::new();
                let _ = tls.reader().read_to_end(&mut bytes);
                heard.lock().1.extend(bytes);
            }
        }
    });
    let said = lab.far(port, Some(&lab.certificates()), &["log", "query"]);
    assert!(said.code == 3 && said.err.contains("TLS fails"), "{said:?}");
    let (connections, bytes) = learned.lock().clone();
    assert!(connections > 0 && bytes.is_empty(), "{connections} connections told {} bytes", bytes.len());
}

#[test]
fn nothing_opens_beyond_the_host_in_clear_text_unless_told_to() {
    let lab = Lab::new();
    let up = |more: &[&str]| lab.site.tampu(&[&["up", "--domain", "lab", "--key-file", &lab.key], more].concat());
    for more in [
        &["--lan", "0.0.0.0:0"][..],
        &["--peer", "192.0.2.1:7447"],
        &["--book-listen", "0.0.0.0:0"],
        &["--elog-listen", "0.0.0.0:0"],
    ] {
        let said = up(more);
        assert_eq!(said.code, 2, "{more:?}: {said:?}");
        assert!(said.err.contains("'tampu cert init'") && said.err.contains("'tampu cert host NAME'"), "{more:?}: {said:?}");
    }
    // A short key could be guessed from a recording.
    lab.site.file("domain.key", "correct horse");
    for more in [["--lan", "0.0.0.0:0", "--no-encryption"], ["--peer", "192.0.2.1:7447", "--no-encryption"]] {
        let said = up(&more);
        assert!(said.code == 1 && said.err.contains("at least 16 random bytes"), "{more:?}: {said:?}");
    }
    let asked = ["log", "stat", "--domain", "lab", "--key-file", &lab.key, "--hub", "192.0.2.1:7447", "--no-encryption"];
    let said = lab.site.tampu(&asked);
    assert!(said.code == 3 && said.err.contains("at least 16 random bytes"), "{said:?}");
    lab.site.file("domain.key", KEY);
    {
        let mut hub = lab.up(&["--lan", "0.0.0.0:0", "--no-encryption", "--book-listen", "0.0.0.0:0", "--plain-http"]);
        hub.wait_for("the logbook's API is at http://");
        let warned = lab.site.find(2, &["--domain", "lab", "--contains", "not encrypted", "--min-level", "Warning"]);
        assert_eq!(warned.len(), 2, "{warned:?}");
    }
    lab.site.tampu(&["--domain", "lab", "cert", "init"]).ok();
    let mut hub = lab.up(&["--lan", "0.0.0.0:0", "--book-listen", "0.0.0.0:0"]);
    hub.wait_for("the logbook's API is at https://127.0.0.1:");
    lab.site.tampu(&["--domain", "lab", "book", "make", "Shift", "-a", "Author"]).ok();
}

/// A hub whose logbook speaks https on this host.
struct Https {
    lab: Lab,
    hub: Hub,
    url: String,
    token: String,
}

impl Https {
    fn new(more: &str) -> Https {
        let lab = Lab::with_certificates();
        let own = lab.certificate_dir();
        let (certificate, key) = (own.host(), own.host_key());
        let text = format!("[book]\ncertificate = {certificate:?}\ncertificate_key = {key:?}\n{more}");
        let config = lab.site.file("tampu.toml", text);
        // A hub learns of users that a command adds within a second; these are there before it starts.
        lab.site.tampu(&["--domain", "lab", "book", "make", "Shift", "-a", "Author", "-a", "Subject"]).ok();
        lab.site.tampu_reading(b"correct horse\n", &["--domain", "lab", "book", "users", "add", "zoe", "--admin"]).ok();
        let hub = lab.up(&["--config", &config]);
        let text = fs::read_to_string(lab.site.path("run/lab/book.json")).unwrap();
        let place: serde_json::Value = serde_json::from_str(&text).unwrap();
        let said = |name: &str| place[name].as_str().unwrap().to_owned();
        Https { url: said("url"), token: said("token"), lab, hub }
    }

    fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Opens a connection with the domain's authority as the only one that is trusted.
    fn connect(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let roots = client::certificates(&self.lab.certificate_dir().authority()).unwrap();
        let config = Arc::new(client::client_config(roots).unwrap());
        let stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        StreamOwned::new(ClientConnection::new(config, ServerName::try_from("127.0.0.1").unwrap()).unwrap(), stream)
    }

    /// Sends a request on a connection and returns the head of the response.
    fn ask(&self, stream: &mut StreamOwned<ClientConnection, TcpStream>, request: &str, body: &str) -> String {
        let host = self.url.trim_start_matches("https://");
        let head = format!(
            "{request} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut response = Vec::new();
        while !response.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&response));
            response.push(byte[0]);
        }
        let head = String::from_utf8(response).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).map_or(0, |text| text.parse().unwrap());
        stream.read_exact(&mut vec![0; length]).unwrap();
        head
    }

    fn whoami(&self, stream: &mut StreamOwned<ClientConnection, TcpStream>) -> String {
        self.ask(stream, "GET /api/v1/whoami", "")
    }
}

#[test]
fn the_logbook_is_used_over_https_and_nobody_on_the_wire_reads_it() {
    let https = Https::new("hsts_days = 30\n");
    assert!(https.url.starts_with("https://"), "{}", https.url);
    let Lab { site, elsewhere, .. } = &https.lab;
    // The hub's own user finds it, with the certificate to trust.
    assert!(site.tampu(&["--domain", "lab", "book", "list"]).ok().out.contains("Shift"));
    let wire = Recorder::before(https.port());
    let url = format!("https://127.0.0.1:{}", wire.port);
    let certificates = https.lab.certificates().to_str().unwrap().to_owned();
    let post = |more: &[&str]| {
        let all = [&["book", "--hub", &url, "--token", &https.token], more, &["post", "Shift", "-a", "Author=Zoe", "-t", SECRET]]
            .concat();
        elsewhere.tampu_without("TAMPU_DATA_DIR", b"", &all)
    };
    assert_eq!(post(&["--certificates", &certificates]).ok().out, "Shift/1\n");
    assert!(wire.bytes() > 1000 && !wire.saw(SECRET) && !wire.saw(&https.token) && !wire.saw("HTTP/1.1"));
    let unknown = post(&[]);
    assert!(
        unknown.code == 3 && unknown.err.contains("not trusted here") && unknown.err.contains("--certificates"),
        "{unknown:?}"
    );
    let place = tempfile::tempdir().unwrap();
    let others = CertificateDir::new(place.path().join("cert"));
    Authority::create(&others, "lab", SystemTime::now()).unwrap();
    let foreign = post(&["--certificates", others.path().to_str().unwrap()]);
    assert!(foreign.code == 3 && foreign.err.contains("not trusted here"), "{foreign:?}");

    // Cookies go back by https only, and browsers are told so.
    let mut stream = https.connect();
    let head = https.ask(&mut stream, "POST /api/v1/login", "{\"login\":\"zoe\",\"password\":\"correct horse\"}");
    let cookie =
        head.lines().find(|line| line.to_ascii_lowercase().starts_with("set-cookie:")).unwrap_or_else(|| panic!("{head}"));
    assert!(cookie.contains("; Secure"), "{cookie}");
    assert!(head.contains("max-age=2592000"), "{head}");
    // A request without TLS is told where it has come.
    let mut plain = TcpStream::connect(("127.0.0.1", https.port())).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https"), "{answer}");
}

#[test]
fn new_certificates_are_used_without_a_restart_and_broken_ones_are_not() {
    let https = Https::new("");
    let fingerprint = || {
        let mut stream = https.connect();
        https.whoami(&mut stream);
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    let await_that = |what: &str, is_true: &dyn Fn() -> bool| {
        let until = Instant::now() + PATIENCE;
        while !is_true() {
            assert!(Instant::now() < until, "{what}");
            std::thread::yield_now();
        }
    };
    let mut open = https.connect();
    assert!(https.whoami(&mut open).starts_with("HTTP/1.1 200"));
    let first = fingerprint();
    https.lab.site.tampu(&["--domain", "lab", "cert", "renew", "--new-key"]).ok();
    await_that("the new certificate is used", &|| fingerprint() != first);
    assert!(https.whoami(&mut open).starts_with("HTTP/1.1 200"), "connections go on");

    let second = fingerprint();
    fs::write(https.lab.certificate_dir().host(), "no certificate").unwrap();
    let said = https.lab.site.find(1, &["--domain", "lab", "--contains", "the earlier one stays", "--min-level", "Error"]);
    assert!(said[0]["message"].as_str().unwrap().contains("host.crt"), "{said:?}");
    assert_eq!(fingerprint(), second);
    drop(https.hub);
}

#[test]
fn clients_that_do_not_finish_the_handshake_are_closed_and_hold_nobody_up() {
    let https = Https::new("connections_of_one = 40\n");
    // A silent one, and one that begins a handshake and stops.
    let mut stalled: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(("127.0.0.1", https.port())).unwrap()).collect();
    for stream in stalled.iter_mut().skip(15) {
        stream.write_all(&[0x16, 3, 1, 2, 0, 1]).unwrap();
    }
    for _ in 0..5 {
        assert!(https.whoami(&mut https.connect()).starts_with("HTTP/1.1 200"));
    }
    for stream in &mut stalled {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // Closed: the end of the stream, or a reset where bytes were left unread.
        let closed = stream.read(&mut [0]);
        assert!(matches!(&closed, Ok(0)) || closed.is_err_and(|why| why.kind() == std::io::ErrorKind::ConnectionReset));
    }
    assert!(https.whoami(&mut https.connect()).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_databases_password_stands_neither_on_the_command_line_nor_in_an_open_file() {
    let site = Site::new();
    for address in ["postgres://zoe:secret@db.example.org/book", "postgres://zoe:secret@localhost/book?sslmode=verify-full"] {
        let said = site.tampu(&["book", "--data", address, "list"]);
        assert!(said.code == 2 && said.err.contains("PGPASSFILE") && !said.err.contains("secret"), "{said:?}");
    }
    let config = site.file("tampu.toml", "[book]\npostgres = \"postgres://zoe:secret@db.example.org/book\"\n");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o640)).unwrap();
    let said = site.tampu(&["up", "--config", &config]);
    assert!(said.code == 2 && said.err.contains("chmod 600") && !said.err.contains("secret"), "{said:?}");
    // With its mode mended, the address still lacks a word about encryption.
    fs::set_permissions(&config, fs::Permissions::from_mode(0o600)).unwrap();
    let said = site.tampu(&["up", "--config", &config]);
    assert!(said.code == 1 && said.err.contains("sslmode=verify-full") && !said.err.contains("secret"), "{said:?}");
}
