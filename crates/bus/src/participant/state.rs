//! The states of the processes on the bus: what each writes and reads, who is behind, who lost what.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tampu_types::{Incarnation, PartitionFilter};

use super::{Participant, Shared, SourceInfo};
use crate::{
    access::{Resource, Verb},
    ask::{Answers, Inflow},
    engine::Question,
    error::CallError,
    wire::state::{PART_LENGTH, ParticipantState, QUESTION, ReaderReport},
};

/// Name under which access rules and errors know the question.
const NAME: &str = "bus/state";

/// The answer of one process, or why there is none.
#[derive(Debug)]
pub struct StateOf {
    /// Name and incarnation of the process.
    pub process: SourceInfo,
    /// Proved name of its host; `None` if nothing proves names on this bus.
    pub host: Option<String>,
    /// State of the process.
    pub state: Result<ParticipantState, CallError>,
}

impl Participant {
    /// Asks all present processes for their states. Those that do not answer within `timeout` have an error: a hanging
    /// process, or one that leaves at this moment.
    pub fn states(&self, timeout: Duration) -> Vec<StateOf> {
        let ask = |process: SourceInfo| {
            let answers = self.ask_state(process.incarnation, timeout);
            (process, answers)
        };
        let asked: Vec<_> = self.sources().into_iter().map(ask).collect();
        let answered = asked.into_iter().map(|(process, answers)| StateOf {
            host: self.shared.links.proved(&self.shared.links.chunk_of(process.incarnation)),
            state: answers.and_then(whole),
            process,
        });
        answered.collect()
    }

    fn ask_state(&self, of: Incarnation, timeout: Duration) -> Result<Answers, CallError> {
        let links = &self.shared.links;
        let inflow = Arc::new(Inflow::default());
        let into = inflow.clone();
        let put = Box::new(move |answer| into.put(answer));
        links
            .engine
            .ask(&links.keys.state(&links.chunk_of(of), of), Bytes::from_static(&QUESTION), timeout, put)
            .map_err(|why| CallError::NotSent { service: NAME.to_owned(), why: why.to_string() })?;
        Ok(Answers { service: NAME.to_owned(), inflow, clock: links.clock.clone(), timeout, parts: 0, ended: false })
    }
}

fn whole(answers: Answers) -> Result<ParticipantState, CallError> {
    let mut document = Vec::new();
    for part in answers {
        document.extend_from_slice(&part?);
    }
    serde_json::from_slice(&document).map_err(|why| CallError::Unreadable { service: NAME.to_owned(), why: why.to_string() })
}

impl Shared {
    /// Answers a question for this process's state, as far as the asking host may read the topics.
    pub(super) fn answer_state(&self, question: &dyn Question) {
        let access = self.access();
        let host = self.asking_host(question.key());
        let who = self.sender(&access, host.as_deref());
        if access.ask_for(&who, Verb::Read, &Resource::Service(NAME.to_owned())).is_err() {
            return;
        }
        let chunk = self.links.keys.host_of(question.key()).unwrap_or_default();
        // Names and numbers always have a JSON form.
        let document = serde_json::to_vec(&self.state(chunk)).unwrap_or_default();
        for part in document.chunks(PART_LENGTH) {
            // An asker that is gone needs no more.
            if question.reply(Bytes::copy_from_slice(part)).is_err() {
                return;
            }
        }
    }

    fn state(&self, for_host: &str) -> ParticipantState {
        let may_see = |topic: &_| self.links.may(for_host, Verb::Read, topic);
        let writers = self.streams().iter().filter(|stream| may_see(&stream.topic)).map(|stream| stream.report()).collect();
        let readers = self.readers().into_iter().map(|core| {
            let (stats, (_, streams)) = (core.stats(), core.kept());
            let partitions = match &core.card.partitions {
                PartitionFilter::All => None,
                PartitionFilter::Any(names) => Some(names.iter().cloned().collect()),
            };
            ReaderReport {
                reader: core.id,
                topics: core.card.topics.as_str().to_owned(),
                partitions,
                reliable: core.card.reliable,
                streams,
                queued: stats.queued as u64,
                refetches: stats.refetches,
                lost: stats.lost,
            }
        });
        let readers = readers.collect();
        ParticipantState { version: env!("CARGO_PKG_VERSION").to_owned(), pid: self.links.incarnation.pid, writers, readers }
    }
}
