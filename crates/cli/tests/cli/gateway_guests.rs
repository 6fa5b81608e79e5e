//! Sessions of guests: none without a rule of the site, then what the rules give, within smaller bounds than those of users.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};
use tampu_types::gateway::{
    Kind,
    messages::{Code, End},
    question::Ask,
};

use crate::{
    gateway_web::{Web, book_users, cookie, hello, place, sample},
    site::{PATIENCE, Site},
};

const OF_ZOE: &str = "[[allow]]\nwho = \"user:zoe\"\nmay = [\"read\"]\nwhat = \"weather/**\"\n";
const OF_GUESTS: &str = "[[allow]]\nwho = \"guest\"\nmay = [\"read\"]\nwhat = \"weather/**\"\n";
/// Connections of guests of one address.
const GUESTS_OF_ONE: usize = 8;

/// Returns whether a guest is offered live data.
fn is_offered(address: &str) -> bool {
    let mut answer = ureq::get(format!("http://{address}/api/v1/capabilities")).call().unwrap();
    let capabilities: Json = serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
    assert_eq!(capabilities["guest"], true, "{capabilities}");
    ["log", "levels", "set_levels", "event", "history", "bulk", "site"]
        .iter()
        .for_each(|view| assert_eq!(capabilities[view], false));
    capabilities["gateway"] == true
}

fn ended(web: &mut Web) -> Code {
    let end: End = serde_json::from_slice(&web.frame_of(Kind::Ended)).unwrap();
    end.code
}

#[test]
fn guests_get_nothing_by_default_and_then_what_rules_give_within_bounds() {
    let site = Site::new();
    let policy = site.file("policy.toml", OF_ZOE);
    let config = site.file("tampu.toml", format!("[access]\npolicy = \"{policy}\"\n"));
    let _hub = site.hub_of_roles(&["--config", &config]);
    book_users(&site, b"correct horse\n", &["add", "zoe"]);
    let (address, token) = place(&site);
    let guest = || Web::open(&address, &[]).unwrap().begin(hello());
    assert_eq!(guest().err().unwrap().code, Code::Unauthenticated, "no rule is about guests");
    assert!(!is_offered(&address));

    fs::write(&policy, format!("{OF_ZOE}{OF_GUESTS}")).unwrap();
    let until = Instant::now() + PATIENCE;
    let (mut one, welcome) = loop {
        match guest() {
            Ok(begun) => break begun,
            Err(end) => assert!(Instant::now() < until, "{end:?}"),
        }
    };
    assert_eq!(welcome.principal, "a guest");
    assert!(is_offered(&address));

    // What the rule gives, and nothing else.
    let bearer = format!("Bearer {token}");
    let (mut owner, _) = Web::open(&address, &[("Authorization", &bearer)]).unwrap().begin(hello()).unwrap();
    owner.json(Kind::Declare, 1, 1, json!({ "topic": "weather/wind" }));
    owner.frame_of(Kind::Opened);
    owner.put(Kind::Publish, 1, 2, &sample(b"calm"));
    // The gateway is another process, and reads the rules a moment later.
    let mut number = 0;
    let mut next = || {
        number += 1;
        number
    };
    let until = Instant::now() + PATIENCE;
    loop {
        one.json(Kind::Open, 1, next(), json!({ "topics": ["weather/*"], "from": "held", "credit": 100_000 }));
        match one.frame().unwrap() {
            (Kind::Opened, ..) => break,
            (kind, _, body) => assert!(kind == Kind::Ended && Instant::now() < until, "{}", String::from_utf8_lossy(&body)),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    one.frame_of(Kind::Data);
    let refused = [
        (Kind::Open, json!({ "topics": ["log/*"] })),
        (Kind::Open, json!({ "attributes": ["lab/*"] })),
        (Kind::Declare, json!({ "topic": "weather/wind" })),
    ];
    for (kind, body) in refused {
        one.json(kind, 10, next(), body.clone());
        assert_eq!(ended(&mut one), Code::Denied, "{kind:?} {body}");
    }
    for service in ["log/query", "log/levels", "log/archive", "event/list", "bulk/transfers", "hub/roles", "site/host"] {
        let mut body = Vec::new();
        Ask { timeout_ms: 1000, all: false, service, question: b"" }.encode(&mut body);
        one.put(Kind::Ask, 20, next(), &body);
        assert_eq!(ended(&mut one), Code::Denied, "{service}");
    }

    // Bounds: subscriptions of a session, connections of an address. Users have places of their own.
    let many: Vec<String> = (0..16).map(|number| format!("weather/{number}")).collect();
    one.json(Kind::Open, 30, next(), json!({ "topics": many }));
    assert_eq!(ended(&mut one), Code::Limit, "one more than 16");
    let others: Vec<Web> = (1..GUESTS_OF_ONE).map(|_| guest().unwrap().0).collect();
    assert_eq!(guest().err().unwrap().code, Code::Limit);
    let zoe = cookie(&address);
    assert!(Web::open(&address, &[("Cookie", &zoe)]).unwrap().begin(hello()).is_ok());
    drop(others);
    let until = Instant::now() + PATIENCE;
    while let Err(end) = guest() {
        assert!(end.code == Code::Limit && Instant::now() < until, "places are free again: {end:?}");
    }

    // Without the rule the sessions end.
    fs::write(&policy, OF_ZOE).unwrap();
    assert_eq!(one.end().1.unwrap().code, Code::Unauthenticated);
    let until = Instant::now() + PATIENCE;
    while guest().is_ok() {
        assert!(Instant::now() < until);
    }
    assert!(!is_offered(&address));
}
