//! Sessions by WebSocket with the gateway of a real hub, whose HTTP server is another process.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::Instant,
};

use serde_json::{Value as Json, json};
use tampu_types::gateway::{
    Frame, Kind,
    frame::{put_sample, samples},
    messages::{Code, End, Welcome},
    put_frame,
};

use crate::site::{PATIENCE, Site};

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The address and the owner's token of the hub's logbook.
pub fn place(site: &Site) -> (String, String) {
    let text = fs::read_to_string(site.path("run/local/book.json")).unwrap();
    let place: Json = serde_json::from_str(&text).unwrap();
    (place["url"].as_str().unwrap().trim_start_matches("http://").to_owned(), place["token"].as_str().unwrap().to_owned())
}

/// A client's WebSocket.
pub struct Web {
    stream: TcpStream,
    input: Vec<u8>,
    received: u64,
}

/// The head of a handshake; further lines replace those of the same name.
fn handshake(address: &str, lines: &[(&str, &str)]) -> String {
    let mut all = vec![
        ("Host", address),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Protocol", "tampu-gateway-1"),
    ];
    all.retain(|(name, _)| !lines.iter().any(|(other, _)| other == name));
    all.extend(lines.iter().filter(|(_, value)| !value.is_empty()));
    let lines: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("GET /api/v1/gateway HTTP/1.1\r\n{lines}\r\n")
}

impl Web {
    /// Shakes hands; the error is the status and the rest of the answer.
    pub fn open(address: &str, lines: &[(&str, &str)]) -> Result<Web, (u16, String)> {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(handshake(address, lines).as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        let head = String::from_utf8(answer).unwrap().to_lowercase();
        let status = head[9..12].parse().unwrap();
        if status != 101 {
            return Err((status, head));
        }
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        assert!(head.contains("sec-websocket-protocol: tampu-gateway-1") && !head.contains("content-length"), "{head}");
        Ok(Web { stream, input: Vec::new(), received: 0 })
    }

    /// Begins a session, or is told why not.
    pub fn begin(mut self, hello: Json) -> Result<(Web, Welcome), End> {
        self.json(Kind::Hello, 0, 0, hello);
        match self.frame().unwrap() {
            (Kind::Welcome, _, body) => Ok((self, serde_json::from_slice(&body).unwrap())),
            (Kind::Bye, _, body) => Err(serde_json::from_slice(&body).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    fn send(&mut self, first: u8, payload: &[u8]) {
        let mut bytes = vec![first];
        match payload.len() {
            short @ 0..126 => bytes.push(0x80 | short as u8),
            length => {
                bytes.push(0xff);
                bytes.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&[9, 8, 7, 6]);
        bytes.extend(payload.iter().zip([9u8, 8, 7, 6].iter().cycle()).map(|(byte, mask)| byte ^ mask));
        // The hub may have closed it already.
        let _ = self.stream.write_all(&bytes);
    }

    pub fn put(&mut self, kind: Kind, id: u32, number: u64, body: &[u8]) {
        let mut bytes = Vec::new();
        put_frame(&mut bytes, kind, 0, id, number, body);
        self.send(0x80 | BINARY, &bytes);
    }

    pub fn json(&mut self, kind: Kind, id: u32, number: u64, body: Json) {
        self.put(kind, id, number, body.to_string().as_bytes());
    }

    /// The next message: its kind and payload; none at the end.
    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some((kind, from, length)) = self.head()
                && self.input.len() >= from + length
            {
                let payload = self.input[from..from + length].to_vec();
                self.input.drain(..from + length);
                return Some((kind, payload));
            }
            let mut buffer = [0; 65_536];
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.input.extend_from_slice(&buffer[..length]),
            }
        }
    }

    fn head(&self) -> Option<(u8, usize, usize)> {
        let input = &self.input;
        let (kind, short) = (*input.first()? & 15, usize::from(*input.get(1)?));
        match short {
            126 => Some((kind, 4, usize::from(u16::from_be_bytes(*input.get(2..)?.first_chunk()?)))),
            127 => Some((kind, 10, u64::from_be_bytes(*input.get(2..)?.first_chunk()?) as usize)),
            length => Some((kind, 2, length)),
        }
    }

    /// The next frame that is no beat: kind, id and body; an error is the code of the closing frame.
    pub fn frame(&mut self) -> Result<(Kind, u32, Vec<u8>), u16> {
        loop {
            let (kind, payload) = self.message().ok_or(0u16)?;
            if kind == CLOSE {
                return Err(u16::from_be_bytes(payload[..2].try_into().unwrap()));
            }
            assert_eq!(kind, BINARY);
            let (frame, rest) = Frame::first(&payload, u32::MAX).unwrap().unwrap();
            assert!(rest.is_empty(), "a message is one frame");
            if frame.header.number > 0 {
                assert_eq!(frame.header.number, self.received + 1);
                self.received += 1;
            }
            if frame.header.kind != Kind::Ack {
                return Ok((frame.header.kind, frame.header.id, frame.body.to_vec()));
            }
        }
    }

    pub fn frame_of(&mut self, wanted: Kind) -> Vec<u8> {
        loop {
            let (kind, _, body) = self.frame().unwrap();
            if kind == wanted {
                return body;
            }
        }
    }

    /// The code of the closing frame, and the BYE before it.
    pub fn end(&mut self) -> (u16, Option<End>) {
        let mut end = None;
        loop {
            match self.frame() {
                Ok((Kind::Bye, _, body)) => end = Some(serde_json::from_slice(&body).unwrap()),
                Ok(_) => {}
                Err(code) => return (code, end),
            }
        }
    }
}

pub fn hello() -> Json {
    json!({ "versions": [1], "source": "web" })
}

pub fn sample(text: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    put_sample(&mut body, text);
    body
}

/// A hub whose rules let the logbook's user zoe, who exists, read the weather.
pub fn hub_with_zoe(site: &Site) -> crate::site::Hub {
    let policy = site.file("policy.toml", "[[allow]]\nwho = \"user:zoe\"\nmay = [\"read\"]\nwhat = \"weather/**\"\n");
    let config = site.file("tampu.toml", format!("[access]\npolicy = \"{policy}\"\n"));
    let hub = site.hub_of_roles(&["--config", &config]);
    book_users(site, b"correct horse\n", &["add", "zoe"]);
    hub
}

/// Changes users through the hub.
pub fn book_users(site: &Site, input: &[u8], arguments: &[&str]) {
    site.tampu_without("TAMPU_DATA_DIR", input, &[&["book", "users"], arguments].concat()).ok();
}

/// The cookie of a login.
pub fn cookie(address: &str) -> String {
    let body = json!({ "login": "zoe", "password": "correct horse" });
    let answer = ureq::post(format!("http://{address}/api/v1/login"))
        .header("content-type", "application/json")
        .send(body.to_string())
        .unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn a_browser_has_a_session_with_its_own_rights_that_goes_on_after_a_lost_connection() {
    let site = Site::new();
    let _hub = hub_with_zoe(&site);
    let (address, token) = place(&site);
    let bearer = format!("Bearer {token}");
    let (mut owner, welcome) = Web::open(&address, &[("Authorization", &bearer)]).unwrap().begin(hello()).unwrap();
    assert!(welcome.principal.starts_with("user "), "{welcome:?}");
    owner.json(Kind::Declare, 1, 1, json!({ "topic": "weather/wind" }));
    owner.frame_of(Kind::Opened);

    let (cookie, origin) = (cookie(&address), format!("http://{address}"));
    let lines = [("Cookie", cookie.as_str()), ("Origin", origin.as_str())];
    let (mut zoe, welcome) = Web::open(&address, &lines).unwrap().begin(hello()).unwrap();
    assert_eq!(welcome.principal, "the logbook's user 'zoe'");
    zoe.json(Kind::Open, 1, 1, json!({ "topics": ["weather/*"], "from": "held", "credit": 1_000_000 }));
    zoe.frame_of(Kind::Opened);
    zoe.json(Kind::Open, 2, 2, json!({ "topics": ["log/*"] }));
    let end: End = serde_json::from_slice(&zoe.frame_of(Kind::Ended)).unwrap();
    assert_eq!(end.code, Code::Denied);
    zoe.json(Kind::Declare, 3, 3, json!({ "topic": "weather/wind" }));
    let end: End = serde_json::from_slice(&zoe.frame_of(Kind::Ended)).unwrap();
    assert_eq!(end.code, Code::Denied);

    owner.put(Kind::Publish, 1, 2, &sample(b"one"));
    let shown = |web: &mut Web| -> Vec<Vec<u8>> {
        let data = web.frame_of(Kind::Data);
        let (_, body) = tampu_types::BatchHeader::decode(&data).unwrap();
        samples(body).map(|sample| sample.unwrap().to_vec()).collect()
    };
    assert_eq!(shown(&mut zoe), [b"one"]);
    let received = zoe.received;
    drop(zoe);
    owner.put(Kind::Publish, 1, 3, &sample(&[7; 200_000]));
    let again = json!({ "versions": [1], "session": welcome.session, "received": received.to_string() });
    // Another principal does not get the session.
    let (_, other) = Web::open(&address, &[("Authorization", &bearer)]).unwrap().begin(again.clone()).unwrap();
    assert!(!other.resumed);
    let mut zoe = Web::open(&address, &lines).unwrap();
    zoe.received = received;
    let (mut zoe, welcome) = zoe.begin(again).unwrap();
    assert!(welcome.resumed && welcome.received.0 == 3, "{welcome:?}");
    assert_eq!(shown(&mut zoe), [[7; 200_000]]);
    // A ping is answered, and BYE ends in order.
    zoe.send(0x80 | PING, b"here?");
    loop {
        match zoe.message().unwrap() {
            (PONG, payload) => break assert_eq!(payload, b"here?"),
            (kind, _) => assert_eq!(kind, BINARY),
        }
    }
    // The rights end with the login.
    book_users(&site, b"", &["disable", "zoe"]);
    let (_, end) = zoe.end();
    assert_eq!(end.unwrap().code, Code::Unauthenticated);
    owner.put(Kind::Bye, 0, 0, b"{}");
    assert_eq!(owner.end().0, 1000);
}

#[test]
fn who_may_not_be_there_is_refused_before_a_session_begins() {
    let site = Site::new();
    let _hub = hub_with_zoe(&site);
    let (address, token) = place(&site);
    let (bearer, cookie, origin) = (format!("Bearer {token}"), cookie(&address), format!("http://{address}"));
    let refused = |lines: &[(&str, &str)]| Web::open(&address, lines).err().map_or(101, |(status, _)| status);
    // A page of another site: the browser would send the cookie.
    for elsewhere in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        assert_eq!(refused(&[("Cookie", &cookie), ("Origin", elsewhere)]), 403, "{elsewhere}");
    }
    assert_eq!(refused(&[("Cookie", &cookie), ("Sec-Fetch-Site", "cross-site"), ("Origin", &origin)]), 403);
    assert_eq!(refused(&[("Host", "evil.example"), ("Authorization", &bearer)]), 421);
    assert_eq!(refused(&[("Authorization", "Bearer wrong")]), 401);
    assert_eq!(refused(&[("Upgrade", "")]), 400);
    assert_eq!(refused(&[("Sec-WebSocket-Key", "short")]), 400);
    assert_eq!(refused(&[("Sec-WebSocket-Protocol", "chat")]), 400);
    let (status, head) = Web::open(&address, &[("Sec-WebSocket-Version", "8")]).err().unwrap();
    assert!(status == 426 && head.contains("sec-websocket-version: 13"), "{head}");

    // A visitor, and a token that is none. HELLO's token counts before a cookie.
    let open = |lines: &[(&str, &str)]| Web::open(&address, lines).unwrap();
    let end = open(&[]).begin(hello()).err().unwrap();
    assert_eq!(end.code, Code::Unauthenticated, "{end:?}");
    let with = |token: &str| json!({ "versions": [1], "token": token });
    let end = open(&[("Cookie", &cookie)]).begin(with("wrong")).err().unwrap();
    assert_eq!(end.code, Code::Unauthenticated, "{end:?}");
    let (_, welcome) = open(&[("Cookie", &cookie)]).begin(with(&token)).unwrap();
    assert!(welcome.principal.starts_with("user "), "{welcome:?}");
}

#[test]
fn bad_and_half_open_web_sockets_end_and_the_hub_lives_on() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let (address, token) = place(&site);
    let bearer = format!("Bearer {token}");
    let open = || Web::open(&address, &[("Authorization", &bearer)]).unwrap();
    let begun = || open().begin(hello()).unwrap().0;
    let code = |(code, end): (u16, Option<End>)| (code, end.map(|end| end.code));
    let protocol = Some(Code::Protocol);
    // Before HELLO a message is short, and the first one is HELLO.
    let mut web = open();
    web.send(0x80 | BINARY, &vec![0; 100_000]);
    assert_eq!(code(web.end()), (1009, protocol));
    let mut web = open();
    web.put(Kind::Ack, 0, 0, &[0; 8]);
    assert_eq!(code(web.end()), (1002, protocol));
    // After HELLO: an announced length, two frames in one message, half a frame, no mask, an unknown kind.
    let mut web = begun();
    web.stream.write_all(&[0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4]).unwrap();
    assert_eq!(code(web.end()), (1009, protocol));
    let mut frame = Vec::new();
    put_frame(&mut frame, Kind::Ack, 0, 0, 0, &[0; 8]);
    for wrong in [[&frame[..], &frame].concat(), frame[..30].to_vec(), b"{}".to_vec()] {
        let mut web = begun();
        web.send(0x80 | BINARY, &wrong);
        assert_eq!(code(web.end()), (1002, protocol));
    }
    for wrong in [&[0x82, 0][..], &[0x83, 0x80, 0, 0, 0, 0], &[0xc2, 0x80, 0, 0, 0, 0]] {
        let mut web = begun();
        web.stream.write_all(wrong).unwrap();
        assert_eq!(code(web.end()), (1002, protocol));
    }
    // What the gateway itself refuses reaches the client as well.
    let mut web = begun();
    web.put(Kind::Close, 1, 77, &[]);
    assert_eq!(code(web.end()), (1000, protocol));

    // Connections of one address that say nothing have a bound, and the pages have the rest.
    let mut silent = Vec::new();
    let end = Instant::now() + PATIENCE;
    let status = loop {
        assert!(Instant::now() < end, "no bound");
        match Web::open(&address, &[]) {
            Ok(web) => silent.push(web),
            Err((status, _)) => break status,
        }
        assert!(silent.len() <= 32);
    };
    assert!(status == 503 && silent.len() >= 28, "{status} after {}", silent.len());
    let page = ureq::get(format!("http://{address}/api/v1/whoami")).header("authorization", &bearer).call();
    assert!(page.is_ok(), "{page:?}");
    // A half-open one ends by itself.
    assert_eq!(code(silent[0].end()), (1002, protocol));
    drop(silent);
    let mut alive = loop {
        assert!(Instant::now() < end, "places are not free again");
        if let Ok(web) = Web::open(&address, &[("Authorization", &bearer)]) {
            break web.begin(hello()).unwrap().0;
        }
    };
    alive.json(Kind::Declare, 1, 1, json!({ "topic": "weather/wind" }));
    alive.frame_of(Kind::Opened);
}

#[test]
fn a_hub_without_a_gateway_says_so() {
    let site = Site::new();
    let config = site.file("tampu.toml", "[gateway]\nenabled = false\n");
    let _hub = site.hub(&["--config", &config]);
    let (address, _) = place(&site);
    assert_eq!(Web::open(&address, &[]).err().map(|(status, _)| status), Some(503));
}

/// Sends a frame in the JSON form.
fn say(web: &mut Web, frame: Json) {
    web.send(0x80 | TEXT, frame.to_string().as_bytes());
}

/// The next frame in the JSON form that is no beat.
fn hear(web: &mut Web) -> Json {
    loop {
        let (kind, payload) = web.message().expect("the connection ended");
        assert_eq!(kind, TEXT, "{payload:?}");
        let frame: Json = serde_json::from_slice(&payload).unwrap();
        if let Some(number) = frame["number"].as_str() {
            assert_eq!(number.parse(), Ok(web.received + 1));
            web.received += 1;
        }
        if frame["kind"] != "ack" {
            return frame;
        }
        // Each beat is answered with one.
        let received = web.received.to_string();
        say(web, json!({ "kind": "ack", "body": { "value": received } }));
    }
}

/// The body of the next frame of this kind.
fn hear_of(web: &mut Web, kind: &str) -> Json {
    loop {
        let mut frame = hear(web);
        if frame["kind"] == kind {
            return frame["body"].take();
        }
        assert!(frame["kind"] != "bye" && frame["kind"] != "ended", "{frame}");
    }
}

#[test]
fn a_session_in_the_json_form_has_readings_records_and_answers() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let (address, token) = place(&site);
    let open = || Web::open(&address, &[]).unwrap();
    let hello = json!({ "versions": [1], "source": "web", "token": token });
    let mut web = open();
    say(&mut web, json!({ "kind": "hello", "body": hello }));
    let session = hear_of(&mut web, "welcome")["session"].clone();

    say(
        &mut web,
        json!({ "kind": "declare", "id": 1, "number": "1", "body":
        { "attribute": { "name": "test/web/cryo/temperature", "data_type": "DevDouble", "format": "scalar", "unit": "K" } } }),
    );
    hear_of(&mut web, "opened");
    say(
        &mut web,
        json!({ "kind": "publish", "id": 1, "number": "2", "flags": 1, "body":
        { "samples": [{ "type": "DevDouble", "value": 4.25, "quality": "warning", "kinds": ["change"] }] } }),
    );
    assert_eq!(hear_of(&mut web, "receipt")["written"], "1");
    say(
        &mut web,
        json!({ "kind": "open", "id": 2, "number": "3", "body": { "attributes": ["test/web/*/*"], "credit": 100_000 } }),
    );
    let attribute = hear_of(&mut web, "attribute");
    assert_eq!(attribute["config"]["unit"], "K");
    let events = hear_of(&mut web, "events");
    let event = &events["events"][0];
    assert_eq!((&event["attribute"], &event["reason"]), (&attribute["attribute"], &json!("first")));
    assert_eq!((&event["event"]["value"], &event["event"]["quality"]), (&json!(4.25), &json!("warning")));
    assert!(events["bytes"].as_u64() > Some(90), "{events}");

    say(
        &mut web,
        json!({ "kind": "open", "id": 3, "number": "4", "body":
        { "topics": ["log/*"], "since": "2020-01-01T00:00:00Z", "query": { "text": "cable wrap" }, "credit": 1_000_000 } }),
    );
    hear_of(&mut web, "opened");
    site.tampu(&["log", "send", "--level", "warning", "--acknowledged", "kept", "cable wrap"]).ok();
    let data = hear_of(&mut web, "data");
    assert_eq!(data["samples"][0]["records"][0]["message"], "cable wrap", "{data}");
    assert!(data["bytes"].as_u64() > Some(72) && data["type"] == 2, "{data}");

    // Another connection goes on in the middle, in another form even.
    let received = web.received;
    drop(web);
    let again = json!({ "versions": [1], "token": token, "session": session, "received": received.to_string() });
    let mut bytes = open();
    bytes.received = received;
    let (bytes, welcome) = bytes.begin(again).unwrap();
    assert!(welcome.resumed && welcome.received.0 == 4);
    let received = bytes.received;
    drop(bytes);
    let mut web = open();
    web.received = received;
    let again = json!({ "versions": [1], "token": token, "session": session, "received": received.to_string() });
    say(&mut web, json!({ "kind": "hello", "body": again }));
    assert_eq!(hear_of(&mut web, "welcome")["resumed"], true);
    say(
        &mut web,
        json!({ "kind": "ask", "id": 4, "number": "5", "body":
        { "service": "log/stat", "timeout_ms": 10_000, "question": {} } }),
    );
    assert!(hear_of(&mut web, "part")["content"]["total"].as_u64() > Some(0));
    assert_eq!(hear_of(&mut web, "ended")["code"], "done");
    // A sample of a topic has no type.
    say(&mut web, json!({ "kind": "declare", "id": 5, "number": "6", "body": { "topic": "weather/wind" } }));
    say(
        &mut web,
        json!({ "kind": "open", "id": 6, "number": "7", "body": { "topics": ["weather/*"], "from": "held", "credit": 10_000 } }),
    );
    say(&mut web, json!({ "kind": "publish", "id": 5, "number": "8", "flags": 1, "body": { "samples": ["AQID"] } }));
    assert_eq!(hear_of(&mut web, "data")["samples"], json!([{ "base64": "AQID" }]));

    // What is wrong has its reason, in the same form; bytes are of another form.
    for (frame, code, words) in [
        (json!({ "kind": "publish", "id": 5, "number": "9", "body": { "samples": [7] } }), 1002, "sample 0"),
        (json!({ "kind": "nothing" }), 1002, "'nothing'"),
        (json!(null), 1003, "form of HELLO"),
    ] {
        let mut web = open();
        say(&mut web, json!({ "kind": "hello", "body": hello }));
        hear_of(&mut web, "welcome");
        if frame.is_null() {
            web.send(0x80 | BINARY, &[0; 24]);
        } else {
            say(&mut web, frame);
        }
        let bye = hear(&mut web);
        assert!(bye["kind"] == "bye" && bye["body"]["error"].as_str().unwrap().contains(words), "{bye}");
        assert_eq!(web.message().unwrap(), (CLOSE, u16::to_be_bytes(code).to_vec()));
    }
}
