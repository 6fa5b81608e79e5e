//! The users of ELOG: its password file, in each of its three forms.
//!
//! ```text
//! <list><user><name>zoe</name><password encoding="SHA256">43 characters</password><full_name>…</full_name><email>…</email>
//!     <inactive>0</inactive>…</user>…</list>                    the current form
//! … <password>base64 of the password</password> …                older
//! zoe:base64 of the password:Zoë:zoe@example.org:…               oldest, one line for each user
//! ```
//! Each element is read without regard to the elements around it, because programs and people have written these files.

use base64::{Engine, engine::general_purpose::STANDARD};
use tampu_logbook::people::{
    elog_digest,
    password::{Given, Password},
    user::User,
};

use crate::decode;

/// The content of a password file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsersFile {
    /// Users, in the file's order.
    pub users: Vec<User>,
    /// The faults of the file, one line each.
    pub faults: Vec<String>,
}

/// Reads a password file.
pub fn read(bytes: &[u8]) -> UsersFile {
    let text = decode(bytes);
    let mut read = UsersFile::default();
    if text.trim_start().starts_with('<') {
        read.xml(&text);
    } else {
        read.lines(&text);
    }
    read
}

impl UsersFile {
    /// Gives users the digests of this file, the one from before they came here. A user whose password is still the same
    /// gets the digest that elogd can check. Returns their number.
    pub fn give_digests(&self, users: &mut [User]) -> usize {
        let mut given = 0;
        for user in users {
            let old = self.users.iter().find(|old| old.login == user.login).and_then(|old| old.password.as_ref());
            let digest = old.and_then(Password::elog_digest);
            let Some((password, digest)) = user.password.as_ref().zip(digest) else { continue };
            if password.elog_digest().is_none() && password.is(Given::PlainOrDigest(digest)) {
                user.password = Password::from_elog(digest);
                given += 1;
            }
        }
        given
    }

    fn xml(&mut self, text: &str) {
        for (nth, rest) in text.split("<user>").skip(1).enumerate() {
            let Some((user, _)) = rest.split_once("</user>") else {
                self.faults.push(format!("user {}: </user> is missing; left out", nth + 1));
                continue;
            };
            let of = |name: &str| element(user, name).map(|(_, text)| text).unwrap_or_default();
            let (attributes, password) = element(user, "password").unwrap_or_default();
            let password = if attributes.contains("SHA256") { Ok(password) } else { plain(&password) };
            let notify = user.split_once("<email_notify>").and_then(|(_, rest)| rest.split_once("</email_notify>"));
            let notify = notify.map(|(books, _)| logbooks(books)).unwrap_or_default();
            self.take(&of("name"), password, &of("full_name"), &of("email"), of("inactive").trim() == "1", notify);
        }
    }

    fn lines(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with([';', '#'])) {
            let mut parts = line.split(':');
            let mut next = || parts.next().unwrap_or_default();
            let (name, password, full_name, email) = (next(), next(), next(), next());
            // A number other than 0 stands for all logbooks.
            let notify = if matches!(next().trim(), "" | "0") { vec![] } else { vec!["*".to_owned()] };
            self.take(name, plain(password), full_name, email, false, notify);
        }
    }

    /// Adds a user; the password is ELOG's digest, or the reason for its absence.
    fn take(
        &mut self,
        name: &str,
        digest: Result<String, String>,
        full_name: &str,
        email: &str,
        inactive: bool,
        notify: Vec<String>,
    ) {
        let password = match digest {
            Ok(digest) if digest.is_empty() => None,
            Ok(digest) => {
                let password = Password::from_elog(&digest);
                if password.is_none() {
                    self.faults
                        .push(format!("user '{}': invalid password digest; imported without a password", name.escape_debug()));
                }
                password
            }
            Err(why) => {
                self.faults.push(format!("user '{}': {why}; imported without a password", name.escape_debug()));
                None
            }
        };
        let (full_name, email) = (full_name.trim().to_owned(), email.trim().to_owned());
        let user = User { full_name, email, inactive, password, notify, ..User::new(name.trim()) };
        match user.check() {
            Err(why) => self.faults.push(format!("{why}; left out")),
            Ok(()) if self.users.iter().any(|known| known.login == user.login) => {
                self.faults.push(format!("user '{}': listed twice; the first counts", user.login));
            }
            Ok(()) => self.users.push(user),
        }
    }
}

/// Returns ELOG's digest of a password that the file has in base64.
fn plain(text: &str) -> Result<String, String> {
    let bytes = STANDARD.decode(text.trim()).map_err(|_| "its password is not base64".to_owned())?;
    // An empty password would admit everybody.
    if bytes.is_empty() {
        return Ok(String::new());
    }
    elog_digest::hash(&bytes).ok_or_else(|| "its password is too long".to_owned())
}

/// Returns the logbooks of an element `email_notify`.
fn logbooks(text: &str) -> Vec<String> {
    let names = text.split("<logbook>").skip(1).filter_map(|rest| rest.split_once("</logbook>"));
    names.map(|(name, _)| unescaped(name.trim())).filter(|name| !name.is_empty()).collect()
}

/// The attributes and the text of an element.
fn element(text: &str, name: &str) -> Option<(String, String)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find(&format!("<{name}"))?;
        let rest = &text[at + 1 + name.len()..];
        if rest.starts_with(['>', ' ', '/', '\t', '\n', '\r']) {
            let (attributes, rest) = rest.split_once('>')?;
            if attributes.ends_with('/') {
                return Some((attributes.to_owned(), String::new()));
            }
            let (text, _) = rest.split_once(&format!("</{name}>"))?;
            return Some((attributes.to_owned(), unescaped(text.trim())));
        }
        from = at + 1 + name.len();
    }
}

/// Replaces the entities of XML.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = rest.find(';').filter(|end| *end <= 10).map(|end| (&rest[1..end], end));
        let character = entity.and_then(|(name, _)| match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            number => {
                let number = number.strip_prefix('#')?;
                let code = match number.strip_prefix(['x', 'X']) {
                    Some(hex) => u32::from_str_radix(hex, 16).ok(),
                    None => number.parse().ok(),
                };
                code.and_then(char::from_u32)
            }
        });
        match (character, entity) {
            (Some(character), Some((_, end))) => {
                out.push(character);
                rest = &rest[end + 1..];
            }
            _ => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tampu_logbook::people::password::Given;

    const SECRET: &str = "o1w7HPzHt8gHmL5zUzDkRqt6Az.BjDfkvuDNNLWnXx5";

    #[test]
    fn the_file_as_elog_writes_it() {
        let mut file = format!(
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<!-- created by MXML on Thu Nov 08 18:37:57 2001 -->\n<list>\n  <user>\n    \
             <name>zoe</name>\n    <password encoding=\"SHA256\">{SECRET}</password>\n    <full_name>Zo&#235; &lt;M&amp;M&gt;</full_name>\n    \
             <last_logout>0</last_logout>\n    <last_activity>Thu Nov 08 18:37:57 2001</last_activity>\n    <email>zoe@example.org</email>\n    \
             <inactive>0</inactive>\n    <email_notify>\n      <logbook>Shift</logbook>\n    </email_notify>\n  </user>\n  <user>\n    <name>max</name>\n"
        )
        .into_bytes();
        file.extend(b"    <password>c2VjcmV0</password>\n    <full_name>M\xfcller</full_name>\n    <email/>\n    <inactive>1</inactive>\n  </user>\n</list>\n");
        let read = read(&file);
        assert!(read.faults.is_empty(), "{:?}", read.faults);
        let [zoe, max] = &read.users[..] else { panic!("{read:?}") };
        assert_eq!((zoe.login.as_str(), zoe.full_name.as_str(), zoe.email.as_str()), ("zoe", "Zoë <M&M>", "zoe@example.org"));
        assert_eq!((max.full_name.as_str(), max.email.as_str(), max.inactive), ("Müller", "", true));
        assert_eq!((&zoe.notify[..], &max.notify[..]), (&["Shift".to_owned()][..], &[][..]));
        assert!(zoe.wants_mail_of("shift") && !max.wants_mail_of("Shift"));
        for user in [zoe, max] {
            assert!(user.password.as_ref().unwrap().is(Given::Plain("secret")), "{}", user.login);
        }
    }

    #[test]
    fn the_older_lines() {
        let read = read(b"# comment\nzoe:c2VjcmV0:Zoe:zoe@example.org:1\n\nmax::Max\nbad name/:x\nzoe:eA==:Other\n");
        let names: Vec<_> = read.users.iter().map(|user| (user.login.as_str(), user.password.is_some())).collect();
        assert_eq!(names, [("zoe", true), ("max", false)]);
        assert!(read.users[0].wants_mail_of("any") && !read.users[1].wants_mail_of("any"));
        assert_eq!(read.faults.len(), 3, "{:?}", read.faults);
        assert!(read.users[0].password.as_ref().unwrap().is(Given::Plain("secret")));
    }

    #[test]
    fn what_is_broken_is_told() {
        for (file, users, faults) in [
            (&b"<list></list>"[..], 0, 0),
            (b"", 0, 0),
            (b"<list><user><name>zoe</name>", 0, 1),
            (b"<list><user><password encoding=\"SHA256\">x</password></user></list>", 0, 2),
            (b"<list><user><name>zoe</name><password encoding=\"SHA256\">short</password></user></list>", 1, 1),
            (b"<list><user><name>zoe</name><password>?</password></user></list>", 1, 1),
            (b"<list><user><name>zoe</name><password", 0, 1),
            (b"<list><user><named>x</named><name>zoe&#0;&unknown;</name></user></list>", 0, 1),
            (b"\xff\xfe\0<", 0, 1),
        ] {
            let read = read(file);
            let shown = String::from_utf8_lossy(file);
            assert_eq!((read.users.len(), read.faults.len()), (users, faults), "{shown}: {read:?}");
        }
    }
}
