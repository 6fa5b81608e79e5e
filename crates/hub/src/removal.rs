//! The service `hub/removal/<hub>`: the data that other limits would remove at once from the archives of one hub.
//!
//! Decision: the service has the name of the hub. Several hubs of a domain may have archives, and a setting changes those of
//! one hub alone. Rejected: a question to `log/archive`, which any hub of the domain answers.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tampu_archive::{Removal, Retention, TableArchive, upkeep::Limits as ArchiveLimits};
use tampu_bus::{
    BusError, CallError, Participant,
    access::{Access, Verb},
    engine::Guard,
    service::{Limits, Permission, Request, call_json, serve},
};
use tampu_types::TopicName;

use crate::collecting::Collecting;

/// Time limit for the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Questions that are answered at once.
const AT_ONCE: usize = 8;

/// Data that limits would remove from the archives of a hub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct HubRemoval {
    /// Data of the archive of logs.
    pub(crate) logs: Removal,
    /// Data of the archive of events, if there is one.
    pub(crate) events: Option<Removal>,
    /// Data of the archive of bulk transfers, if there is one.
    pub(crate) transfers: Option<Removal>,
}

/// The archives of a hub.
pub(crate) struct Archives {
    pub(crate) logs: Arc<Collecting>,
    pub(crate) events: Option<Arc<TableArchive>>,
    pub(crate) transfers: Option<Arc<TableArchive>>,
}

fn service(hub: &str) -> String {
    format!("hub/removal/{hub}")
}

/// Answers for the archives of this hub.
pub(crate) fn serve_removal(
    participant: &Participant,
    access: &Access,
    hub: &str,
    archives: Archives,
) -> Result<Guard, BusError> {
    let answer = move |request: Request| match request.json::<ArchiveLimits>() {
        Ok(limits) => {
            let retention = Retention::from(&limits);
            let of = |archive: &Arc<TableArchive>| archive.removal(&retention);
            request.answer(&HubRemoval {
                logs: archives.logs.removal(&retention),
                events: archives.events.as_ref().map(of),
                transfers: archives.transfers.as_ref().map(of),
            });
        }
        Err(why) => request.refuse(why),
    };
    let permission = Permission::Verb(access.clone(), Verb::Read);
    serve(participant, &TopicName::new(service(hub))?, permission, &Limits::on_threads("removal-answer", AT_ONCE), answer)
}

/// Asks the collector of a hub.
pub(crate) fn ask(participant: &Participant, hub: &str, retention: &Retention) -> Result<HubRemoval, CallError> {
    call_json(participant, &service(hub), &ArchiveLimits::from(retention), PATIENCE)?.first().json()
}
