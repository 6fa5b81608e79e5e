//! Mails by the rules of users: a worker reads the changes of the store, and mails those who want to know of a new entry.
//!
//! | subject | module |
//! |-|-|
//! | the time of a mail: at once, with a digest, after quiet hours | [`schedule`] |
//! | the texts of the mails | [`text`] |
//! | the worker | here |
//!
//! The number of the last change that was seen is a record of the store, written after the mails are in the queue. So a
//! killed hub loses no mail; one that it has queued just before has the same Message-ID the second time. Of several hubs
//! on one database one does this work, as long as it renews its lease.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde_json::json;
use tampu_bus::host::incarnation;
use tampu_elog::{
    pages::{Zone, address::escape, mails::recipients},
    site_zone,
};
use tampu_log::{Logger, warning};
use tampu_logbook::{
    entry::{Change, Entry, EntryRef},
    mail::{MailError, Outbox},
    notify::{
        NotifyError, NotifyRule, NotifySettings,
        matching::{NewEntryFacts, means},
        pending::{self, Waiting, WaitingEntry},
        rule, webhook,
    },
    people::{People, PeopleError, user::User},
    search::Stop,
    store::{Store, StoreError},
};
use tampu_types::Time;
use tampu_workers::WorkerThread;

use crate::clock::now;
use text::{NotifiedEntry, NotifierText};

mod schedule;
mod text;

/// The kind of the records of this worker.
const STATE: &str = "notify-state";
/// Number of changes that are read at a time.
const BATCH: usize = 200;
/// Longest wait of the worker before it checks whether it must end.
const LOOK: Duration = Duration::from_millis(500);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(5);
/// Time limit for matching one entry with the rules of one user.
const MATCHING: Duration = Duration::from_secs(2);
/// The time for which one of several hubs does this work, and after which it renews the lease, in nanoseconds.
const LEASE: (i64, i64) = (60_000_000_000, 20_000_000_000);
/// The wait before a mail is tried again that the queue did not take, in nanoseconds.
const AGAIN: i64 = 60_000_000_000;

/// What the worker needs.
pub struct NotifierSite {
    pub store: Arc<dyn Store>,
    pub people: Arc<People>,
    pub outbox: Arc<Outbox>,
    /// The site's secret, which signs the links that end a rule.
    pub secret: [u8; 32],
    /// The public address of ELOG's pages, without a slash at the end; empty if there are none.
    pub base: String,
    /// The configured local time of the site.
    pub zone: Zone,
    /// True if several hubs can use the store.
    pub is_shared: bool,
    pub logger: Logger,
}

/// The running worker. Dropping it ends it; what is not sent follows after the next start.
pub struct Notifying {
    stopping: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

/// Errors of the worker.
#[derive(Debug, thiserror::Error)]
enum NotifierError {
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    People(#[from] PeopleError),
    #[error("{0}")]
    Rules(#[from] NotifyError),
}

struct Worker {
    site: NotifierSite,
    /// The number of the last change that was seen.
    seen: Option<u64>,
    /// The time of the next mail that waits.
    due: Option<i64>,
    /// The end of the lease.
    leased: i64,
}

impl Notifying {
    /// Starts the worker.
    pub fn start(site: NotifierSite) -> std::io::Result<Notifying> {
        let stopping = Arc::new(AtomicBool::new(false));
        let asked = stopping.clone();
        let mut worker = Worker { site, seen: None, due: None, leased: 0 };
        let worker = WorkerThread::named("book-notify").spawn_restarting(RESTART, move || worker.run(&asked))?;
        Ok(Notifying { stopping, worker: Some(worker) })
    }
}

impl Drop for Notifying {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Worker {
    fn run(&mut self, stopping: &AtomicBool) {
        let mut failing = false;
        while !stopping.load(Ordering::Acquire) {
            let done = self.turn();
            if let Err(error) = &done {
                if !failing {
                    warning!(self.site.logger, "cannot notify users of new entries: {error}; the hub retries");
                }
                std::thread::sleep(LOOK);
            }
            failing = done.is_err();
        }
    }

    fn turn(&mut self) -> Result<(), NotifierError> {
        if self.site.is_shared && !self.holds_lease()? {
            self.seen = None;
            std::thread::sleep(LOOK);
            return Ok(());
        }
        let seen = match self.seen {
            Some(seen) => seen,
            None => self.begin()?,
        };
        if self.due.is_some_and(|due| due <= now().0) {
            self.send_waiting()?;
        }
        if self.site.store.wait_for_change(seen, LOOK)? > seen {
            self.pass_on(seen)?;
        }
        Ok(())
    }

    /// Returns true if this hub does the work for all hubs of the store.
    fn holds_lease(&mut self) -> Result<bool, StoreError> {
        let (Time(now), own) = (now(), incarnation().to_string());
        if self.leased - now > LEASE.1 {
            return Ok(true);
        }
        let record = self.site.store.record(STATE, "lease")?;
        let (version, value) = record.map_or((0, json!({})), |record| (record.version, record.value));
        let is_of_other = value["hub"] != json!(own) && value["until"].as_i64().unwrap_or(0) > now;
        if is_of_other {
            return Ok(false);
        }
        let until = now.saturating_add(LEASE.0);
        match self.site.store.put_record(STATE, "lease", &json!({ "hub": own, "until": until }), Some(version)) {
            Ok(_) => {
                self.leased = until;
                Ok(true)
            }
            Err(StoreError::RecordChanged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads where the worker has been, and what waits. Without rules nothing was noted, and nothing is missed.
    fn begin(&mut self) -> Result<u64, StoreError> {
        let store = &self.site.store;
        let last = store.last_change()?;
        let record = store.record(STATE, "seen")?.and_then(|record| record.value.as_u64());
        let seen = record.filter(|_| rule::read_all(&**store).is_ok_and(|rules| !rules.is_empty())).unwrap_or(last).min(last);
        self.due = pending::read_all(&**store)?.iter().filter_map(|(_, waiting)| waiting.due()).min();
        self.seen = Some(seen);
        Ok(seen)
    }

    /// Notifies users of the changes after one.
    fn pass_on(&mut self, seen: u64) -> Result<(), NotifierError> {
        let store = self.site.store.clone();
        let changes = store.changes(seen, BATCH)?;
        let rules = rule::read_all(&*store)?;
        let Some(last) = changes.last().map(|change| change.number) else {
            self.seen = Some(store.last_change()?);
            return Ok(());
        };
        if rules.is_empty() {
            self.seen = Some(last);
            return Ok(());
        }
        let books = store.books()?;
        let attributes: Vec<String> = books.into_iter().flat_map(|info| info.book.attributes).map(|one| one.name).collect();
        for change in changes.iter().filter(|change| change.what == Change::Posted) {
            let entry = match store.entry(&change.at) {
                Ok(entry) => entry,
                Err(StoreError::Gone(_) | StoreError::NoEntry(_) | StoreError::NoBook(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            let answered = entry.parent.and_then(|parent| store.entry(&EntryRef::new(&entry.at.book, parent)).ok());
            let answered = answered.map(|answered| answered.by);
            let mut is_any = false;
            for (login, settings) in rules.iter().filter(|(login, _)| *login != entry.by) {
                is_any |= self.notify(login, settings, &entry, answered.as_deref(), &attributes)?;
            }
            if is_any {
                self.note(change.number)?;
            }
        }
        self.note(last)
    }

    fn note(&mut self, seen: u64) -> Result<(), NotifierError> {
        self.site.store.put_record(STATE, "seen", &json!(seen), None)?;
        self.seen = Some(seen);
        Ok(())
    }

    /// Notifies a user of a new entry, now or later; returns true if a rule means it.
    fn notify(
        &mut self,
        login: &str,
        settings: &NotifySettings,
        entry: &Entry,
        answered: Option<&str>,
        attributes: &[String],
    ) -> Result<bool, NotifierError> {
        let Some((user, address, entry)) = self.as_seen(login, entry)? else { return Ok(false) };
        let stop = Stop::default().within(MATCHING);
        let new = NewEntryFacts { entry: &entry, answered, posted: entry.changed, attributes, stop: &stop };
        let meant: Vec<&NotifyRule> = settings.rules.iter().filter(|rule| means(rule, login, &new)).collect();
        if meant.is_empty() {
            return Ok(false);
        }
        let (hooks, meant): (Vec<&NotifyRule>, Vec<&NotifyRule>) = meant.into_iter().partition(|rule| rule.webhook.is_some());
        for rule in hooks {
            self.post(rule, login, &entry);
        }
        let Some(address) = address.filter(|_| !meant.is_empty()) else { return Ok(true) };
        let now = now();
        // Read now: an import beside the running hub stores it.
        let site = match site_zone::of_site(&*self.site.store, self.site.zone.clone())? {
            Zone::OfEntry => Zone::named("local").unwrap_or_default(),
            zone => zone,
        };
        let zone = schedule::zone(settings, &site);
        let due = |rule: &NotifyRule| schedule::due(rule.digest, settings.quiet.as_ref(), &zone, now);
        let is_now = |rule: &&&NotifyRule| due(rule).0 <= now.0;
        let at_once: Vec<&NotifyRule> = meant.iter().filter(is_now).copied().collect();
        if !at_once.is_empty() {
            // An entry that was mailed at once is not mailed again with a digest.
            let sent = self.send(&user, &address, &[NotifiedEntry { entry: entry.clone(), rules: at_once.clone() }], 0);
            return match sent {
                Ok(()) => Ok(true),
                Err(error) => {
                    warning!(self.site.logger, "a notification of '{login}' waits: {error}");
                    self.wait(login, &entry.at, &at_once[0].id, now.0.saturating_add(AGAIN))?;
                    Ok(true)
                }
            };
        }
        for rule in meant {
            self.wait(login, &entry.at, &rule.id, due(rule).0)?;
        }
        Ok(true)
    }

    /// Puts the message for the webhook of a rule into the queue.
    fn post(&self, rule: &NotifyRule, login: &str, entry: &Entry) {
        let Some(url) = &rule.webhook else { return };
        let at = format!("{}/{}/{}", self.site.base, escape(&entry.at.book), entry.at.id);
        let message = webhook::message(rule, login, entry, &at);
        let subject = format!("webhook {} of '{login}': {} {}", rule.id, entry.at.book, entry.at.id);
        if let Err(error) = self.site.outbox.send_hook_about(url, &subject, message, vec![entry.at.clone()]) {
            warning!(self.site.logger, "the webhook {} of '{login}' is not told of entry {}: {error}", rule.id, entry.at.id);
        }
    }

    /// Returns a user who may read an entry, the user's address, and the entry as the user sees it.
    fn as_seen(&self, login: &str, entry: &Entry) -> Result<Option<(User, Option<String>, Entry)>, NotifierError> {
        // A user who was removed left the rules behind.
        let Ok(user) = self.site.people.user(login) else { return Ok(None) };
        let Some(shown) = recipients::reads(&self.site.people, &user, &entry.at.book)? else { return Ok(None) };
        let address = recipients::address(&user);
        let mut entry = entry.clone();
        entry.keep_shown(shown.as_deref());
        Ok(Some((user, address, entry)))
    }

    fn wait(&mut self, login: &str, at: &EntryRef, rule: &str, due: i64) -> Result<(), NotifierError> {
        let store = &*self.site.store;
        let record = store.record(pending::KIND, login)?;
        let mut waiting: Waiting =
            record.map(|record| serde_json::from_value(record.value).unwrap_or_default()).unwrap_or_default();
        waiting.add(WaitingEntry { at: at.clone(), rule: rule.to_owned(), due });
        pending::write(store, login, &waiting)?;
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
        Ok(())
    }

    /// Sends what was waiting until now. Rules that are gone, and entries that the user may not read any more, are left out.
    fn send_waiting(&mut self) -> Result<(), NotifierError> {
        let store = self.site.store.clone();
        let Time(now) = now();
        let mut next: Option<i64> = None;
        for (login, mut waiting) in pending::read_all(&*store)? {
            let (due, more) = waiting.take_due(now);
            if !due.is_empty()
                && let Err(error) = self.send_due(&login, &due, more)
            {
                warning!(self.site.logger, "notifications of '{login}' wait: {error}");
                let again = due.into_iter().map(|entry| WaitingEntry { due: now.saturating_add(AGAIN), ..entry });
                waiting.entries = again.chain(waiting.entries).collect();
                waiting.more = more;
            }
            pending::write(&*store, &login, &waiting)?;
            next = next.into_iter().chain(waiting.due()).min();
        }
        self.due = next;
        Ok(())
    }

    fn send_due(&self, login: &str, due: &[WaitingEntry], more: u64) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let settings = rule::read(&*self.site.store, login).map_err(|error| text(&error))?;
        let mut found: Vec<NotifiedEntry<'_>> = Vec::new();
        let mut of: Option<(User, String)> = None;
        for waiting in due {
            let Some(rule) = settings.rules.iter().find(|rule| rule.id == waiting.rule) else { continue };
            if let Some(known) = found.iter_mut().find(|known| known.entry.at == waiting.at) {
                known.rules.push(rule);
                continue;
            }
            let entry = match self.site.store.entry(&waiting.at) {
                Ok(entry) => entry,
                Err(StoreError::Gone(_) | StoreError::NoEntry(_) | StoreError::NoBook(_)) => continue,
                Err(error) => return Err(error.to_string()),
            };
            if let Some((user, Some(address), entry)) = self.as_seen(login, &entry).map_err(|error| text(&error))? {
                of = Some((user, address));
                found.push(NotifiedEntry { entry, rules: vec![rule] });
            }
        }
        match of {
            Some((user, address)) => self.send(&user, &address, &found, more).map_err(|error| text(&error)),
            None => Ok(()),
        }
    }

    fn send(&self, user: &User, address: &str, entries: &[NotifiedEntry<'_>], more: u64) -> Result<(), MailError> {
        let domain = self.site.outbox.domain();
        let text = NotifierText { user, base: &self.site.base, secret: &self.site.secret, domain: &domain };
        self.site.outbox.send(&text.mail(address, entries, more)).map(drop)
    }
}
