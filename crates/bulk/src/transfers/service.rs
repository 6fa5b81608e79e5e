//! Services `bulk/transfers` and `bulk/archive`.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tampu_archive::{
    BackupPlaces, Stop,
    upkeep::{LONGEST, Told, Turn, Upkeep},
};
use tampu_bus::{
    BusError, Participant,
    access::{Access, Verb},
    engine::Guard,
    service::{Limits, Permission, Request, serve},
};
use tampu_types::{Domain, TopicName, name::escape};

use super::{account::Account, archive::TransferArchive, query::TransferQuery, transfer::Transfer};
use crate::asking;

/// Directory of the transfers, below that of the domain.
pub const DIRECTORY: &str = "transfers";

/// Most questions at once, and the longest time for an answer.
const ANSWERS: usize = 8;
const LONGEST_ANSWER: Duration = Duration::from_secs(20);

/// Returns the directory of a domain's transfers in a data directory (`--data`).
pub fn archive_in(data: &std::path::Path, domain: &Domain) -> std::path::PathBuf {
    data.join(escape(domain.as_str())).join(DIRECTORY)
}

/// The answering side. Its guards hold it.
struct TransferServices {
    domain: Domain,
    account: Arc<Mutex<Account>>,
    archive: Arc<TransferArchive>,
    turn: Turn,
    backups: BackupPlaces,
}

/// Declares the services of an account with an archive.
pub(super) fn declare(
    participant: &Participant,
    access: &Access,
    account: &Arc<Mutex<Account>>,
    archive: &Arc<TransferArchive>,
    backups: BackupPlaces,
) -> Result<Vec<Guard>, BusError> {
    let services = Arc::new(TransferServices {
        domain: participant.domain().clone(),
        account: account.clone(),
        archive: archive.clone(),
        turn: Turn::default(),
        backups,
    });
    let searching = Limits { time: LONGEST_ANSWER, ..Limits::on_threads("bulk transfers answer", ANSWERS) };
    let maintaining = Limits { time: LONGEST, ..searching.clone() };
    let of = services.clone();
    let transfers = serve(
        participant,
        &TopicName::new(asking::TRANSFERS)?,
        Permission::Verb(access.clone(), Verb::Read),
        &searching,
        move |request: Request| of.transfers(&request),
    )?;
    // The verb depends on the question.
    let permission = Permission::ByHandler(access.clone());
    let upkeep = serve(participant, &TopicName::new(asking::ARCHIVE)?, permission, &maintaining, move |request: Request| {
        services.upkeep(&request);
    })?;
    Ok(vec![transfers, upkeep])
}

impl TransferServices {
    fn transfers(&self, request: &Request) {
        let query = match request.json_or_default::<TransferQuery>() {
            Ok(query) => query,
            Err(error) => return request.refuse(error),
        };
        let running: Vec<Transfer> = self.account.lock().transfers.iter().cloned().collect();
        match self.archive.page(&query, &running, &Stop::after(request.time())) {
            Ok(page) => drop(request.answer(&page)),
            Err(error) => request.refuse(error),
        }
    }

    fn upkeep(&self, request: &Request) {
        let asked = match request.json::<Upkeep>() {
            Ok(asked) => asked,
            Err(error) => return request.refuse(error),
        };
        let verb = if asked.only_reads() { Verb::Read } else { Verb::Backup };
        if let Err(denied) = request.require(verb) {
            return request.deny(denied);
        }
        let what = match asked.admitted(&self.backups, request.is_local(), |data| archive_in(data, &self.domain)) {
            Ok(what) => what,
            Err(why) => return request.refuse(why),
        };
        let tell = |told: Told| request.answer(&told);
        let done = self.archive.archive.upkeep_in_turn(&self.turn, &what, &Stop::after(request.time()), &tell);
        request.conclude(verb, &what, done.map(Told::Done));
    }
}
