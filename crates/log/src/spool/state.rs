//! State of a running spool.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::{Mutex, MutexGuard};
use tampu_bus::Participant;

use super::{
    options::SpoolOptions,
    report::{Doing, SourceSpool, SpoolReport},
    store::{Account, Store},
    watch::Watch,
};

/// State that the workers and services of a spool share.
pub(super) struct SpoolShared {
    pub(super) participant: Participant,
    pub(super) directory: PathBuf,
    pub(super) options: SpoolOptions,
    pub(super) store: Mutex<Store>,
    pub(super) watch: Watch,
    pub(super) state: Mutex<State>,
    pub(super) stopping: AtomicBool,
}

/// Activity and troubles at present.
#[derive(Default)]
pub(super) struct State {
    pub(super) doing: Doing,
    pub(super) stuck: Option<String>,
    pub(super) replayed: u64,
}

impl SpoolShared {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn report(&self) -> SpoolReport {
        let store = self.store();
        let mut report = SpoolReport {
            spool: self.participant.source().to_string(),
            incarnation: self.participant.incarnation(),
            directory: self.directory.clone(),
            bytes: store.bytes(),
            limit: self.options.total,
            source_limit: self.options.per_source,
            faults: store.faults.clone(),
            ..SpoolReport::default()
        };
        let lost = store.ledger().lost();
        let mut accounts = store.accounts();
        lost.keys().for_each(|source| {
            accounts.entry(source.clone()).or_default();
        });
        for (source, account) in accounts {
            report.records += account.records;
            report.since = match (report.since, account.since) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            let lost = lost.get(&source).copied().unwrap_or_default();
            let Account { bytes, records, since } = account;
            report.sources.push(SourceSpool { source, bytes, records, since, lost });
        }
        drop(store);
        let state = self.state();
        (report.doing, report.replayed) = (state.doing, state.replayed);
        report.stuck.clone_from(&state.stuck);
        report
    }
}
