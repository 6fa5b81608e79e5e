//! A process that subscribes and keeps an account.
//!
//! ```text
//! started with   name [sleep_us]: how long its callback sleeps over each event
//! says           ready (the first value has come) | account JSON
//! is told        wake: sleep no more | report
//! ```

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tampu_bus::connect::Settings;
use tampu_event::{
    Client,
    client::{ClientSettings, SubscribeOptions, Subscription},
};
use tampu_types::event::{AttributePattern, Kinds};

use super::{
    ATTRIBUTE, PATIENCE,
    account::Account,
    part::{Part, Told, join, say},
};

/// A subscription and its account, in this process.
pub struct Subscriber {
    account: Arc<(Mutex<Account>, Condvar)>,
    sleep_us: Arc<AtomicU64>,
    _subscription: Subscription,
    _client: Client,
}

impl Subscriber {
    /// Subscribes to the scene's attribute.
    pub fn start(config: &Settings, name: &str, sleep_us: u64) -> Subscriber {
        let client = Client::start(join(config, name), ClientSettings::default()).unwrap();
        let account = Arc::new((Mutex::new(Account::default()), Condvar::new()));
        let sleep_us = Arc::new(AtomicU64::new(sleep_us));
        let wish = SubscribeOptions::of([AttributePattern::new(ATTRIBUTE).unwrap()]).kinds(Kinds::USER);
        let (into, sleep) = (account.clone(), sleep_us.clone());
        let subscription = client.subscribe(wish, move |event| {
            lock(&into.0).take(event);
            into.1.notify_all();
            let nap = sleep.load(Ordering::Relaxed);
            if nap > 0 {
                std::thread::sleep(Duration::from_micros(nap));
            }
        });
        Subscriber { account, sleep_us, _subscription: subscription, _client: client }
    }

    /// Waits until the account is such.
    #[track_caller]
    pub fn wait_until(&self, what: &str, mut is_such: impl FnMut(&Account) -> bool) {
        let account = lock(&self.account.0);
        let waiting = self.account.1.wait_timeout_while(account, PATIENCE, |account| !is_such(account));
        let (account, timeout) = waiting.unwrap_or_else(PoisonError::into_inner);
        assert!(
            !timeout.timed_out(),
            "not within {PATIENCE:?}: {what}: the last words are {:?}",
            account.word.iter().rev().take(8).collect::<Vec<_>>()
        );
    }

    /// The same for a shorter time; says whether it came so.
    pub fn is_within(&self, time: Duration, mut is_such: impl FnMut(&Account) -> bool) -> bool {
        let account = lock(&self.account.0);
        let waiting = self.account.1.wait_timeout_while(account, time, |account| !is_such(account));
        !waiting.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// The account as it is.
    pub fn account(&self) -> MutexGuard<'_, Account> {
        lock(&self.account.0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lives a subscriber's life.
pub fn be(config: &Settings, told: &Told) {
    let subscriber = Subscriber::start(config, &told.get::<String>("name"), told.find("sleep_us").unwrap_or(0));
    subscriber.wait_until("a first value", |account| !account.lives.is_empty());
    say("ready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        match line.as_str() {
            "wake" => subscriber.sleep_us.store(0, Ordering::Relaxed),
            _ => say(&format!("account {}", serde_json::to_string(&*subscriber.account()).unwrap())),
        }
    }
}

/// Asks a subscriber's process for its account until it knows of this number of a life.
#[track_caller]
pub fn account_of(part: &mut Part, life: u64, last: u64) -> Account {
    let begun = Instant::now();
    loop {
        let account: Account = serde_json::from_str(&part.ask("report", "account ")).unwrap();
        if account.last(life) >= last {
            return account;
        }
        assert!(begun.elapsed() < PATIENCE, "it knows of {} of {last}", account.last(life));
        std::thread::sleep(Duration::from_millis(5));
    }
}
