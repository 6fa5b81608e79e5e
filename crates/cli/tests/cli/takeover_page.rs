//! The page about the takeover from ELOG, taken word by word: its commands run on a small site of ELOG, in their order, and their
//! output is what the page shows. Then the way back.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use tampu_logbook::people::elog_digest;

use crate::{
    documents::{Block, blocks, commands, root, shell},
    site::Site,
};

const CFG: &str = "[global]
port = 8080
SMTP host = mail.example.org
URL = http://elog.example.org:8080/
Admin user = zoe
Mirror server = http://elog2.example.org:8080/

[Shift]
Password file = passwd
Attributes = Author, Type, Subject
Options Type = Routine, Problem
Email All = piquet@example.org

[Public]
Attributes = Author, Subject
";

/// An entry as elogd writes it.
fn entry(id: u32, head: &str, text: &str) -> String {
    let line = "=".repeat(40);
    format!("$@MID@$: {id}\nDate: Tue, 24 Nov 2026 1{id}:00:00 +0000\n{head}Encoding: plain\n{line}\n{text}\n")
}

/// Writes a site of ELOG, and returns its directory.
fn elog_site(site: &Site) -> String {
    let elog = site.path("elog");
    for book in ["Shift", "Public"] {
        fs::create_dir_all(elog.join("logbooks").join(book).join("2026")).unwrap();
    }
    let shift = [
        entry(1, "Author: Zo\u{eb} Miller\nType: Problem\nSubject: HV trip\nAttachment: 261124_110000_plot.txt\n", "Channel 7."),
        entry(2, "In reply to: 1\nAuthor: Max\nType: Routine\nSubject: Re: HV trip\nAttachment: \n", "Reset."),
        entry(3, "Author: Max\nType: Routine\nSubject: Night\nAttachment: \n", "All quiet."),
    ];
    fs::write(elog.join("logbooks/Shift/2026/261124a.log"), shift.concat()).unwrap();
    fs::write(elog.join("logbooks/Shift/2026/261124_110000_plot.txt"), "a plot").unwrap();
    fs::write(elog.join("logbooks/Public/2026/261124a.log"), entry(1, "Author: Visitor\nSubject: Hello\nAttachment: \n", "Hi."))
        .unwrap();
    fs::write(elog.join("elogd.cfg"), CFG).unwrap();
    let user = |login: &str| {
        let digest = elog_digest::hash(format!("secret of {login}").as_bytes()).unwrap();
        format!(
            "<user><name>{login}</name><password encoding=\"SHA256\">{digest}</password><full_name>{login}</full_name>\
             <email>{login}@example.org</email><inactive>0</inactive></user>\n"
        )
    };
    fs::write(elog.join("passwd"), format!("<list>\n{}{}</list>\n", user("zoe"), user("max"))).unwrap();
    elog.to_string_lossy().into_owned()
}

/// The user's line of a password file of elogd.
fn digest_in(passwd: &str, login: &str) -> String {
    let (_, rest) = passwd.split_once(&format!("<name>{login}</name>")).unwrap();
    rest.split_once("\"SHA256\">").unwrap().1.split_once('<').unwrap().0.to_owned()
}

#[test]
fn the_takeover_from_elog_runs_as_its_page_says_and_leads_back() {
    let site = Site::new();
    let elog = elog_site(&site);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (data, config) = (site.path("srv").display().to_string(), site.path("tampu.toml"));
    let here = |text: &str| {
        let text = text.replace("/usr/local/elog", &elog).replace("/srv/tampu", &data);
        let text = text.replace("/etc/tampu/tampu.toml", &config.display().to_string());
        text.replace("0.0.0.0:8080", &format!("127.0.0.1:{port}"))
    };
    let page = root().join("docs/take-over-elog.md");
    let (mut said, mut hub) = (String::new(), None);
    for Block { line, fence, text } in blocks(&page) {
        match fence.as_str() {
            "toml" if text.contains("hosts") => fs::write(&config, &text).unwrap(),
            "sh" | "sh site" => {
                // The hub runs until the end; the other commands of a block run in one shell.
                let (ups, others): (Vec<String>, Vec<String>) =
                    commands(&here(&text)).into_iter().partition(|command| command.contains(" up "));
                let output = shell(&site, &format!("set -euo pipefail\n{}", others.join("\n"))).output().unwrap();
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (out, err) = (text(&output.stdout), text(&output.stderr));
                assert!(output.status.success(), "line {line}: {others:?}: {out}{err}");
                said.push_str(&(out + &err));
                for up in ups {
                    let words: Vec<&str> = up.split_whitespace().skip(1).collect();
                    hub = Some(site.hub_with(&words));
                }
            }
            "text" => {
                for shown in text.lines() {
                    assert!(said.lines().any(|line| line == shown), "line {line}: '{shown}' is not in\n{said}");
                }
            }
            _ => {}
        }
        // The hub has just started: its users log in with their passwords.
        if let Some(hub) = hub.as_mut().filter(|_| fence == "sh site" && text.contains(" up ")) {
            hub.wait_for("/api/v1/");
            let api = hub.heard.split_whitespace().find(|word| word.contains("/api/v1/")).unwrap().to_owned();
            let login = api.replace("openapi.json", "login");
            let body = r#"{"login":"zoe","password":"secret of zoe"}"#;
            let answer = ureq::post(login).header("content-type", "application/json").send(body).unwrap();
            assert_eq!(answer.status(), 200);
        }
    }
    assert!(said.contains("elogd.cfg has the address of 'elog.example.org'"), "{said}");
    let (back, passwd) = (site.path("back"), fs::read_to_string(site.path("back/passwd")).unwrap());
    assert_eq!(fs::metadata(back.join("passwd")).unwrap().permissions().mode() & 0o777, 0o600);
    for login in ["zoe", "max"] {
        let expected = elog_digest::hash(format!("secret of {login}").as_bytes()).unwrap();
        assert_eq!(digest_in(&passwd, login), expected, "{login} logs in to elogd as before");
    }
    let read = |path: &str| fs::read_to_string(back.join(path)).unwrap();
    let exported = read("logbooks/Shift/2026/261124a.log");
    assert!(exported.contains("Subject: HV trip") && exported.contains("In reply to: 1"), "{exported}");
    assert_eq!(read("logbooks/Shift/2026/261124_110000_plot.txt"), "a plot");
    assert!(read("elogd.cfg").contains("[Public]"));
    let (code, said) = hub.unwrap().end(Signal::TERM);
    assert_eq!(code, Some(0), "{said}");
}
