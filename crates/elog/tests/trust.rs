//! ELOG's dialect, writing: who may, who says who they are, and what another site makes a browser send.

#[path = "support/desk.rs"]
mod desk;

use desk::{ALL, B, Desk, caller};
use http::{Method, StatusCode};
use tampu_elog::{
    pages::{Site, SiteConfig, csrf},
    users,
};
use tampu_logbook::{
    entry::{Entry, EntryRef},
    people::{People, Right, registry::Settings, user::User},
    store::{Drafts, Entries, StoreError},
};

const CFG: &str = "[global]\nTop group All = Shift, Other\n[Shift]\nAttributes = Author, Type, System, Run number, Day, When, Done, Subject\n\
    Required Attributes = Author\nOptions Type = Routine{a}, Problem\nMOptions System = RICH1, HLT, \"Muon, big\"\nType Run number = numeric\n\
    Type Day = date\nType When = datetime\nOptions Done = boolean\nExtendable Options = System\nLocked Attributes = Author\n\
    Subst Subject = [$Type] $Subject\nSubst on edit Subject = $Subject (edited by $short_name)\n\
    [Other]\nAttributes = Author, Subject\nAllowed encoding = 1\nEnable attachments = 0\nSubst Subject = N-###\n";

fn entry(desk: &Desk, id: u32) -> Entry {
    desk.store.entry(&EntryRef::new("Shift", id)).unwrap()
}

#[test]
fn what_another_site_makes_a_browser_send_is_not_done() {
    let mut desk = Desk::new(CFG);
    let token = csrf::token(&desk.site, &desk.caller, None);
    let of_session = csrf::token(&desk.site, &desk.caller, Some("secret"));
    let new = [("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x")];
    assert_eq!(desk.fields("/Shift/", &new).id(), 1);
    desk.headers = vec![("cookie", "tampu_session=secret".to_owned())];
    assert_eq!(desk.fields("/Shift/", &new).status, StatusCode::FORBIDDEN, "a session alone is not enough");
    assert_eq!(
        desk.fields("/Shift/", &[&new[..], &[(csrf::FIELD, "0123456789abcdef0123456789abcdef")]].concat()).status,
        StatusCode::FORBIDDEN
    );
    let strange = desk.fields("/Shift/", &[&new[..], &[(csrf::FIELD, &token)]].concat());
    assert_eq!(strange.status, StatusCode::FORBIDDEN, "a token of another session");
    assert_eq!(desk.fields("/Shift/", &[&new[..], &[(csrf::FIELD, &of_session)]].concat()).id(), 2);
    for header in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
        desk.headers = vec![(header.0, header.1.to_owned())];
        let answer = desk.fields("/Shift/", &[&new[..], &[(csrf::FIELD, &token)]].concat());
        assert!(answer.error().contains("page of another site"), "{header:?}");
    }
    // A link that deletes asks first, and the page that asks has the token.
    for header in [("accept-language", "en"), ("cookie", "tampu_session=secret"), ("referer", "https://evil.example/")] {
        desk.headers = vec![(header.0, header.1.to_owned())];
        for uri in ["/Shift/1?cmd=Delete&confirm=Yes", "/Shift/1?cmd=Move+to&destm=Other", "/Shift/1?cmd=Copy+to&destc=Other"] {
            let answer = desk.get(uri);
            assert_eq!(answer.status, StatusCode::OK, "{uri}");
            let expected = if header.0 == "cookie" { &of_session } else { &token };
            assert!(answer.text().contains(expected), "{uri}");
        }
    }
    // The hub permits requests from another site to read only; the response gives the reason.
    let zoe = std::mem::replace(&mut desk.caller, caller("zoe", &[Right::Read], &["Shift", "Other"]));
    desk.headers = vec![("sec-fetch-site", "cross-site".to_owned())];
    assert!(desk.get("/Shift/1?cmd=Delete").error().contains("a link on another site cannot change anything here"));
    desk.headers = vec![("sec-fetch-site", "same-origin".to_owned())];
    assert!(desk.get("/Shift/1?cmd=Delete").error().contains("is not allowed for user"));
    desk.caller = zoe;
    assert_eq!(desk.store.books().unwrap().iter().map(|info| info.entries).sum::<u64>(), 2);
    let other = csrf::token(&desk.site, &caller("kim", &ALL, &["Shift"]), None);
    assert_ne!(other, token);
    desk.headers = vec![("accept-language", "en".to_owned())];
    assert_eq!(
        desk.fields("/Shift/1", &[("cmd", "Delete"), ("confirm", "Yes"), (csrf::FIELD, &token)]).location(),
        "http://elog.site:8080/Shift/"
    );
    assert!(matches!(desk.store.entry(&EntryRef::new("Shift", 1)), Err(StoreError::Gone(_))));
}

#[test]
fn who_may_not_does_not() {
    let mut desk = Desk::new(CFG);
    let new = [("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x")];
    desk.fields("/Shift/", &new).id();
    let tries = |desk: &Desk| -> Vec<StatusCode> {
        let edit = [("cmd", "Submit"), ("edit_id", "1"), ("Text", "y")];
        let answers = [
            desk.fields("/Shift/", &new),
            desk.fields("/Shift/", &edit),
            desk.get("/Shift/1?cmd=Delete&confirm=Yes"),
            desk.get("/Shift/1?cmd=Move+to&destm=Other"),
        ];
        answers.map(|answer| answer.status).to_vec()
    };
    let books = ["Shift", "Other"];
    for (rights, writes) in [(&[Right::Read][..], false), (&[Right::Read, Right::Write, Right::EditOwn], true)] {
        desk.caller = caller("kim", rights, &books);
        let made = if writes { StatusCode::FOUND } else { StatusCode::FORBIDDEN };
        assert_eq!(tries(&desk), [made, StatusCode::FORBIDDEN, StatusCode::FORBIDDEN, StatusCode::FORBIDDEN], "{rights:?}");
    }
    desk.caller = caller("", &[Right::Read], &books);
    assert!(!tries(&desk).contains(&StatusCode::FOUND), "a guest is asked to log in");
    assert_eq!((entry(&desk, 1).revision, desk.store.books().unwrap()[1].entries), (0, 2));
    // An author cannot delete an entry that has another user's reply.
    desk.caller = caller("kim", &[Right::Read, Right::Write, Right::EditOwn], &books);
    let own = desk.fields("/Shift/", &new).id();
    desk.caller = caller("max", &[Right::Read, Right::Write, Right::EditOwn], &books);
    desk.fields("/Shift/", &[&new[..], &[("reply_to", &own.to_string())]].concat()).id();
    desk.caller = caller("kim", &[Right::Read, Right::Write, Right::EditOwn], &books);
    assert_eq!(desk.get(&format!("/Shift/{own}?cmd=Delete&confirm=Yes")).status, StatusCode::FORBIDDEN);
    // An entry that another user is editing is not overwritten, unless the request says so.
    let at = EntryRef::new("Shift", 1);
    desk.caller = caller("zoe", &ALL, &books);
    desk.store.lock(&at, "max", "pc7", std::time::Duration::from_secs(60)).unwrap();
    let edit = [("cmd", "Submit"), ("edit_id", "1"), ("Text", "y")];
    assert!(desk.fields("/Shift/", &edit).error().contains("being edited by max on pc7"));
    assert_eq!(desk.fields("/Shift/", &[&edit[..], &[("skiplock", "1")]].concat()).id(), 1);
}

#[test]
fn files_are_taken_only_from_who_may_write() {
    let mut desk = Desk::new(CFG);
    let parts: [(&str, Option<&str>, &[u8]); 3] =
        [("cmd", None, b"Submit"), ("attfile1", Some("a"), b"bytes"), ("Author", None, b"x")];
    desk.caller = caller("", &[Right::Read], &["Shift"]);
    let answer = desk.post("/Shift/", &parts).text();
    assert!(answer.contains("type=password") && answer.contains("form name=form1"), "as ELOG's programs look for it: {answer}");
    desk.caller = caller("kim", &[Right::Read], &["Shift"]);
    assert_eq!(desk.post("/Shift/", &parts).status, StatusCode::FORBIDDEN);
    // The file does not reach the store: a body that is cut off inside it is not even noticed.
    let cut = format!("--{B}\r\nContent-Disposition: form-data; name=\"attfile1\"; filename=\"a\"\r\n\r\nhalf");
    let kind = format!("multipart/form-data; boundary={B}");
    assert_eq!(desk.ask(Method::POST, "/Shift/", &[("content-type", &kind)], cut.as_bytes()).status, StatusCode::FORBIDDEN);
}

#[test]
fn a_site_without_users_offers_no_log_out() {
    let Desk { dir, store, caller, headers, .. } = Desk::new(CFG);
    let people = std::sync::Arc::new(People::new(store.clone(), Settings::default()).unwrap());
    let site = Site::new(store.clone(), SiteConfig::default()).with_people(people);
    let page = Desk { dir, store, site, caller, headers }.get("/Shift/").text();
    assert!(page.contains("the owner: there are no users") && !page.contains("Log out"), "{page}");
}

#[test]
fn visitors_of_a_site_without_users_hear_of_it_where_they_would_log_in() {
    let Desk { dir, store, headers, .. } = Desk::new(CFG);
    let people = std::sync::Arc::new(People::new(store.clone(), Settings::default()).unwrap());
    let site = Site::new(store.clone(), SiteConfig::default()).with_people(people.clone());
    let desk = Desk { dir, store, site, caller: caller("", &[Right::Read], &["Shift"]), headers };
    let note = "there are no users";
    for uri in ["/", "/Shift/"] {
        let page = desk.get(uri).text();
        assert!(!page.contains(note) && page.contains("?cmd=Login"), "{uri}: {page}");
    }
    for uri in ["/?cmd=Login", "/Shift/?cmd=Login", "/Shift/?cmd=Config"] {
        assert!(desk.get(uri).text().contains(note), "{uri}");
    }
    people.add_user(User::new("zoe")).unwrap();
    assert!(!desk.get("/Shift/?cmd=Login").text().contains(note));
}

#[test]
fn people_log_in_with_elogs_form() {
    let store = Desk::new(CFG);
    let Desk { dir, store, mut caller, headers, .. } = store;
    let people =
        std::sync::Arc::new(People::new(store.clone(), Settings { accept_elog_hashes: true, ..Settings::default() }).unwrap());
    let read = users::read(
        b"<list><user><name>zoe</name><password encoding=\"SHA256\">o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5</password>\
        <full_name>Zoe Quartz</full_name></user></list>",
    );
    read.users.into_iter().for_each(|user| people.add_user(user).unwrap());
    caller.login.clear();
    caller.rights.0.values_mut().for_each(|rights| *rights = vec![Right::Read]);
    let site = Site::new(store.clone(), SiteConfig::default()).with_people(people.clone());
    let mut desk = Desk { dir, store, site, caller, headers };

    let log_in = |desk: &Desk, password: &str, redir: &str| {
        desk.fields("/Shift/", &[("uname", "zoe"), ("upassword", password), ("redir", redir), ("remember", "1")])
    };
    let answer = log_in(&desk, "secret", "?cmd=New");
    assert_eq!((answer.status, answer.location()), (StatusCode::FOUND, "http://elog.site:8080/Shift/?cmd=New"));
    let cookie = answer.headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("tampu_session=") && cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    let secret = cookie["tampu_session=".len()..].split(';').next().unwrap().to_owned();
    assert_eq!(people.by_session(&secret).unwrap().login, "zoe");
    let wrong = log_in(&desk, "wrong", "");
    assert_eq!(
        (wrong.status, wrong.error().contains("Invalid user name or password"), wrong.headers.get("set-cookie")),
        (StatusCode::UNAUTHORIZED, true, None)
    );
    // A program logs in by an address only if the site says so; a browser that follows the same link never does.
    let by_address = "/Shift/?uname=zoe&upassword=secret";
    assert_eq!(desk.get(by_address).status, StatusCode::FORBIDDEN);
    let config = SiteConfig { password_in_address: true, ..SiteConfig::default() };
    desk.site = Site::new(desk.store.clone(), config).with_people(people.clone());
    assert_eq!(desk.get(by_address).status, StatusCode::FOUND);
    assert!(desk.ask(Method::GET, by_address, &[("accept-language", "en")], b"").headers.get("set-cookie").is_none());
    // Programs identify their user in each request: with the password, or with ELOG's hash of it.
    let new = [("cmd", "Submit"), ("Author", "Zoe"), ("Text", "x"), ("unm", "zoe")];
    for secret in ["secret", "o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5"] {
        let id = desk.elog("Shift", &[&new[..], &[("upwd", secret)]].concat(), "text", &[("a", b"bytes")]).id();
        assert_eq!(entry(&desk, id).by, "zoe");
    }
    let refused = desk.elog("Shift", &[&new[..], &[("upwd", "wrong")]].concat(), "text", &[("a", b"bytes")]);
    assert!(refused.location().contains("fail"), "{}", refused.location());
    let mut last = StatusCode::FOUND;
    for n in 0..10 {
        let answer = log_in(&desk, &format!("guess {n}"), "");
        last = answer.status;
        if last == StatusCode::TOO_MANY_REQUESTS {
            assert!(answer.headers.contains_key("retry-after"));
            break;
        }
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    // After the logout, the cookie is worthless.
    desk.headers = vec![("cookie", format!("tampu_session={secret}"))];
    // A picture in an entry, a link of another site, a picture without Sec-Fetch: the page asks first, and the user stays logged
    // in.
    for headers in [
        &[("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "image")][..],
        &[("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "document")],
        &[("accept-language", "en"), ("accept", "image/png,*/*"), ("referer", "http://elog.site:8080/Shift/1")],
        &[("accept-language", "en"), ("accept", "text/html"), ("referer", "http://evil.example/")],
    ] {
        for uri in ["/Shift/?cmd=Logout", "/?cmd=Logout"] {
            let asked = desk.ask(Method::GET, uri, headers, b"");
            assert!(asked.text().contains("Log out?") && !asked.headers.contains_key("set-cookie"), "{headers:?}");
        }
    }
    assert!(people.by_session(&secret).is_ok());
    assert_eq!(desk.fields("/", &[("cmd", "Logout")]).status, StatusCode::FORBIDDEN);
    let out =
        desk.ask(Method::GET, "/Shift/?cmd=Logout", &[("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "document")], b"");
    assert!(out.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert!(people.by_session(&secret).is_err());
    for uri in ["/", "/Shift/"] {
        let token = csrf::token(&desk.site, &desk.caller, Some(&secret));
        let out = desk.fields(uri, &[("cmd", "Logout"), (csrf::FIELD, &token)]);
        assert!(out.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"), "{uri}");
    }
}
