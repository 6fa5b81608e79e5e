//! Kept events as a file: searched page by page while the client receives it.

use std::io;

use bytes::Bytes;
use http::{Response, header};
use tampu_archive::{Row, RowWriter};
use tampu_bus::{Participant, access::Verb};
use tampu_event::history::{
    SCHEMA,
    ask::{HistoryQuery, history},
    row,
};
use tampu_types::event::{AttributePattern, KeptEvent};
use tampu_workers::Stop;

use super::{
    super::{
        call::{Answer, Call},
        on_bus::{PATIENCE, is_newest_first, service},
        pieces::PieceBuffer,
    },
    reading::{HEADING, ShownEvent, repeated},
};
use crate::http::{body::ResponseBody, headers::set, problem::Problem};

/// Events that are asked for at once.
const AT_ONCE: u64 = 2000;
/// Bytes after which a piece is sent.
const PIECE: usize = 1 << 20;

tampu_types::named_enum! {
    /// The format of a file of events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum EventFile("format") {
        /// JSON, one event a line, with the members of `/event/rows`.
        Json => "json",
        /// CSV whose cells no spreadsheet takes for formulas.
        Csv => "csv",
        /// CSV with every cell as it is.
        RawCsv => "raw-csv",
        /// Parquet with the columns of the history's own files.
        Parquet => "parquet",
    }
}

impl EventFile {
    fn content_type(self) -> &'static str {
        match self {
            EventFile::Json => "application/x-ndjson",
            EventFile::Csv | EventFile::RawCsv => "text/csv; charset=utf-8",
            EventFile::Parquet => "application/vnd.apache.parquet",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            EventFile::Json => "jsonl",
            EventFile::Csv | EventFile::RawCsv => "csv",
            EventFile::Parquet => "parquet",
        }
    }
}

/// The events of a file on their way.
struct EventPieces {
    participant: Participant,
    stop: Stop,
    /// The question for the next events; none at the end.
    rest: Option<HistoryQuery>,
    /// Events that may still follow.
    left: u64,
    format: EventFile,
    parquet: Option<RowWriter<PieceBuffer>>,
    out: PieceBuffer,
}

impl EventPieces {
    fn push(&mut self, kept: &KeptEvent<'_>) -> io::Result<()> {
        match self.format {
            EventFile::Json => self.out.push(&(serde_json::to_string(&ShownEvent::of_kept(kept))? + "\n")),
            EventFile::Csv | EventFile::RawCsv => {
                self.out.push(&ShownEvent::of_kept(kept).csv(self.format == EventFile::RawCsv));
            }
            EventFile::Parquet => {
                if let Some(parquet) = &mut self.parquet {
                    let row: Row = row(kept).map_err(io::Error::other)?;
                    parquet.push(row)?;
                }
            }
        }
        Ok(())
    }

    fn next_piece(&mut self) -> io::Result<()> {
        while self.out.len() < PIECE
            && let Some(asked) = self.rest.take()
        {
            let page = HistoryQuery { limit: Some(self.left.min(AT_ONCE)), ..asked };
            let (participant, stop) = (self.participant.clone(), self.stop.clone());
            let mut written = Ok(());
            let swept = history(&participant, &page, PATIENCE, &mut |kept| {
                written = self.push(kept);
                written.is_ok() && !stop.is_stopped()
            });
            let swept = swept.map_err(io::Error::other)?;
            written?;
            if stop.is_stopped() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            self.left -= swept.found.min(self.left);
            let is_page_full = Some(swept.found) == page.limit;
            if !is_page_full && !swept.complete {
                // A file that looks whole, and is not, would mislead its reader.
                return Err(io::Error::other("the search ran out of time"));
            }
            if is_page_full && self.left > 0 && swept.cursor.is_some() {
                self.rest = Some(HistoryQuery { after: swept.cursor, ..page });
            }
        }
        if self.rest.is_none()
            && let Some(parquet) = self.parquet.take()
        {
            parquet.finish()?;
        }
        Ok(())
    }
}

impl Iterator for EventPieces {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Err(error) = self.next_piece() {
            (self.rest, self.parquet) = (None, None);
            self.out.take();
            return Some(Err(error));
        }
        let piece = self.out.take();
        (!piece.is_empty()).then(|| Ok(Bytes::from(piece)))
    }
}

pub(super) fn export(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &service("event/history"))?;
    let attributes: Vec<AttributePattern> = repeated(call, "name")?;
    let (since, until) = call.range()?;
    let format = call.parsed::<EventFile>("format")?.unwrap_or(EventFile::Json);
    let left = call.parsed::<u64>("limit")?.filter(|limit| *limit > 0).unwrap_or(u64::MAX);
    let asked = HistoryQuery { attributes, since, until, newest_first: is_newest_first(call)?, ..HistoryQuery::default() };
    let out = PieceBuffer::default();
    let parquet = match format {
        EventFile::Parquet => {
            let begun = RowWriter::new(out.clone(), &SCHEMA, participant.domain().as_str());
            Some(begun.map_err(|why| Problem::new(http::StatusCode::INTERNAL_SERVER_ERROR, "failed", why.to_string()))?)
        }
        EventFile::Csv | EventFile::RawCsv => {
            out.push(HEADING);
            None
        }
        EventFile::Json => None,
    };
    let (participant, stop) = (participant.clone(), call.stop.clone());
    let pieces = EventPieces { participant, stop, rest: Some(asked), left, format, parquet, out };
    let mut answer = Response::new(ResponseBody::Pieces(Box::new(pieces), None));
    let headers = answer.headers_mut();
    set(headers, header::CONTENT_TYPE, format.content_type());
    set(headers, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"events.{}\"", format.extension()));
    Ok(answer)
}
