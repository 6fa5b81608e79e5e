//! The table of transfers: its columns, and the conversion between transfers and rows. `spec/bulk-archive.md` defines
//! each column.

use serde::{Deserialize, Serialize};
use tampu_archive::{Cell, ColumnSpec, Layout, Row, Schema, Shape};
use tampu_types::{BatchHeader, Time};

use super::transfer::{Outcome, Transfer};
use crate::Name;

/// The type of the samples.
pub(super) const KEPT_TYPE: u32 = 11;

/// Mark of a transfer that has ended.
pub(super) const ENDED: u16 = 1;
/// Mark of the begin of a transfer. It is read by an account that starts, to know the running ones.
pub(super) const BEGUN: u16 = 2;

/// Column of the transfer's id.
pub(super) const ID: usize = 7;

/// A transfer as a sample of the archive.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeptTransfer {
    /// The sender's stream on the bus that has the note.
    pub note_stream: u32,
    /// Number of the note in it, from 1 on; 0 without a note.
    pub note: u64,
    /// Time of reception by the account.
    pub received: Time,
    /// The transfer itself.
    pub transfer: Transfer,
}

/// The table of transfers.
pub static SCHEMA: Schema = Schema {
    layout: Layout {
        name: "transfer",
        columns: &[
            ColumnSpec::new("time", Shape::Time),
            ColumnSpec::new("received", Shape::Time),
            ColumnSpec::new("incarnation", Shape::Text),
            ColumnSpec::new("note_stream", Shape::Number),
            ColumnSpec::new("from_note", Shape::UnsignedNumber),
            ColumnSpec::new("note", Shape::UnsignedNumber),
            ColumnSpec::new("state_bits", Shape::Number),
            ColumnSpec::new("id", Shape::Text),
            ColumnSpec::new("stream", Shape::Text),
            ColumnSpec::new("flow", Shape::Text),
            ColumnSpec::new("transfer", Shape::UnsignedNumber),
            ColumnSpec::new("source", Shape::Text),
            ColumnSpec::new("host", Shape::Text),
            ColumnSpec::new("parameter", Shape::Text),
            ColumnSpec::new("began", Shape::Time),
            ColumnSpec::new("outcome", Shape::Text),
            ColumnSpec::new("bytes", Shape::UnsignedNumber),
            ColumnSpec::new("seconds", Shape::OptionalDouble),
            ColumnSpec::new("receivers", Shape::UnsignedNumber),
            ColumnSpec::new("lost_bytes", Shape::UnsignedNumber),
            ColumnSpec::new("why", Shape::Text),
            ColumnSpec::new("deliveries", Shape::Text),
        ],
        time: 0,
    },
    type_id: KEPT_TYPE,
    read,
};

fn read(_header: &BatchHeader, sample: &[u8]) -> Result<Row, String> {
    let kept: KeptTransfer = serde_json::from_slice(sample).map_err(|error| error.to_string())?;
    Ok(row(&kept))
}

fn row(kept: &KeptTransfer) -> Row {
    let one = &kept.transfer;
    let text = |text: &str| Cell::Text(text.as_bytes().to_vec());
    let unsigned = |number: u64| Cell::Number(number.cast_signed());
    // Lists of texts and of plain structures always have a JSON.
    let json = |bytes: serde_json::Result<Vec<u8>>| Cell::Text(bytes.unwrap_or_default());
    Row {
        time: one.ended.unwrap_or(one.began),
        received: kept.received,
        life: one.incarnation,
        ring: kept.note_stream,
        from: kept.note,
        number: kept.note,
        marks: if one.is_under_way() { BEGUN } else { ENDED },
        cells: vec![
            text(&one.id()),
            text(one.stream.as_str()),
            text(one.flow.as_str()),
            unsigned(one.transfer),
            text(&one.source),
            text(&one.host),
            text(&one.parameter),
            Cell::Number(one.began.0),
            text(one.outcome.name()),
            unsigned(one.bytes),
            Cell::Double((one.seconds > 0.0).then_some(one.seconds)),
            unsigned(one.receivers),
            unsigned(one.lost_bytes),
            json(serde_json::to_vec(&one.why)),
            json(serde_json::to_vec(&one.deliveries)),
        ],
    }
}

/// Decodes the transfer of a row. Invalid texts in a row give `None`.
pub fn transfer(row: &Row) -> Option<Transfer> {
    let text = |column: usize| std::str::from_utf8(row.cells.get(column)?.text()).ok();
    let number = |column: usize| match row.cells.get(column)? {
        Cell::Number(number) => Some(*number),
        _ => None,
    };
    let unsigned = |column: usize| number(column).map(i64::cast_unsigned);
    let outcome = Outcome::from_name(text(8)?)?;
    let (bytes, seconds) = match row.cells.get(10)? {
        Cell::Double(seconds) => (unsigned(9)?, seconds.unwrap_or(0.0)),
        _ => return None,
    };
    Some(Transfer {
        stream: Name::new(text(1)?).ok()?,
        flow: Name::new(text(2)?).ok()?,
        transfer: unsigned(3)?,
        source: text(4)?.to_owned(),
        incarnation: row.life,
        host: text(5)?.to_owned(),
        parameter: text(6)?.to_owned(),
        began: Time(number(7)?),
        ended: (outcome != Outcome::UnderWay).then_some(row.time),
        outcome,
        bytes,
        seconds,
        bytes_per_s: if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 },
        receivers: unsigned(11)?,
        lost_bytes: unsigned(12)?,
        why: serde_json::from_str(text(13)?).ok()?,
        deliveries: serde_json::from_str(text(14)?).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use tampu_types::Incarnation;

    use super::*;
    use crate::transfers::transfer::ReceiverOutcome;

    #[test]
    fn rows_lead_back_to_their_transfers() {
        let delivery = ReceiverOutcome {
            source: "archive".into(),
            incarnation: "i".into(),
            address: "10.0.0.1:1".into(),
            complete: false,
            acknowledged: 7,
            lost_bytes: 3,
            status: "cut".into(),
        };
        let one = Transfer {
            stream: Name::new("Correlator").unwrap(),
            flow: Name::new("spectra").unwrap(),
            transfer: u64::MAX,
            source: "DV01".into(),
            incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
            host: "control".into(),
            parameter: "uid://A002/X1".into(),
            began: Time(5),
            ended: Some(Time(9)),
            outcome: Outcome::Incomplete,
            bytes: 10,
            seconds: 4.0,
            bytes_per_s: 2.5,
            receivers: 1,
            lost_bytes: 3,
            why: vec!["archive: \"slow\"".into()],
            deliveries: vec![delivery],
        };
        let kept = |transfer: &Transfer| KeptTransfer { note_stream: 4, note: 6, received: Time(11), transfer: transfer.clone() };
        let made = row(&kept(&one));
        assert_eq!(made.cells.len() + tampu_archive::KEYS, SCHEMA.layout.columns.len());
        assert_eq!((made.time, made.marks, transfer(&made)), (Time(9), ENDED, Some(one.clone())));
        let begun = Transfer { ended: None, outcome: Outcome::UnderWay, seconds: 0.0, bytes_per_s: 0.0, ..one };
        let made = row(&kept(&begun));
        assert_eq!((made.time, made.marks, transfer(&made)), (Time(5), BEGUN, Some(begun)));
    }
}
