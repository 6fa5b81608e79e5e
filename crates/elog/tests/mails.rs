//! Mails about entries, as ELOG's options ask for them. The mail server is away: what would be sent waits in the queue.

#[path = "support/accounts.rs"]
mod accounts;
#[path = "support/desk.rs"]
mod desk;

use std::{fs, path::PathBuf, sync::Arc};

use accounts::Visitors;
use tampu_logbook::{
    mail::{MailSettings, MailTls, Outbox},
    people::access::{Access, Subject},
};

const BOOK: &str = "[Shift]\nAttributes = Author, Type, Systems, Subject, Copy\nOptions Type = Routine{r}, Problem, Big one\n\
    MOptions Systems = RICH, Muon\nExtendable Options = Type\nPreset Author = $long_name\n";

/// A site whose mails stay in a queue.
struct MailDesk {
    visitors: Visitors,
    outbox: Arc<Outbox>,
    queue: PathBuf,
    _dir: tempfile::TempDir,
}

/// A mail of the queue: recipients of the envelope, and its text with its lines unfolded.
struct Queued {
    to: Vec<String>,
    text: String,
}

impl Queued {
    fn header(&self, name: &str) -> &str {
        let head = self.text.split("\r\n\r\n").next().unwrap_or_default();
        let begin = format!("{name}: ");
        head.lines().find_map(|line| line.strip_prefix(&begin)).unwrap_or_else(|| panic!("no {name} in {head}"))
    }
}

impl MailDesk {
    fn new(options: &str) -> MailDesk {
        let dir = tempfile::tempdir().unwrap();
        let queue = dir.path().join("mail");
        let settings = MailSettings {
            host: Some("127.0.0.1".to_owned()),
            // Nobody listens at this port.
            port: Some(1),
            tls: MailTls::None,
            from: Some("Logbook <logbook@example.org>".to_owned()),
            ..MailSettings::default()
        };
        let outbox = Arc::new(Outbox::start(settings, &queue, |_| {}).unwrap());
        let to_site = outbox.clone();
        let mut visitors =
            Visitors::with(&format!("{BOOK}{options}\n[Closed]\nAttributes = Author\n"), |site| site.with_mail(Some(to_site)));
        visitors.enter("zoe");
        MailDesk { visitors, outbox, queue, _dir: dir }
    }

    fn post(&self, fields: &[(&str, &str)]) -> String {
        let answer = self.visitors.send("/Shift/", &[&[("cmd", "Submit")], fields].concat());
        assert_eq!(answer.status, 302, "{}", answer.text());
        answer.location().to_owned()
    }

    /// Takes the mails out of the queue.
    fn take(&self) -> Vec<Queued> {
        let read = |id: &str| {
            fs::read_to_string(self.queue.join(format!("{id}.eml")))
                .unwrap()
                .replace("\r\n ", " ")
                .replace("=\r\n", "")
                .replace("=3D", "=")
        };
        let mails = self.outbox.mails();
        let taken = mails.iter().map(|mail| {
            let to = mail.to.iter().map(|to| to.to.clone()).collect();
            let text = read(&mail.id);
            self.outbox.remove(&mail.id).unwrap();
            Queued { to, text }
        });
        taken.collect()
    }

    fn one(&self) -> Queued {
        let mut taken = self.take();
        assert_eq!(taken.len(), 1, "{:?}", taken.iter().map(|mail| &mail.text).collect::<Vec<_>>());
        taken.remove(0)
    }
}

#[test]
fn options_name_recipients_by_values() {
    let desk = MailDesk::new(
        "Email All = all@example.org, kim\nEmail Type Problem = problem@example.org\nEmail Type \"Big one\" = big@example.org\n\
         Email Systems Muon = muon@example.org, all@example.org\n{r}Email Type Routine = routine@example.org\n\
         Email Subject copy = $Copy@example.org, $Copy, nobody",
    );
    for (fields, expected) in [
        (&[("Type", "Problem")][..], "all@example.org kim@example.org problem@example.org"),
        (&[("Type", "Big one"), ("Systems", "RICH")], "all@example.org big@example.org kim@example.org"),
        (
            &[("Type", "Routine"), ("Systems_0", "RICH"), ("Systems_1", "Muon")],
            "all@example.org kim@example.org muon@example.org routine@example.org",
        ),
        (&[("Subject", "copy"), ("Copy", "tom")], "all@example.org kim@example.org tom@example.org"),
        // What somebody typed is an address or nothing: it adds no header, and no recipient that is not one.
        (&[("Subject", "copy"), ("Copy", "x@example.org\r\nBcc: spy")], "all@example.org kim@example.org x@example.org"),
        (&[("Subject", "copy"), ("Copy", "<script>")], "all@example.org kim@example.org"),
    ] {
        desk.post(fields);
        let mail = desk.one();
        let mut to = mail.to.clone();
        to.sort();
        assert_eq!(to.join(" "), expected, "{fields:?}");
        assert!(!mail.text.contains("\nBcc:"), "{}", mail.text);
    }
}

#[test]
fn a_mail_has_the_parts_that_options_choose() {
    let desk = MailDesk::new(
        "Email All = all@example.org\nUse Email Subject = [$logbook] $Subject ($message id)\nUse Email Subject Edit = changed: $Subject\n\
         Use Email heading = News of $host\nUse Email from = $long_name <shift@example.org>\nUse Email URL = https://log.example.org/\n\
         Email attributes = Type, Subject\nEmail encoding = 5",
    );
    desk.post(&[
        ("Type", "Problem"),
        ("Subject", "HV <b>trip</b>"),
        ("Copy", "secret"),
        ("Text", "Channel [b]7[/b] <i>"),
        ("encoding", "ELCode"),
    ]);
    let mail = desk.one();
    assert_eq!(mail.header("Subject"), "[Shift] HV <b>trip</b> (1)");
    assert_eq!(mail.header("From"), "\"zoe Quartz\" <shift@example.org>");
    assert_eq!(mail.header("X-Elog-URL"), "https://log.example.org/Shift/1");
    for part in [
        "News of log.example.org",
        "Logbook             : Shift",
        "Subject             : HV <b>trip</b>",
        "Channel 7 <i>",
        "https://log.example.org/Shift/1",
    ] {
        assert!(mail.text.contains(part), "{part} in {}", mail.text);
    }
    // In HTML everything that people wrote is text.
    for part in ["<td>HV &lt;b&gt;trip&lt;/b&gt;</td>", "<a href=\"https://log.example.org/Shift/1\">", "&lt;i&gt;"] {
        assert!(mail.text.contains(part), "{part} in {}", mail.text);
    }
    assert!(!mail.text.contains("secret"), "{}", mail.text);
    desk.post(&[("edit_id", "1"), ("Subject", "HV back")]);
    assert_eq!(desk.one().header("Subject"), "changed: HV back");

    let few = MailDesk::new(
        "Email All = all@example.org, other@example.org\nEmail format = 8\nOmit Email to = 1\nDisplay email recipients = 0",
    );
    let to = few.post(&[("Subject", "HV trip"), ("Text", "Channel 7"), ("encoding", "plain")]);
    assert!(to.ends_with("/Shift/1"), "{to}");
    let mail = few.one();
    assert_eq!(mail.header("Subject"), "New ELOG entry");
    assert_eq!(mail.header("From"), "\"zoe Quartz\" <zoe@example.org>");
    assert_eq!(mail.header("Sender"), "Logbook <logbook@example.org>");
    assert_eq!(mail.header("To"), "undisclosed-recipients:;");
    assert_eq!(mail.to, ["all@example.org", "other@example.org"]);
    assert!(
        mail.text.contains("Channel 7") && !mail.text.contains("HV trip") && !mail.text.contains("/Shift/1\r\n\r\n"),
        "{}",
        mail.text
    );
}

#[test]
fn replies_and_changes_stand_in_the_thread() {
    let desk = MailDesk::new("Email All = all@example.org");
    desk.post(&[("Subject", "first")]);
    desk.post(&[("reply_to", "1"), ("Subject", "second")]);
    desk.post(&[("reply_to", "2"), ("Subject", "third")]);
    desk.post(&[("edit_id", "3"), ("Subject", "third, better")]);
    let id = |rest: &str| format!("<entry.{rest}@example.org>");
    let mails = desk.take();
    let ids: Vec<&str> = mails.iter().map(|mail| mail.header("Message-ID")).collect();
    assert_eq!(ids, [id("1.Shift"), id("2.Shift"), id("3.Shift"), id("3.Shift.1")]);
    assert!(!mails[0].text.contains("In-Reply-To"), "{}", mails[0].text);
    assert_eq!(mails[1].header("In-Reply-To"), id("1.Shift"));
    assert_eq!(mails[2].header("In-Reply-To"), id("2.Shift"));
    assert_eq!(mails[2].header("References"), format!("{} {}", id("1.Shift"), id("2.Shift")));
    assert_eq!(mails[3].header("In-Reply-To"), id("3.Shift"));
    assert_eq!(mails[3].header("Subject"), "Updated ELOG entry");
}

#[test]
fn files_are_sent_up_to_a_size() {
    let desk =
        MailDesk::new("Email All = all@example.org\nMax email attachment size = 10\nUse Email URL = https://log.example.org");
    post_file(&desk, b"12345678");
    let small = desk.one().text;
    assert!(small.contains("filename=\"plot.png\"") && small.contains("Content-Type: image/png"), "{small}");
    post_file(&desk, b"12345678901");
    let large = desk.one().text;
    assert!(!large.contains("filename=") && large.contains("plot.png (11 Bytes) https://log.example.org/Shift/2/"), "{large}");
}

#[test]
fn pictures_of_the_text_are_shown_in_the_mail() {
    let options = "Email All = all@example.org\nMax email attachment size = 10\nUse Email URL = https://log.example.org";
    let desk = MailDesk::new(options);
    let text = "[img]attachment:plot.png[/img] and [url=attachment:plot.png]the same[/url], [url=../Other/7]seven[/url]";
    post_text_with_file(&desk, text, b"12345678");
    let small = desk.one().text;
    let id = small.lines().find_map(|line| line.strip_prefix("Content-ID: <")?.strip_suffix('>')).expect("a picture with a name");
    assert!(small.contains(&format!("src=\"cid:{id}\"")) && small.contains("Content-Disposition: inline"), "{small}");
    assert!(small.contains("href=\"https://log.example.org/Shift/1/") && !small.contains("attachment:"), "{small}");
    assert!(small.contains("href=\"https://log.example.org/Shift/../Other/7\""), "{small}");
    // A file that is too large for the mail is loaded from the logbook.
    post_text_with_file(&desk, text, b"12345678901");
    let large = desk.one().text;
    assert!(large.contains("src=\"https://log.example.org/Shift/2/") && !large.contains("cid:"), "{large}");
}

fn post_file(desk: &MailDesk, bytes: &[u8]) {
    post_text_with_file(desk, "", bytes);
}

fn post_text_with_file(desk: &MailDesk, text: &str, bytes: &[u8]) {
    let token = tampu_elog::pages::csrf::token(
        &desk.visitors.desk.site,
        &desk.visitors.desk.caller,
        desk.visitors.desk.headers.iter().find_map(|(_, value)| value.strip_prefix("tampu_session=")),
    );
    let parts: [(&str, Option<&str>, &[u8]); 6] = [
        (tampu_elog::pages::csrf::FIELD, None, token.as_bytes()),
        ("cmd", None, b"Submit"),
        ("Subject", None, b"file"),
        ("encoding", None, b"ELCode"),
        ("Text", None, text.as_bytes()),
        ("attfile1", Some("plot.png"), bytes),
    ];
    let answer = desk.visitors.desk.post("/Shift/", &parts);
    assert_eq!(answer.status, 302, "{}", answer.text());
}

#[test]
fn users_choose_logbooks_whose_entries_they_get() {
    let desk = MailDesk::new("Guest display = Type, Subject");
    let notify = |books: &[&'static str]| {
        let mut fields = vec![
            ("cmd", "Save"),
            ("config", "zoe"),
            ("new_full_name", "zoe Quartz"),
            ("new_user_email", "zoe@example.org"),
            ("notify_asked", "1"),
        ];
        fields.extend(books.iter().map(|book| ("notify", *book)));
        fields
    };
    let page = desk.visitors.desk.get("/Shift/?cmd=Config").text();
    assert!(page.contains("name=\"notify\" value=\"Shift\">") && page.contains("value=\"Closed\""), "{page}");
    let saved = desk.visitors.send("/Shift/", &notify(&["Shift", "Made up"]));
    assert_eq!(saved.location(), "?cmd=Config&saved=account");
    assert_eq!(desk.visitors.people.user("zoe").unwrap().notify, ["Shift"]);
    assert!(desk.visitors.desk.get("/Shift/?cmd=Config").text().contains("value=\"Shift\" checked>"));
    desk.visitors.people.change_user("kim", |user| user.notify = vec!["*".into()]).unwrap();
    // Those who are disabled, and those who may not read the logbook, get nothing.
    desk.visitors.people.change_user("root", |user| (user.notify, user.inactive) = (vec!["Shift".into()], true)).unwrap();
    let to = desk.post(&[("Subject", "first")]);
    let mail = desk.one();
    assert_eq!(mail.to, ["kim@example.org", "zoe@example.org"]);
    let page = desk.visitors.desk.get(to.strip_prefix("http://elog.site:8080").unwrap()).text();
    assert!(page.contains("Email sent to <b>kim Quartz &lt;kim@example.org&gt;</b>"), "{page}");
    assert_eq!(page.matches("mail0=").count(), 0, "steps do not repeat it: {page}");
    // Nobody can make such a report for others.
    let forged = desk.visitors.desk.get(&format!("{}x", to.strip_prefix("http://elog.site:8080").unwrap())).text();
    assert!(!forged.contains("Email sent"), "{forged}");
    let mut access = Access::default();
    access.give(Subject::User("zoe".into()), tampu_logbook::people::Right::ALL.to_vec());
    desk.visitors.people.set_access("Shift", &access).unwrap();
    desk.post(&[("Subject", "second")]);
    assert_eq!(desk.one().to, ["zoe@example.org"]);

    let none = MailDesk::new("Suppress email to users = 1");
    assert!(!none.visitors.desk.get("/Shift/?cmd=Config").text().contains("value=\"Shift\""));
    none.visitors.people.change_user("zoe", |user| user.notify = vec!["Shift".into()]).unwrap();
    none.post(&[("Subject", "first")]);
    assert!(none.take().is_empty());
}

#[test]
fn a_post_can_suppress_its_mail() {
    let desk = MailDesk::new("Email All = all@example.org\nSuppress Email on edit = 1");
    let page = desk.visitors.desk.get("/Shift/?cmd=New").text();
    assert!(page.contains("name=\"suppress\" value=\"1\"> Suppress"), "{page}");
    desk.post(&[("Subject", "first"), ("suppress", "1")]);
    assert!(desk.take().is_empty());
    let page = desk.visitors.desk.get("/Shift/1?cmd=Edit").text();
    assert!(page.contains("name=\"suppress\" value=\"1\" checked> Suppress"), "{page}");
    desk.post(&[("edit_id", "1"), ("Subject", "sent")]);
    assert_eq!(desk.take().len(), 1);

    let never = MailDesk::new("Email All = all@example.org\nSuppress default = 3");
    never.post(&[("Subject", "first")]);
    assert!(never.take().is_empty());
    assert!(never.visitors.desk.get("/Shift/?cmd=New").text().contains("type=\"hidden\" name=\"suppress\""));
    let chosen = MailDesk::new("Email All = all@example.org\nSuppress default = 1");
    assert!(chosen.visitors.desk.get("/Shift/?cmd=New").text().contains("name=\"suppress\" value=\"1\" checked> Suppress"));
    let always = MailDesk::new("Email All = all@example.org\nSuppress default = 2");
    assert!(!always.visitors.desk.get("/Shift/?cmd=New").text().contains("name=\"suppress\""));
    // A logbook that mails nobody does not offer the choice.
    let nobody = MailDesk::new("Suppress email to users = 1");
    assert!(!nobody.visitors.desk.get("/Shift/?cmd=New").text().contains("Suppress Email"));
}
