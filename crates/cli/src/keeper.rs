//! Client of the collector for the command line.

use std::time::{Duration, Instant};

use tampu_archive::{
    Counts, Doing, Grouping, Patterns, PatternsWanted, Scanned, Swept,
    query::Query,
    upkeep::{Done, LONGEST, Upkeep},
};
use tampu_bus::{Participant, Qos, ReaderState, Writer, connect::Settings, service::CallError};
use tampu_event::history::ask::{self as history, HistoryQuery};
use tampu_log::{
    collector::{
        IMPORT_TOPIC,
        ask::{self, Kept},
    },
    logger::LOG_BATCH,
};
use tampu_types::{LogRecord, Partition, TopicName, event::KeptEvent, log_batch::LogBatchBuilder};

use crate::{
    connect::{ANSWER_TIMEOUT, Connect},
    failure::{Failure, Outcome},
    interrupt::Interrupt,
};

/// A way to a collector.
pub struct Keeper {
    participant: Participant,
    connect: Connect,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stored {
    pub records: u64,
    pub duplicates: u64,
    /// Records that the collector must not accept from here.
    pub refused: u64,
    /// The reason for the refusals, if there are any.
    pub refusal: String,
}

/// Returns the question for the rest after a search that reached its time limit; `None` if it came no further. A rare word
/// may be in none of the records of many such searches.
fn rest(query: &Query, scanned: &Scanned) -> Option<Query> {
    let after = scanned.cursor.filter(|cursor| query.after != Some(*cursor))?;
    Some(Query { after: Some(after), limit: query.limit.map(|limit| limit.saturating_sub(scanned.found)), ..query.clone() })
}

impl Keeper {
    /// Joins the bus where a hub is.
    pub fn find(connect: &Connect, name: &str) -> Result<Keeper, Failure> {
        Ok(Keeper { participant: connect.join_hub(name)?, connect: connect.clone() })
    }

    /// Joins where this configuration leads; `connect` is for messages.
    pub fn at(config: Settings, connect: &Connect, name: &str) -> Result<Keeper, Failure> {
        Ok(Keeper { participant: connect.join_at(config, name)?, connect: connect.clone() })
    }

    /// Uses an existing participant; `connect` is for messages.
    pub fn over(participant: Participant, connect: &Connect) -> Keeper {
        Keeper { participant, connect: connect.clone() }
    }

    /// Requests the kept positions of the streams of all writers on the bus.
    pub fn kept(&self) -> Result<Kept, Failure> {
        ask::offsets(&self.participant, ANSWER_TIMEOUT).map_err(|error| self.failure(error))
    }

    /// Has the collector commit what it has received.
    pub fn commit(&self) -> Outcome {
        ask::commit(&self.participant, ANSWER_TIMEOUT).map_err(|error| self.failure(error))
    }

    /// Calls `sink` with every record found, in the query's order; reports an incomplete result on standard error.
    pub fn search(&self, query: &Query, interrupt: &Interrupt, sink: &mut dyn FnMut(LogRecord) -> Outcome) -> Outcome {
        if !self.search_quietly(query, interrupt, sink)? {
            eprintln!("tampu: the search reached its time limit and is incomplete; choose a shorter time range");
        }
        Ok(())
    }

    /// Searches without a report; returns whether the result is complete, or was ended here.
    pub fn search_quietly(
        &self,
        query: &Query,
        interrupt: &Interrupt,
        sink: &mut dyn FnMut(LogRecord) -> Outcome,
    ) -> Result<bool, Failure> {
        let mut part = query.clone();
        loop {
            let mut outcome = Ok(());
            let scanned = ask::query(&self.participant, &part, ANSWER_TIMEOUT, &mut |record| {
                outcome = sink(record);
                outcome.is_ok() && !interrupt.asked()
            });
            outcome?;
            let scanned = scanned.map_err(|error| self.failure(error))?;
            if scanned.complete || Some(scanned.found) == part.limit || interrupt.asked() {
                return Ok(true);
            }
            match rest(&part, &scanned) {
                Some(further) => part = further,
                None => return Ok(false),
            }
        }
    }

    /// Oneself on the bus.
    pub fn participant(&self) -> &Participant {
        &self.participant
    }

    /// Counts the records that match a query, in groups.
    pub fn count(&self, query: &Query, by: &Grouping) -> Result<Counts, Failure> {
        ask::stat(&self.participant, query, by, ANSWER_TIMEOUT).map_err(|error| self.failure(error))
    }

    /// Counts the records that match a query by the place in the program that logged them.
    pub fn patterns(&self, query: &Query, wanted: PatternsWanted) -> Result<Patterns, Failure> {
        ask::patterns(&self.participant, query, wanted, ANSWER_TIMEOUT).map_err(|error| self.failure(error))
    }

    /// Returns the collector's status as JSON.
    pub fn status(&self) -> Result<serde_json::Value, Failure> {
        ask::status(&self.participant, ANSWER_TIMEOUT).map_err(|error| self.failure(error))
    }

    /// Requests an operation on the archive; calls `doing` with the progress until it returns `false`.
    pub fn upkeep(&self, what: &Upkeep, doing: &mut dyn FnMut(Doing) -> bool) -> Result<Done, Failure> {
        ask::upkeep(&self.participant, what, LONG, doing).map_err(|error| self.failure(error))
    }

    /// Requests an operation on the archive of events.
    pub fn upkeep_of_events(&self, what: &Upkeep, doing: &mut dyn FnMut(Doing) -> bool) -> Result<Done, Failure> {
        history::upkeep(&self.participant, what, LONG, doing).map_err(|error| self.failure(error))
    }

    /// Requests an operation on the archive of transfers.
    pub fn upkeep_of_transfers(&self, what: &Upkeep, doing: &mut dyn FnMut(Doing) -> bool) -> Result<Done, Failure> {
        tampu_bulk::asking::upkeep(&self.participant, what, LONG, doing).map_err(|error| self.failure(error))
    }

    /// Calls `sink` with every event found, in the requested order; returns statistics of the search.
    pub fn history(&self, asked: &HistoryQuery, sink: &mut dyn FnMut(&KeptEvent<'_>) -> bool) -> Result<Swept, Failure> {
        history::history(&self.participant, asked, ANSWER_TIMEOUT, sink).map_err(|error| self.failure(error))
    }

    /// Returns the status of the domain's spools; empty if no spool answers.
    pub fn spools(&self) -> Vec<serde_json::Value> {
        tampu_log::spool::reports(&self.participant, ANSWER_TIMEOUT).unwrap_or_default()
    }

    /// Begins an import.
    pub fn import(&self) -> Result<Importing<'_>, Failure> {
        // The answer proves that a collector is present.
        let before = self.stored()?;
        let topic = TopicName::new(IMPORT_TOPIC).map_err(|error| Failure::Failed(error.to_string()))?;
        let qos = Qos { max_wait: PATIENCE, wait_period: PATIENCE, credit: 8 << 20, ..self.participant.qos(&topic) };
        let writer = self
            .participant
            .writer(&topic, &Partition::everybody(), LOG_BATCH, qos)
            .map_err(|error| Failure::Unreachable(self.connect.advise(&error.to_string())))?;
        Ok(Importing { keeper: self, writer, next: 0, before, builder: LogBatchBuilder::new() })
    }

    /// Returns the collector's counts for this process.
    fn stored(&self) -> Result<Stored, Failure> {
        let status = self.status()?;
        let own = self.participant.source().as_str();
        let sources = status["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mine = sources.iter().find(|source| source["source"] == own);
        let number = |name: &str| mine.and_then(|source| source[name].as_u64()).unwrap_or(0);
        let refusal = mine.and_then(|source| source["refusal"].as_str()).unwrap_or_default().to_owned();
        Ok(Stored { records: number("received"), duplicates: number("duplicates"), refused: number("refused"), refusal })
    }

    fn failure(&self, error: CallError) -> Failure {
        self.connect.call_failed(&error)
    }
}

/// Time limit for work on the archive: a little more than the collector's, so that the collector ends it.
const LONG: Duration = LONGEST.saturating_add(Duration::from_secs(60));

/// Time limit of an import for a collector that does not keep up.
const PATIENCE: Duration = Duration::from_secs(60);

/// An import on its way.
pub struct Importing<'a> {
    keeper: &'a Keeper,
    writer: Writer,
    /// The number after the last sample sent.
    next: u64,
    before: Stored,
    builder: LogBatchBuilder,
}

impl Importing<'_> {
    /// Sends records; waits where the collector is behind.
    pub fn send(&mut self, records: &[LogRecord]) -> Outcome {
        if records.is_empty() {
            return Ok(());
        }
        for record in records {
            self.builder.push_record(record).map_err(|error| Failure::failed("a record", error))?;
        }
        let written = self.writer.write(self.builder.seal());
        self.builder.reset();
        self.next = written.map_err(|error| Failure::failed("sending records", error))?.sequence + 1;
        Ok(())
    }

    /// Returns true if a collector reads, and all of them have acknowledged everything, which they do after their commit.
    fn is_committed(&self) -> bool {
        let readers = self.writer.readers();
        let mut there = readers.iter().filter(|reader| reader.state != ReaderState::Gone).peekable();
        self.next == 0 || there.peek().is_some() && there.all(|reader| reader.acked >= self.next)
    }

    /// Waits until everything sent is committed.
    pub fn finish(self) -> Result<Stored, Failure> {
        let until = Instant::now() + PATIENCE;
        while !self.is_committed() {
            let receipt = self.writer.flush(Duration::from_millis(200));
            if !receipt.lost.is_empty() {
                return Err(Failure::Failed(
                    "the collector did not keep up and records were lost: import the files again".to_owned(),
                ));
            }
            if Instant::now() > until {
                let told = format!("the collector has not confirmed everything within {PATIENCE:?}: import the files again");
                return Err(Failure::Unreachable(self.keeper.connect.advise(&told)));
            }
            if self.writer.readers().is_empty() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let after = self.keeper.stored()?;
        let since = |now: u64, before: u64| now.saturating_sub(before);
        Ok(Stored {
            records: since(after.records, self.before.records),
            duplicates: since(after.duplicates, self.before.duplicates),
            refused: since(after.refused, self.before.refused),
            refusal: after.refusal,
        })
    }
}

#[cfg(test)]
mod tests {
    use tampu_archive::query::Cursor;
    use tampu_types::{RecordId, Time};

    use super::*;

    #[test]
    fn a_search_goes_on_where_it_ended_and_not_for_ever() {
        let at = |time| Some(Cursor { time: Time(time), id: RecordId::default() });
        let query = Query { limit: Some(10), ..Query::default() };
        let ended = |found, cursor| Scanned { found, cursor, ..Scanned::default() };
        let further = rest(&query, &ended(0, at(5))).unwrap();
        assert_eq!((further.after, further.limit), (at(5), Some(10)), "nothing was found so far");
        let further = rest(&further, &ended(4, at(3))).unwrap();
        assert_eq!((further.after, further.limit), (at(3), Some(6)));
        assert!(rest(&further, &ended(0, at(3))).is_none(), "it came no further");
        assert!(rest(&query, &ended(0, None)).is_none(), "a collector that names no position");
    }
}
