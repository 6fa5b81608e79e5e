//! Entries by mail, by a client that speaks LMTP as an MTA does.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::json;
use tampu_elog::site_zone::{self, DatesOfZone, SourceZone};
use tampu_logbook::{
    mail::{
        MailSettings, MailTls,
        settings::{MailIn, MailInAddress},
    },
    store::sqlite::SqliteStore,
};

use crate::site::Site;

fn site() -> Site {
    Site::configured(|config| {
        config.mail = MailSettings {
            host: Some("127.0.0.1".to_owned()),
            // Nobody listens at this port.
            port: Some(1),
            tls: MailTls::None,
            from: Some("Logbook <logbook@example.org>".to_owned()),
            input: Some(MailIn {
                listen: MailInAddress::try_from("127.0.0.1:0".to_owned()).unwrap(),
                books: [("shift".to_owned(), "Shift".to_owned()), ("closed".to_owned(), "Closed".to_owned())].into(),
                domain: None,
                max_mb: 1,
            }),
            ..MailSettings::default()
        };
    })
}

/// An MTA in a conversation.
struct Mta(BufReader<TcpStream>);

impl Mta {
    fn new(port: SocketAddr) -> Mta {
        let stream = TcpStream::connect(port).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut mta = Mta(BufReader::new(stream));
        assert!(mta.answer().starts_with("220 "));
        let greeted = mta.say("LHLO mta.example.org");
        assert!(greeted.starts_with("250") && greeted.contains("SIZE 1048576"), "{greeted}");
        mta
    }

    /// Reads an answer to its last line.
    fn answer(&mut self) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "closed after {all}");
            all.push_str(&line);
            if line.as_bytes().get(3) == Some(&b' ') {
                return all.trim_end().to_owned();
            }
        }
    }

    fn say(&mut self, line: &str) -> String {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
        self.answer()
    }

    /// Delivers a mail to one address, and returns the last answer.
    fn deliver(&mut self, to: &str, text: &str) -> String {
        self.say("RSET");
        assert!(self.say("MAIL FROM:<bounce@example.org>").starts_with("250"));
        let accepted = self.say(&format!("RCPT TO:<{to}>"));
        if !accepted.starts_with("250") {
            return accepted;
        }
        assert!(self.say("DATA").starts_with("354"));
        let text = text.replace('\n', "\r\n").replace("\r\n.", "\r\n..");
        self.say(&format!("{text}\r\n."))
    }
}

const MAIL: &str = "From: =?utf-8?q?Zo=C3=AB?= <Zoe@example.org>\nTo: shift+x@log.example.org\nSubject: =?utf-8?q?HV_l=C3=B6st_aus?=\n\
    Message-ID: <1@example.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
    --b\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n\
    Type: Problem\nSystem: RICH1 | HLT\n\nKanal 7 l=F6ste aus.\n..\n.\nEnde\n\
    --b\nContent-Type: image/png; name=plot.png\nContent-Disposition: attachment; filename=\"../../plot.png\"\n\
    Content-Transfer-Encoding: base64\n\niVBORw==\n--b--\n";

#[test]
fn a_mail_of_a_user_is_an_entry() {
    let site = site();
    site.shift();
    site.owner().put("/books/Closed", json!({ "name": "Closed", "attributes": [] })).is(201);
    let zoe = site.user(json!({ "login": "zoe", "full_name": "Zoë", "email": "zoe@example.org" }));
    let grants = json!({ "grants": [{ "to": "user:zoe", "may": ["read", "write"] }], "policy": { "kind": "free" } });
    site.owner().put("/books/Shift/access", grants).is(200);
    site.owner().put("/books/Closed/access", json!({ "grants": [], "policy": { "kind": "free" } })).is(200);
    let mut mta = Mta::new(site.hub.as_ref().unwrap().book().unwrap().mail_port().unwrap());

    assert_eq!(mta.deliver("Shift+x@log.example.org", MAIL), "250 2.0.0 entry 1 of Shift");
    let entry = zoe.get("/books/Shift/entries/1").is(200).json();
    assert_eq!((&entry["by"], &entry["text"]), (&json!("zoe"), &json!("Kanal 7 löste aus.\n..\n.\nEnde")));
    let said = |name: &str| {
        let all = entry["attributes"].as_array().unwrap();
        all.iter().find(|said| said["name"] == name).map(|said| said["values"].clone()).unwrap_or_default()
    };
    assert_eq!((said("Subject"), said("System")), (json!(["HV löst aus"]), json!(["RICH1", "HLT"])), "{entry}");
    assert_eq!((said("Type"), said("Author")), (json!(["Problem"]), json!(["Zoë"])));
    assert_eq!((&entry["attachments"][0]["name"], &entry["attachments"][0]["size"]), (&json!("plot.png"), &json!(4)));
    // The answer was lost, and the MTA sends it again.
    assert_eq!(mta.deliver("shift@log.example.org", MAIL), "250 2.0.0 it is entry 1 already");

    let mail = |headers: &str, text: &str| format!("From: zoe@example.org\n{headers}\n\n{text}");
    let reply = mail(
        "Message-ID: <2@example.org>\nIn-Reply-To: <entry.1.Shift@example.org>\nContent-Type: text/html",
        "<p>Author: Max<br>see &lt;to&gt; it<script>x</script></p>",
    );
    assert_eq!(mta.deliver("shift@log.example.org", &reply), "250 2.0.0 entry 2 of Shift");
    let entry = zoe.get("/books/Shift/entries/2").is(200).json();
    assert_eq!((&entry["parent"], &entry["encoding"]), (&json!(1), &json!("plain")));
    assert!(entry["text"].as_str().unwrap().contains("see <to> it"), "{entry}");
    let authors: Vec<_> = entry["attributes"].as_array().unwrap().iter().filter(|said| said["name"] == "Author").collect();
    assert_eq!(authors, [&json!({ "name": "Author", "values": ["Zoë"] })], "a line of the mail names no other author");

    // An import beside the running hub stores the local time of the site.
    let store = SqliteStore::open(&site.directory().join("book")).unwrap();
    site_zone::store(&store, &SourceZone::chosen("Asia/Tokyo").unwrap(), DatesOfZone::default()).unwrap();
    drop(store);
    assert_eq!(mta.deliver("shift@x", &mail("", "late")), "250 2.0.0 entry 3 of Shift");
    assert_eq!(zoe.get("/books/Shift/entries/3").is(200).json()["zone"], 540);

    for (to, text, expected) in [
        ("other@log.example.org", mail("", "x"), "550 5.1.1 other@log.example.org is no logbook"),
        ("shift@x", "From: max@example.org\n\nx".to_owned(), "550 5.7.1 max@example.org is not the address of a user"),
        ("shift@x", "From: zoe@example.org, max@example.org\n\nx".to_owned(), "550 5.7.1 a mail for the logbook has one address"),
        ("shift@x", "Subject: x\n\nx".to_owned(), "550 5.7.1 a mail for the logbook has one address"),
        ("closed@x", mail("", "x"), "550 5.7.1 'zoe' may not write to the logbook"),
        ("shift@x", mail("Auto-Submitted: auto-replied", "x"), "550 5.7.1 a mail that a program sent"),
        ("shift@x", mail("Message-ID: <entry.1.Shift@example.org>", "x"), "550 5.7.1 this mail is one of the logbook's own"),
        ("shift@x", mail("", "Type: Unheard of\n\nx"), "550 5.7.1 "),
        // 30 000 levels of mails in mails: the parser's values would not fit into the stack.
        (
            "shift@x",
            mail("", "x").replace("\n\n", &"\nContent-Type: message/rfc822\n\n".repeat(30_000)),
            "550 5.7.1 the mail has more than 1000 parts",
        ),
        (
            "shift@x",
            mail("Content-Type: multipart/digest; boundary=b", &"--b\n\n".repeat(20_000)),
            "550 5.7.1 the mail has more than 10000 lines",
        ),
        ("shift@x", mail("", &"long ".repeat(250_000)), "550 5.7.1 the mail is longer than 1 MiB"),
    ] {
        let answer = mta.deliver(to, &text);
        assert!(answer.starts_with(expected), "{answer} for {}", &text[..text.len().min(200)]);
    }
    // A report about another mail has no sender.
    mta.say("RSET");
    assert!(mta.say("MAIL FROM:<>").starts_with("250") && mta.say("RCPT TO:<shift@x>").starts_with("250"));
    assert!(mta.say("DATA").starts_with("354") && mta.say(&format!("{}\r\n.", mail("", "x"))).starts_with("550"));
    for (command, code) in [("DATA", "503"), ("RCPT TO:<shift@x>", "503"), ("MAIL zoe", "501"), ("EHLO x", "500"), ("WHO", "502")]
    {
        assert!(mta.say(command).starts_with(code), "{command}");
    }
    assert!(mta.say("MAIL FROM:<a@b> SIZE=99999999").starts_with("552"));
    assert!(mta.say("QUIT").starts_with("221"));
    let books = site.hub.as_ref().unwrap().book().unwrap().store().books().unwrap();
    assert_eq!(books.iter().map(|info| info.entries).sum::<u64>(), 3);
}

/// The time so many days ago, in nanoseconds.
fn days_ago(days: i64) -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_nanos()).unwrap() - days * 86_400_000_000_000
}

#[test]
fn mails_that_no_server_sends_again_are_forgotten() {
    let site = site();
    site.shift();
    site.user(json!({ "login": "zoe", "email": "zoe@example.org" }));
    let grants = json!({ "grants": [{ "to": "user:zoe", "may": ["read", "write"] }], "policy": { "kind": "free" } });
    site.owner().put("/books/Shift/access", grants).is(200);
    let store = site.hub.as_ref().unwrap().book().unwrap().store();
    let known = || -> Vec<String> { store.records("mail-in").unwrap().into_iter().map(|(name, _)| name).collect() };
    let keep =
        |name: &str, days: i64| store.put_record("mail-in", name, &json!({ "id": 1, "at": days_ago(days) }), None).unwrap();
    keep("old", 31);
    keep("young", 29);
    let mut mta = Mta::new(site.hub.as_ref().unwrap().book().unwrap().mail_port().unwrap());
    let mail = |id: &str| format!("From: zoe@example.org\nMessage-ID: <{id}@example.org>\n\nx");
    assert_eq!(mta.deliver("shift@x", &mail("1")), "250 2.0.0 entry 1 of Shift");
    let left = known();
    assert_eq!((left.len(), left.iter().any(|name| name == "old")), (2, false), "{left:?}");
    assert!(left.iter().any(|name| name == "young"), "{left:?}");
    // The next removal is a day later, and the mails of this hour are known until then.
    keep("old", 31);
    assert_eq!(mta.deliver("shift@x", &mail("2")), "250 2.0.0 entry 2 of Shift");
    assert_eq!(mta.deliver("shift@x", &mail("1")), "250 2.0.0 it is entry 1 already");
    assert_eq!(known().len(), 4);
}

#[test]
fn only_this_computer_gives_mails_in() {
    for good in ["127.0.0.1:2424", "[::1]:24", "/run/tampu-mail/lmtp.sock"] {
        assert!(MailInAddress::try_from(good.to_owned()).is_ok(), "{good}");
    }
    for bad in ["0.0.0.0:2424", "192.0.2.1:24", "[::]:24", "lmtp.sock", ""] {
        assert!(MailInAddress::try_from(bad.to_owned()).is_err(), "{bad}");
    }
}
