//! The sender of mail: takes mails into the queue, and offers them to the server until they are gone.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tampu_types::Time;
use tampu_workers::WorkerThread;

use super::{
    message::{Mail, MailError, Written, bare_address},
    purged::PurgedText,
    queue::{Attempt, DeliveryState, Queue, QueuedMail},
    settings::MailSettings,
    smtp::{Connection, Offered},
};
use crate::{
    entry::EntryRef,
    store::{Store, now},
};

/// The longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// Mails that one connection takes.
const OF_ONE_CONNECTION: usize = 100;
/// The pause before a worker that panicked starts again.
const RESTART: Duration = Duration::from_secs(5);

/// News of the sender, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailNews {
    /// The server cannot be used, with the reason. Said once until it works again.
    Away(String),
    /// The server works again.
    Back,
    /// A mail failed for a recipient, with the reason.
    Failed { id: String, to: String, why: String },
    /// A file of the queue cannot be read or written.
    Fault(String),
}

/// The state of the sender.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailReport {
    /// Mails that wait.
    pub waiting: u64,
    /// Mails that failed for some recipient.
    pub failed: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Deliveries that the server accepted since the start.
    pub sent: u64,
    /// Attempts that did not succeed since the start.
    pub repeated: u64,
    /// Deliveries that failed since the start.
    pub given_up: u64,
    /// The reason why the server cannot be used, while it cannot.
    pub away: Option<String>,
}

struct State {
    queue: Queue,
    /// The reason why the server cannot be used, the failures in a row, and the time of the next connection.
    away: Option<(String, u32, Time)>,
}

struct Shared {
    settings: MailSettings,
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
    sent: AtomicU64,
    repeated: AtomicU64,
    given_up: AtomicU64,
    news: Box<dyn Fn(MailNews) + Send + Sync>,
    /// The way to addresses of the web; without it none is in the queue.
    hooks: Option<Box<HookPoster>>,
}

/// Posts a text, with its headers, to an address of the web.
pub type HookPoster = dyn Fn(&str, &[u8]) -> Offered + Send + Sync;

/// The beginning of recipients that are addresses of the web.
const HOOK: &str = "https://";

/// The sender of mail. Dropping it ends its worker; what waits is sent after the next start.
pub struct Outbox {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Outbox {
    /// Opens the queue in a directory and starts the worker.
    pub fn start(
        settings: MailSettings,
        directory: &Path,
        news: impl Fn(MailNews) + Send + Sync + 'static,
    ) -> Result<Outbox, MailError> {
        Outbox::with_hooks(settings, directory, news, None)
    }

    /// Opens the queue in a directory and starts its workers: one for mail, and one for addresses of the web if there is a
    /// way to them. A silent address of the web delays no mail.
    pub fn with_hooks(
        settings: MailSettings,
        directory: &Path,
        news: impl Fn(MailNews) + Send + Sync + 'static,
        hooks: Option<Box<HookPoster>>,
    ) -> Result<Outbox, MailError> {
        let (queue, faults) = Queue::open(directory)?;
        faults.into_iter().for_each(|fault| news(MailNews::Fault(fault)));
        let shared = Arc::new(Shared {
            settings,
            state: Mutex::new(State { queue, away: None }),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            news: Box::new(news),
            hooks,
        });
        let (of_mail, of_hooks) = (shared.clone(), shared.clone());
        let mut outbox = Outbox { shared, workers: Vec::new() };
        let worker = WorkerThread::named("book-mail").spawn_restarting(RESTART, move || of_mail.work());
        outbox.workers.push(worker.map_err(MailError::Worker)?);
        if of_hooks.hooks.is_some() {
            let worker = WorkerThread::named("book-hooks").spawn_restarting(RESTART, move || of_hooks.post());
            outbox.workers.push(worker.map_err(MailError::Worker)?);
        }
        Ok(outbox)
    }

    /// Returns true if texts can be posted to addresses of the web.
    pub fn has_hooks(&self) -> bool {
        self.shared.hooks.is_some()
    }

    /// Takes a text for an address of the web into the queue, after its headers and an empty line.
    pub fn send_hook(&self, url: &str, subject: &str, text: Vec<u8>) -> Result<String, MailError> {
        self.send_hook_about(url, subject, text, Vec::new())
    }

    /// Takes a text for an address of the web into the queue, with the entries that it is about.
    pub fn send_hook_about(&self, url: &str, subject: &str, text: Vec<u8>, about: Vec<EntryRef>) -> Result<String, MailError> {
        if !self.has_hooks() || !url.starts_with(HOOK) {
            let why = "addresses of the web get nothing: [book] webhook_hosts of the hub's configuration names no host";
            return Err(MailError::Message(why.to_owned()));
        }
        let (from, subject) = (String::new(), subject.to_owned());
        self.take(&Written { from, to: vec![url.to_owned()], subject, id: String::new(), bytes: text, about })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &MailSettings {
        &self.shared.settings
    }

    /// Returns the domain of Message-IDs, which is the one of `[mail] from`.
    pub fn domain(&self) -> String {
        let from = self.shared.settings.from.as_deref().and_then(bare_address).unwrap_or_default();
        from.rsplit_once('@').map_or_else(|| "localhost".to_owned(), |(_, domain)| domain.to_owned())
    }

    /// Takes a mail into the queue and returns its name there. It is on disk afterwards.
    pub fn send(&self, mail: &Mail) -> Result<String, MailError> {
        self.take(&mail.write(&self.shared.settings)?)
    }

    fn take(&self, written: &Written) -> Result<String, MailError> {
        let settings = &self.shared.settings;
        let mut state = self.shared.state.lock();
        let (waiting, _, bytes) = state.queue.sizes();
        if waiting >= settings.queue {
            return Err(MailError::Full(format!("[mail] queue: {waiting} mails")));
        }
        if bytes + written.bytes.len() as u64 > settings.queue_mb << 20 {
            return Err(MailError::Full(format!("[mail] queue_mb: {} MiB", settings.queue_mb)));
        }
        let id = state.queue.add(written, now())?.id;
        drop(state);
        self.shared.changed.notify_all();
        Ok(id)
    }

    /// Logs a mail that could not be made or queued, where no response can say so.
    pub fn log_failure(&self, why: String) {
        (self.shared.news)(MailNews::Fault(why));
    }

    /// Sends a mail at once, past the queue, and returns the server's answer.
    pub fn test(&self, mail: &Mail) -> Result<String, MailError> {
        let settings = &self.shared.settings;
        let written = mail.write(settings)?;
        let mut answers = Vec::new();
        let mut connection = Connection::open(settings).map_err(MailError::Message)?;
        for to in &written.to {
            match connection.offer(&written.from, to, &written.bytes) {
                Offered::Accepted(answer) => answers.push(answer),
                Offered::NotNow(why) => return Err(MailError::Message(format!("{to}: not now: {why}"))),
                Offered::Refused(why) => return Err(MailError::Message(format!("{to}: refused: {why}"))),
                Offered::Broken(why) => return Err(MailError::Message(format!("{to}: the connection broke: {why}"))),
            }
        }
        connection.close();
        // The server works: what waits for it need not wait longer.
        self.shared.state.lock().away = None;
        self.shared.changed.notify_all();
        Ok(answers.join("; "))
    }

    /// Returns the mails that wait and that failed, oldest first.
    pub fn mails(&self) -> Vec<QueuedMail> {
        self.shared.state.lock().queue.mails().cloned().collect()
    }

    /// Makes a mail due at once, also one that failed.
    pub fn retry(&self, id: &str) -> Result<(), MailError> {
        let mut state = self.shared.state.lock();
        state.queue.retry(id, now())?;
        state.away = None;
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Removes a mail from the queue.
    pub fn remove(&self, id: &str) -> Result<(), MailError> {
        self.shared.state.lock().queue.remove(id)
    }

    /// Removes the mails and texts for the web that have a purged text. Returns their number.
    pub fn forget(&self, store: &(impl Store + ?Sized), purged: PurgedText<'_>) -> Result<usize, MailError> {
        self.shared.state.lock().queue.forget(|about, made| purged.is_in(store, about, made))
    }

    /// Returns the state of the sender.
    pub fn report(&self) -> MailReport {
        let state = self.shared.state.lock();
        let (waiting, failed, bytes) = state.queue.sizes();
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        MailReport {
            waiting: waiting as u64,
            failed: failed as u64,
            bytes,
            sent: count(&self.shared.sent),
            repeated: count(&self.shared.repeated),
            given_up: count(&self.shared.given_up),
            away: state.away.as_ref().map(|(why, ..)| why.clone()),
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        // Under the lock, so that the worker is either before its look at `stopping` or waits.
        drop(self.shared.state.lock());
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

/// One recipient whose turn it is.
struct Due {
    id: String,
    recipient: usize,
    from: String,
    to: String,
    made: Time,
    attempts: u32,
}

impl Shared {
    fn work(&self) {
        while let Some(due) = self.wait(false) {
            let connected = Connection::open(&self.settings);
            let mut connection = match connected {
                Ok(connection) => connection,
                Err(why) => {
                    self.set_away(&due, why);
                    continue;
                }
            };
            if self.state.lock().away.take().is_some() {
                (self.news)(MailNews::Back);
            }
            let mut next = Some(due);
            for _ in 0..OF_ONE_CONNECTION {
                let Some(due) = next.take() else { break };
                self.offer(&mut connection, &due);
                if connection.is_broken() || self.stopping.load(Ordering::Relaxed) {
                    break;
                }
                next = due_at(&self.state.lock(), now(), false).ok();
            }
            connection.close();
        }
    }

    /// Posts what is for addresses of the web.
    fn post(&self) {
        let Some(poster) = &self.hooks else { return };
        while let Some(due) = self.wait(true) {
            let text = self.state.lock().queue.text(&due.id);
            let attempt = match text.map(|text| poster(&due.to, &text)) {
                Err(error) => Attempt::Failed(error.to_string()),
                Ok(Offered::Accepted(answer)) => Attempt::Sent(answer),
                Ok(Offered::Refused(why)) => Attempt::Failed(why),
                Ok(Offered::NotNow(why) | Offered::Broken(why)) => self.later(&due, why),
            };
            self.note(&due, attempt);
        }
    }

    /// Waits for a recipient whose turn it is; `None` at the end.
    fn wait(&self, of_hooks: bool) -> Option<Due> {
        let mut state = self.state.lock();
        loop {
            if self.stopping.load(Ordering::Relaxed) {
                return None;
            }
            match due_at(&state, now(), of_hooks) {
                Ok(due) => return Some(due),
                Err(None) => self.changed.wait(&mut state),
                Err(Some(pause)) => drop(self.changed.wait_for(&mut state, pause)),
            }
        }
    }

    fn offer(&self, connection: &mut Connection, due: &Due) {
        let text = self.state.lock().queue.text(&due.id);
        let attempt = match text {
            Err(error) => Attempt::Failed(error.to_string()),
            Ok(text) => match connection.offer(&due.from, &due.to, &text) {
                Offered::Accepted(answer) => Attempt::Sent(answer),
                Offered::Refused(why) => Attempt::Failed(why),
                Offered::NotNow(why) | Offered::Broken(why) => self.later(due, why),
            },
        };
        self.note(due, attempt);
    }

    /// Returns the next attempt, or the failure of a mail whose time is over.
    fn later(&self, due: &Due, why: String) -> Attempt {
        let limit = Duration::from_secs(self.settings.give_up_h * 3600);
        let at = now().0.saturating_add(self.pause(due.attempts).as_nanos() as i64);
        if at.saturating_sub(due.made.0) > limit.as_nanos() as i64 {
            return Attempt::Failed(format!("not sent within {} h: {why}", self.settings.give_up_h));
        }
        Attempt::Later(Time(at), why)
    }

    /// Returns the wait after a number of failed attempts before this one.
    fn pause(&self, attempts: u32) -> Duration {
        Duration::from_secs(self.settings.retry_s << attempts.min(12)).min(LONGEST_WAIT)
    }

    fn note(&self, due: &Due, attempt: Attempt) {
        let count = match &attempt {
            Attempt::Sent(_) => &self.sent,
            Attempt::Later(..) => &self.repeated,
            Attempt::Failed(_) => &self.given_up,
        };
        count.fetch_add(1, Ordering::Relaxed);
        if let Attempt::Failed(why) = &attempt {
            (self.news)(MailNews::Failed { id: due.id.clone(), to: due.to.clone(), why: why.clone() });
        }
        match self.state.lock().queue.note(&due.id, due.recipient, attempt) {
            // Somebody dropped it meanwhile.
            Ok(()) | Err(MailError::NoMail(_)) => {}
            Err(error) => (self.news)(MailNews::Fault(error.to_string())),
        }
    }

    /// Notes that the server cannot be used. Mails whose time is over fail.
    fn set_away(&self, due: &Due, why: String) {
        let mut state = self.state.lock();
        let failures = state.away.as_ref().map_or(0, |(_, failures, _)| *failures);
        let is_new = state.away.as_ref().is_none_or(|(before, ..)| *before != why);
        let next = Time(now().0.saturating_add(self.pause(failures).as_nanos() as i64));
        state.away = Some((why.clone(), failures.saturating_add(1), next));
        drop(state);
        self.repeated.fetch_add(1, Ordering::Relaxed);
        if is_new {
            (self.news)(MailNews::Away(why.clone()));
        }
        if let failed @ Attempt::Failed(_) = self.later(due, why) {
            self.note(due, failed);
        }
    }
}

/// Returns the recipient whose turn it is, or the time until there is one.
fn due_at(state: &State, now: Time, of_hooks: bool) -> Result<Due, Option<Duration>> {
    let away = if of_hooks { &None } else { &state.away };
    let not_before = away.as_ref().map_or(i64::MIN, |(_, _, next)| next.0);
    let waiting = state.queue.mails().flat_map(|mail| {
        let of_mail = mail
            .to
            .iter()
            .enumerate()
            .filter(|(_, to)| to.state == DeliveryState::Waiting && to.to.starts_with(HOOK) == of_hooks);
        of_mail.map(move |(recipient, delivery)| (delivery.next.0.max(not_before), mail, recipient, delivery))
    });
    let Some((at, mail, recipient, delivery)) = waiting.min_by_key(|(at, ..)| *at) else { return Err(None) };
    if at > now.0 {
        return Err(Some(Duration::from_nanos((at - now.0) as u64)));
    }
    Ok(Due {
        id: mail.id.clone(),
        recipient,
        from: mail.from.clone(),
        to: delivery.to.clone(),
        made: mail.made,
        attempts: delivery.attempts,
    })
}
