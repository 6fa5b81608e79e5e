//! Records as a file: searched page by page while the client receives it.

use std::io;

use bytes::Bytes;
use http::{Response, header};
use tampu_archive::{
    ParquetWriter,
    query::{Cursor, Query, source_of},
};
use tampu_bus::{Participant, access::Verb};
use tampu_log::collector::ask;
use tampu_types::{
    LogRecord, RecordField, csv,
    terminal::harmless,
    xml::{AcsXmlOptions, file_frame, write_record},
};
use tampu_workers::Stop;

use super::{
    super::{
        call::{Answer, Call},
        on_bus::{PATIENCE, is_newest_first},
        pieces::PieceBuffer,
    },
    filter,
    subject::archive,
};
use crate::http::{body::ResponseBody, headers::set, problem::Problem};

/// Records that are asked for at once.
const AT_ONCE: u64 = 2000;
/// Bytes after which a piece is sent.
const PIECE: usize = 1 << 20;

tampu_types::named_enum! {
    /// The format of a file of records.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum RecordFile("format") {
        /// JSON, one record a line.
        Json => "json",
        /// CSV whose cells no spreadsheet takes for formulas.
        Csv => "csv",
        /// CSV with every cell as it is.
        RawCsv => "raw-csv",
        /// Time, level, source and message, one record a line.
        Text => "text",
        /// XML as ACS writes it.
        Xml => "xml",
        /// Parquet with the columns of the archive's own files.
        Parquet => "parquet",
    }
}

impl RecordFile {
    fn content_type(self) -> &'static str {
        match self {
            RecordFile::Json => "application/x-ndjson",
            RecordFile::Csv | RecordFile::RawCsv => "text/csv; charset=utf-8",
            RecordFile::Text => "text/plain; charset=utf-8",
            RecordFile::Xml => "application/xml",
            RecordFile::Parquet => "application/vnd.apache.parquet",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            RecordFile::Json => "jsonl",
            RecordFile::Csv | RecordFile::RawCsv => "csv",
            RecordFile::Text => "txt",
            RecordFile::Xml => "xml",
            RecordFile::Parquet => "parquet",
        }
    }
}

/// The records of a file on their way.
struct RecordPieces {
    participant: Participant,
    stop: Stop,
    /// The query for the next records; none at the end.
    rest: Option<Query>,
    /// Records that may still follow.
    left: u64,
    format: RecordFile,
    columns: Vec<RecordField>,
    /// Text for the next piece, of every format but Parquet.
    text: String,
    /// The file that is being written, of Parquet. Its bytes come with each row group.
    parquet: Option<ParquetWriter<PieceBuffer>>,
    /// Bytes of that file for the next piece.
    out: PieceBuffer,
    /// Text after the last record.
    end: String,
}

impl RecordPieces {
    fn push(&mut self, record: &LogRecord) -> io::Result<()> {
        let RecordPieces { text, columns, format, parquet, .. } = self;
        match format {
            RecordFile::Json => {
                text.push_str(&serde_json::to_string(record)?);
                text.push('\n');
            }
            RecordFile::Csv | RecordFile::RawCsv => csv::row(columns, record, *format == RecordFile::RawCsv, text),
            RecordFile::Text => line(record, text),
            RecordFile::Xml => {
                write_record(text, record, AcsXmlOptions::default());
                text.push('\n');
            }
            RecordFile::Parquet => {
                if let Some(parquet) = parquet {
                    parquet.push(record)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the text of the next records.
    fn next_piece(&mut self) -> io::Result<()> {
        while self.text.len() + self.out.len() < PIECE
            && let Some(query) = self.rest.take()
        {
            let page = Query { limit: Some(self.left.min(AT_ONCE)), ..query };
            let (participant, stop) = (self.participant.clone(), self.stop.clone());
            let (mut written, mut cursor, mut is_cut) = (Ok(()), None, false);
            let mut found = 0;
            let scanned = ask::query(&participant, &page, PATIENCE, &mut |record| {
                cursor = Some(Cursor::of(&record));
                found += 1;
                written = self.push(&record);
                is_cut = self.text.len() >= PIECE;
                written.is_ok() && !is_cut && !stop.is_stopped()
            });
            let scanned = scanned.map_err(io::Error::other)?;
            written?;
            if stop.is_stopped() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            self.left -= found;
            let is_page_full = is_cut || Some(found) == page.limit;
            if !is_page_full && !scanned.complete {
                // A file that looks whole, and is not, would mislead its reader.
                return Err(io::Error::other("the search ran out of time"));
            }
            if is_page_full && self.left > 0 && cursor.is_some() {
                self.rest = Some(Query { after: cursor, ..page });
            }
        }
        if self.rest.is_none() {
            self.text.push_str(&std::mem::take(&mut self.end));
            if let Some(parquet) = self.parquet.take() {
                parquet.finish()?;
            }
        }
        Ok(())
    }
}

impl Iterator for RecordPieces {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Err(error) = self.next_piece() {
            (self.rest, self.text, self.parquet) = (None, String::new(), None);
            self.out.take();
            return Some(Err(error));
        }
        let piece =
            if self.format == RecordFile::Parquet { self.out.take() } else { std::mem::take(&mut self.text).into_bytes() };
        (!piece.is_empty()).then(|| Ok(Bytes::from(piece)))
    }
}

/// Appends a record as a line for people.
fn line(record: &LogRecord, text: &mut String) {
    let source = source_of(&record.source_object, &record.process);
    let level = record.level.name();
    text.push_str(&format!("{}  {level:<9}  ", record.time.to_rfc3339()));
    for part in [source, "  ", &record.message] {
        text.push_str(&harmless(part, false));
    }
    for datum in &record.data {
        text.push_str(&format!(" {}={}", harmless(&datum.name, false), harmless(&datum.value, false)));
    }
    text.push('\n');
}

fn failed(why: &dyn std::fmt::Display) -> Problem {
    Problem::new(http::StatusCode::INTERNAL_SERVER_ERROR, "failed", why.to_string())
}

pub(super) fn export(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let participant = call.need_on_bus(Verb::Query, &archive())?;
    let query = Query { newest_first: is_newest_first(call)?, ..filter::query(call)? };
    let format = call.parsed::<RecordFile>("format")?.unwrap_or(RecordFile::Json);
    let left = call.parsed::<u64>("limit")?.filter(|limit| *limit > 0).unwrap_or(u64::MAX);
    let is_csv = matches!(format, RecordFile::Csv | RecordFile::RawCsv);
    let columns = match call.parameter("columns").filter(|names| !names.is_empty()) {
        Some(_) if !is_csv => return Err(Problem::bad("query columns", "only csv and raw-csv have columns")),
        Some(names) => {
            let columns: Result<Vec<RecordField>, _> = names.split(',').map(str::parse).collect();
            columns.map_err(|why| Problem::bad("query columns", why.to_string()))?
        }
        None => RecordField::SHOWN.to_vec(),
    };
    let (mut text, mut end) = (String::new(), String::new());
    match format {
        RecordFile::Csv | RecordFile::RawCsv => csv::heading(&columns, &mut text),
        RecordFile::Xml => {
            (text, end) = file_frame().map_err(|why| failed(&why))?;
        }
        RecordFile::Json | RecordFile::Text | RecordFile::Parquet => {}
    }
    let out = PieceBuffer::default();
    let parquet = match format {
        RecordFile::Parquet => Some(ParquetWriter::new(out.clone(), participant.domain().as_str()).map_err(|why| failed(&why))?),
        _ => None,
    };
    let (participant, stop) = (participant.clone(), call.stop.clone());
    let pieces = RecordPieces { participant, stop, rest: Some(query), left, format, columns, text, parquet, out, end };
    let mut answer = Response::new(ResponseBody::Pieces(Box::new(pieces), None));
    let headers = answer.headers_mut();
    set(headers, header::CONTENT_TYPE, format.content_type());
    set(headers, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"log.{}\"", format.extension()));
    Ok(answer)
}
