//! The sender of mail against a mail server of the test.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, mpsc},
    time::Duration,
};

use parking_lot::Mutex;
use tampu_logbook::{
    book::Book,
    entry::{Content, EntryRef, NewEntry},
    mail::{Mail, MailError, MailSettings, MailTls, Outbox, outbox::MailNews, purged::PurgedText},
    store::{Store, purge::Purge, sqlite::SqliteStore},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A mail server that answers RCPT as the test says, and passes on what it accepted.
struct MailServer {
    port: u16,
    accepted: mpsc::Receiver<(String, String)>,
}

type Answers = dyn Fn(&str) -> &'static str + Send + Sync;

fn serve(listener: TcpListener, answers: impl Fn(&str) -> &'static str + Send + Sync + 'static) -> MailServer {
    let port = listener.local_addr().unwrap().port();
    let (sender, accepted) = mpsc::channel();
    let answers: Arc<Answers> = Arc::new(answers);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (sender, answers) = (sender.clone(), answers.clone());
            std::thread::spawn(move || drop(converse(stream, &*answers, &sender)));
        }
    });
    MailServer { port, accepted }
}

fn converse(stream: TcpStream, answers: &Answers, accepted: &mpsc::Sender<(String, String)>) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    out.write_all(b"220 test\r\n")?;
    let (mut to, mut text, mut is_text) = (String::new(), String::new(), false);
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let answer = match line.get(..4).unwrap_or(&line) {
            "." if is_text => {
                is_text = false;
                let _ = accepted.send((to.clone(), std::mem::take(&mut text)));
                "250 taken"
            }
            _ if is_text => {
                text.push_str(&line);
                text.push('\n');
                continue;
            }
            "RCPT" => {
                to = line.clone();
                answers(&line)
            }
            "DATA" => {
                is_text = true;
                "354 go on"
            }
            "QUIT" => {
                out.write_all(b"221 bye\r\n")?;
                break;
            }
            _ => "250 ok",
        };
        out.write_all(format!("{answer}\r\n").as_bytes())?;
    }
    Ok(())
}

fn settings(port: u16) -> MailSettings {
    MailSettings {
        host: Some("127.0.0.1".to_owned()),
        port: Some(port),
        tls: MailTls::None,
        from: Some("log@example.org".to_owned()),
        retry_s: 1,
        ..MailSettings::default()
    }
}

fn mail(to: &[&str], subject: &str) -> Mail {
    let to = to.iter().map(|to| (*to).to_owned()).collect();
    Mail { to, subject: subject.to_owned(), text: "text\n".to_owned(), ..Mail::default() }
}

/// Waits until the queue is as expected.
fn until(outbox: &Outbox, expected: impl Fn(&Outbox) -> bool) {
    let begun = std::time::Instant::now();
    while !expected(outbox) {
        assert!(begun.elapsed() < PATIENCE, "{:?} {:?}", outbox.report(), outbox.mails());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn greylisted_mails_arrive_once_and_refused_ones_stay_listed() {
    let seen = Mutex::new(Vec::<String>::new());
    let server = serve(TcpListener::bind("127.0.0.1:0").unwrap(), move |rcpt| {
        let mut seen = seen.lock();
        seen.push(rcpt.to_owned());
        let first = seen.iter().filter(|known| *known == rcpt).count() == 1;
        match rcpt {
            _ if rcpt.contains("nobody") => "550 no such user",
            _ if rcpt.contains("grey") && first => "451 come back",
            _ => "250 ok",
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let (news, heard) = mpsc::channel();
    let outbox = Outbox::start(settings(server.port), dir.path(), move |one| drop(news.send(one))).unwrap();
    let id = outbox.send(&mail(&["grey@example.org", "nobody@example.org", "zoe@example.org"], "HV trip")).unwrap();
    until(&outbox, |outbox| outbox.report().waiting == 0);
    let mut got: Vec<String> = server
        .accepted
        .try_iter()
        .map(|(to, text)| {
            assert!(text.contains("Subject: HV trip"), "{text}");
            to
        })
        .collect();
    got.sort();
    assert_eq!(got, ["RCPT TO:<grey@example.org>", "RCPT TO:<zoe@example.org>"]);
    let report = outbox.report();
    assert_eq!((report.sent, report.failed, report.given_up), (2, 1, 1));
    assert!(report.repeated >= 1, "{report:?}");
    let failed = heard.recv_timeout(PATIENCE).unwrap();
    assert!(
        matches!(&failed, MailNews::Failed { to, why, .. } if to == "nobody@example.org" && why.contains("550")),
        "{failed:?}"
    );
    outbox.remove(&id).unwrap();
    assert!(matches!(outbox.remove(&id), Err(MailError::NoMail(_))));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn mails_wait_for_a_server_that_is_away_and_survive_a_restart() {
    // A port at which nobody listens: connections are refused until the server is there.
    let reserved = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = reserved.local_addr().unwrap().port();
    drop(reserved);
    let dir = tempfile::tempdir().unwrap();
    let (news, heard) = mpsc::channel();
    let outbox = Outbox::start(settings(port), dir.path(), move |one| drop(news.send(one))).unwrap();
    outbox.send(&mail(&["zoe@example.org"], "one")).unwrap();
    assert!(matches!(heard.recv_timeout(PATIENCE).unwrap(), MailNews::Away(_)));
    assert!(outbox.report().away.is_some_and(|why| why.contains(&port.to_string())));
    drop(outbox);
    let server = serve(TcpListener::bind(("127.0.0.1", port)).unwrap(), |_| "250 ok");
    let outbox = Outbox::start(settings(port), dir.path(), |_| {}).unwrap();
    outbox.send(&mail(&["tom@example.org"], "two")).unwrap();
    until(&outbox, |outbox| outbox.report().waiting == 0);
    let got: Vec<String> = server.accepted.try_iter().map(|(to, _)| to).collect();
    assert_eq!(got, ["RCPT TO:<zoe@example.org>", "RCPT TO:<tom@example.org>"]);
    assert!(outbox.test(&mail(&["zoe@example.org"], "test")).unwrap().starts_with("250"));
}

#[test]
fn a_full_queue_refuses_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    // Nobody answers there, so what was taken waits.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = MailSettings { queue: 1, ..settings(closed.local_addr().unwrap().port()) };
    drop(closed);
    let outbox = Outbox::start(settings, dir.path(), |_| {}).unwrap();
    outbox.send(&mail(&["zoe@example.org"], "one")).unwrap();
    let error = outbox.send(&mail(&["zoe@example.org"], "two")).unwrap_err();
    assert!(error.to_string().contains("[mail] queue: 1 mails"), "{error}");
}

#[test]
fn mails_about_a_purged_entry_leave_the_queue() {
    let dir = tempfile::tempdir().unwrap();
    let store: Box<dyn Store> = Box::new(SqliteStore::open(&dir.path().join("book")).unwrap());
    for book in ["Shift", "Other"] {
        store.put_book(&Book::new(book, vec![])).unwrap();
    }
    let post = || {
        let entry = NewEntry {
            book: "Shift".to_owned(),
            content: Content { text: "trip".to_owned(), ..Content::default() },
            ..NewEntry::default()
        };
        store.post(entry, vec![], "zoe").unwrap()
    };
    // Nobody answers there, so what was taken waits.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = settings(closed.local_addr().unwrap().port());
    drop(closed);
    let mails = dir.path().join("mail");
    let outbox = Outbox::start(settings, &mails, |_| {}).unwrap();
    let send = |about: &[&EntryRef]| {
        let about = about.iter().map(|&at| at.clone()).collect();
        outbox.send(&Mail { about, ..mail(&["zoe@example.org"], "HV") }).unwrap();
    };
    let (first, second, third, moved) = (post(), post(), post(), post());
    send(&[]);
    send(&[&first]);
    send(&[&second, &first]);
    send(&[&third]);
    send(&[&moved]);
    // Mails that were made before a logbook got another name, and before an entry was moved.
    store.rename_book("Shift", "Night log", "root").unwrap();
    let moved_from = EntryRef::new("Night log", moved.id);
    let there = store.move_to(&moved_from, "Other", "zoe", false).unwrap();
    let forget = |purged: PurgedText<'_>| outbox.forget(&*store, purged).unwrap();
    let purge = Purge { reason: "a password".to_owned(), ..Purge::default() };
    let purged = store.purge(&EntryRef::new("Night log", first.id), &purge, "root").unwrap();
    assert_eq!(forget(PurgedText::Entry(&purged.at)), 2);
    let purged = store.purge(&there, &purge, "root").unwrap();
    assert_eq!(forget(PurgedText::Entry(&purged.at)), 1);
    // A logbook, with the mails that named it formerly.
    send(&[&EntryRef::new("Night log", third.id)]);
    let deleted = store.delete_book("Night log", "root").unwrap();
    let deleted = store.purge_book(deleted.number, "a password", "root").unwrap();
    assert_eq!(forget(PurgedText::Book(&deleted)), 2);
    assert_eq!(outbox.mails().len(), 1, "a mail about no entry stays");
    assert_eq!(std::fs::read_dir(&mails).unwrap().count(), 2, "the files are gone, too");
}
