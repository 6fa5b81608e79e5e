//! The queue of mails on disk: what waits, and what failed.
//!
//! Each mail has two files in one directory: `ID.eml`, its text for the wire, and `ID.json`, its recipients and what
//! became of each. The second file makes the mail part of the queue, and is replaced as a whole. Both are synced before
//! a mail counts as taken. Only their owner can read them.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_types::Time;

use super::message::{MailError, Written};
use crate::{entry::EntryRef, schema::TimeText};

/// Failed mails that are kept; older ones are dropped first.
pub const FAILED: usize = 1000;

/// The state of a mail for one recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// The mail waits for an attempt.
    Waiting,
    /// The server has accepted it.
    Sent,
    /// The server has refused it for good, or the time limit has passed.
    Failed,
}

/// A recipient of a mail, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// The address of the recipient.
    pub to: String,
    /// The state of the mail for this recipient.
    pub state: DeliveryState,
    /// Attempts so far.
    pub attempts: u32,
    /// The time of the next attempt.
    #[serde(with = "tampu_types::time::rfc3339")]
    #[schemars(with = "TimeText")]
    pub next: Time,
    /// The server's last answer, or the last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}

/// A mail in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedMail {
    /// The name in the queue.
    pub id: String,
    /// The subject of the mail.
    pub subject: String,
    /// The Message-ID of the mail.
    pub message_id: String,
    /// The time at which the logbook made it.
    #[serde(with = "tampu_types::time::rfc3339")]
    #[schemars(with = "TimeText")]
    pub made: Time,
    /// The address of the sender.
    pub from: String,
    /// The recipients of the mail.
    pub to: Vec<Delivery>,
    /// The length of its text for the wire.
    pub bytes: u64,
    /// The entries whose texts it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<EntryRef>,
}

impl QueuedMail {
    /// Returns true if some recipient waits.
    pub fn waits(&self) -> bool {
        self.to.iter().any(|one| one.state == DeliveryState::Waiting)
    }

    /// Returns true if it failed for some recipient.
    fn has_failed(&self) -> bool {
        self.to.iter().any(|one| one.state == DeliveryState::Failed)
    }
}

/// The queue in a directory. One process uses it at a time.
#[derive(Debug)]
pub struct Queue {
    directory: PathBuf,
    mails: BTreeMap<String, QueuedMail>,
    last: i64,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// The server has accepted the mail.
    Sent(String),
    /// The attempt is repeated at this time.
    Later(Time, String),
    /// The mail has failed for this recipient.
    Failed(String),
}

impl Queue {
    /// Opens the queue of a directory, which is made if necessary. Returns the names of files that cannot be read, too.
    pub fn open(directory: &Path) -> Result<(Queue, Vec<String>), MailError> {
        let at = |why| MailError::Io { path: directory.to_owned(), why };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(at)?;
        let (mut mails, mut faults, mut texts) = (BTreeMap::new(), Vec::new(), Vec::new());
        for file in fs::read_dir(directory).map_err(at)? {
            let path = file.map_err(at)?.path();
            let Some(id) = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
            match path.extension().and_then(|kind| kind.to_str()) {
                Some("json") => match read(&path) {
                    Ok(mail) if mail.id == id => drop(mails.insert(id, mail)),
                    Ok(mail) => faults.push(format!("{}: it is about the mail '{}'", path.display(), mail.id)),
                    Err(why) => faults.push(format!("{}: {why}", path.display())),
                },
                Some("eml") => texts.push((id, path)),
                // A state that was not written to its end.
                Some("new") => drop(fs::remove_file(&path)),
                _ => {}
            }
        }
        for (id, path) in &texts {
            // Its sender was told nothing yet. A text beside an unreadable state stays.
            if !mails.contains_key(id) && !directory.join(format!("{id}.json")).exists() {
                let _ = fs::remove_file(path);
            }
        }
        mails.retain(|id, _| {
            let is_there = texts.iter().any(|(text, _)| text == id);
            if !is_there {
                faults.push(format!("{}: the text of this mail is missing", directory.join(format!("{id}.json")).display()));
            }
            is_there
        });
        let last = mails.keys().next_back().and_then(|id| i64::from_str_radix(id, 16).ok()).unwrap_or(0);
        let mut queue = Queue { directory: directory.to_owned(), mails, last };
        // A mail that was accepted by all just before the end of the process.
        let done: Vec<String> =
            queue.mails.values().filter(|mail| !mail.waits() && !mail.has_failed()).map(|mail| mail.id.clone()).collect();
        done.iter().try_for_each(|id| queue.remove(id))?;
        Ok((queue, faults))
    }

    /// Returns the mails, oldest first.
    pub fn mails(&self) -> impl Iterator<Item = &QueuedMail> {
        self.mails.values()
    }

    /// Returns a mail.
    pub fn mail(&self, id: &str) -> Result<&QueuedMail, MailError> {
        self.mails.get(id).ok_or_else(|| MailError::NoMail(id.to_owned()))
    }

    /// Returns the numbers of waiting and failed mails, and the bytes of both.
    pub fn sizes(&self) -> (usize, usize, u64) {
        let waiting = self.mails.values().filter(|mail| mail.waits()).count();
        (waiting, self.mails.len() - waiting, self.mails.values().map(|mail| mail.bytes).sum())
    }

    /// Adds a mail, which is on disk afterwards.
    pub fn add(&mut self, written: &Written, now: Time) -> Result<QueuedMail, MailError> {
        // Names follow one another, also within one tick of the clock.
        self.last = (self.last + 1).max(now.0);
        let id = format!("{:016x}", self.last);
        let to = written.to.iter().map(|to| Delivery {
            to: to.clone(),
            state: DeliveryState::Waiting,
            attempts: 0,
            next: now,
            last: None,
        });
        let mail = QueuedMail {
            id: id.clone(),
            subject: written.subject.clone(),
            message_id: written.id.clone(),
            made: now,
            from: written.from.clone(),
            to: to.collect(),
            bytes: written.bytes.len() as u64,
            about: written.about.clone(),
        };
        let text = self.path(&id, "eml");
        let result = write(&text, &written.bytes).map_err(|why| MailError::Io { path: text.clone(), why });
        if let Err(error) = result.and_then(|()| self.keep(&mail)) {
            let _ = fs::remove_file(&text);
            return Err(error);
        }
        self.mails.insert(id, mail.clone());
        Ok(mail)
    }

    /// Returns the text of a mail for the wire.
    pub fn text(&self, id: &str) -> Result<Vec<u8>, MailError> {
        let path = self.path(id, "eml");
        fs::read(&path).map_err(|why| MailError::Io { path, why })
    }

    /// Notes an attempt for a recipient. A mail that all recipients have is removed.
    pub fn note(&mut self, id: &str, recipient: usize, attempt: Attempt) -> Result<(), MailError> {
        let mut mail = self.mail(id)?.clone();
        let Some(delivery) = mail.to.get_mut(recipient) else { return Ok(()) };
        delivery.attempts += 1;
        (delivery.state, delivery.last) = match attempt {
            Attempt::Sent(answer) => (DeliveryState::Sent, Some(answer)),
            Attempt::Failed(why) => (DeliveryState::Failed, Some(why)),
            Attempt::Later(at, why) => {
                delivery.next = at;
                (DeliveryState::Waiting, Some(why))
            }
        };
        self.replace(mail)
    }

    /// Makes failed and waiting recipients of a mail due at once.
    pub fn retry(&mut self, id: &str, now: Time) -> Result<(), MailError> {
        let mut mail = self.mail(id)?.clone();
        for delivery in mail.to.iter_mut().filter(|one| one.state != DeliveryState::Sent) {
            (delivery.state, delivery.next, delivery.attempts) = (DeliveryState::Waiting, now, 0);
        }
        // The time limit begins again.
        mail.made = now;
        self.replace(mail)
    }

    /// Removes a mail.
    pub fn remove(&mut self, id: &str) -> Result<(), MailError> {
        self.mail(id)?;
        // Whatever the disk says, it is not sent again. The state first: a text without one is nothing.
        self.mails.remove(id);
        for kind in ["json", "eml"] {
            let path = self.path(id, kind);
            match fs::remove_file(&path) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(MailError::Io { path, why }),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes the mails about an entry for which the function returns true. It gets the time of the mail, too. Returns their
    /// number.
    pub fn forget(&mut self, is_purged: impl Fn(&EntryRef, Time) -> bool) -> Result<usize, MailError> {
        let has = |mail: &&QueuedMail| mail.about.iter().any(|about| is_purged(about, mail.made));
        let found: Vec<String> = self.mails.values().filter(has).map(|mail| mail.id.clone()).collect();
        // One that cannot be removed leaves the others.
        let removed: Vec<Result<(), MailError>> = found.iter().map(|id| self.remove(id)).collect();
        removed.into_iter().collect::<Result<(), MailError>>()?;
        Ok(found.len())
    }

    fn replace(&mut self, mail: QueuedMail) -> Result<(), MailError> {
        if !mail.waits() && !mail.has_failed() {
            return self.remove(&mail.id);
        }
        // Whatever the disk says, nobody gets it twice in the life of this process.
        self.mails.insert(mail.id.clone(), mail.clone());
        self.keep(&mail)?;
        let failed: Vec<String> = self.mails.values().filter(|mail| !mail.waits()).map(|mail| mail.id.clone()).collect();
        let surplus = failed.len().saturating_sub(FAILED);
        failed.iter().take(surplus).try_for_each(|id| self.remove(id))
    }

    /// Writes the state of a mail in place of the one before.
    fn keep(&self, mail: &QueuedMail) -> Result<(), MailError> {
        let (new, path) = (self.path(&mail.id, "new"), self.path(&mail.id, "json"));
        let text = serde_json::to_vec(mail).map_err(io::Error::other);
        let done = text.and_then(|text| {
            let _ = fs::remove_file(&new);
            write(&new, &text)?;
            fs::rename(&new, &path)?;
            File::open(&self.directory)?.sync_all()
        });
        done.map_err(|why| MailError::Io { path, why })
    }

    fn path(&self, id: &str, kind: &str) -> PathBuf {
        self.directory.join(format!("{id}.{kind}"))
    }
}

fn read(path: &Path) -> io::Result<QueuedMail> {
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(to: &[&str]) -> Written {
        Written {
            from: "log@example.org".to_owned(),
            to: to.iter().map(|to| (*to).to_owned()).collect(),
            subject: "HV".to_owned(),
            id: "1@example.org".to_owned(),
            bytes: b"Subject: HV\r\n\r\ntext\r\n".to_vec(),
            about: vec![EntryRef::new("Shift", 1)],
        }
    }

    #[test]
    fn a_queue_opened_again_has_what_waits_and_what_failed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("mail");
        let open = || Queue::open(&dir).unwrap();
        let (mut queue, _) = open();
        let one = queue.add(&written(&["a@x.org", "b@x.org"]), Time(5)).unwrap().id;
        let two = queue.add(&written(&["c@x.org"]), Time(5)).unwrap().id;
        assert!(one < two, "names have the order of the mails");
        queue.note(&one, 0, Attempt::Sent("250 ok".to_owned())).unwrap();
        queue.note(&one, 1, Attempt::Later(Time(9), "450 later".to_owned())).unwrap();
        queue.note(&two, 0, Attempt::Failed("550 no".to_owned())).unwrap();
        // What a killed process leaves behind.
        fs::write(dir.join("00000000000000ff.eml"), "text without a state").unwrap();
        fs::write(dir.join("00000000000000fe.new"), "{").unwrap();
        let (mut queue, faults) = open();
        assert_eq!((faults, queue.sizes()), (vec![], (1, 1, 42)));
        let states: Vec<_> = queue.mail(&one).unwrap().to.iter().map(|to| (to.state, to.next)).collect();
        assert_eq!(states, [(DeliveryState::Sent, Time(5)), (DeliveryState::Waiting, Time(9))]);
        queue.note(&one, 1, Attempt::Sent("250 ok".to_owned())).unwrap();
        queue.retry(&two, Time(20)).unwrap();
        assert!(queue.mail(&one).is_err() && queue.mail(&two).unwrap().waits());
        queue.remove(&two).unwrap();
        assert_eq!((fs::read_dir(&dir).unwrap().count(), open().0.sizes()), (0, (0, 0, 0)));
    }

    #[test]
    fn a_damaged_state_is_named_and_left() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("00000000000000aa.json"), "{").unwrap();
        fs::write(dir.path().join("00000000000000aa.eml"), "text").unwrap();
        let (queue, faults) = Queue::open(dir.path()).unwrap();
        assert!(queue.mails().next().is_none() && faults.len() == 1 && faults[0].contains("aa.json"), "{faults:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn failed_mails_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let (mut queue, _) = Queue::open(dir.path()).unwrap();
        let mut made = queue.add(&written(&["a@x.org"]), Time(1)).unwrap();
        (made.to[0].state, made.to[0].last) = (DeliveryState::Failed, Some("550".to_owned()));
        for number in 1..=FAILED {
            made.id = format!("{number:016x}");
            fs::write(dir.path().join(format!("{}.eml", made.id)), "text").unwrap();
            fs::write(dir.path().join(format!("{}.json", made.id)), serde_json::to_vec(&made).unwrap()).unwrap();
        }
        let (mut queue, faults) = Queue::open(dir.path()).unwrap();
        assert_eq!((faults, queue.sizes().1), (vec![], FAILED));
        let id = queue.add(&written(&["a@x.org"]), Time(1)).unwrap().id;
        queue.note(&id, 0, Attempt::Failed("550".to_owned())).unwrap();
        assert_eq!(queue.sizes().1, FAILED);
        assert!(queue.mail("0000000000000001").is_err(), "the oldest is gone");
    }
}
