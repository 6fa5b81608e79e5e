//! Cost of encoding and decoding a record, by codec: `cargo run --release -p tampu-types --example codec_speed`.
//!
//! Records have about 250 bytes, with values that vary, from 40 places of the code, 100 a batch. The best of several
//! rounds is printed: the others measure the neighbours on the machine.

use std::{hint::black_box, time::Instant};

use tampu_types::{
    Datum, Incarnation, Level, LogRecord, RecordId, Time,
    import::ImportIds,
    json_lines::{JsonLinesReader, JsonLinesWriter},
    log_batch::{LogBatchBuilder, LogBatchView, OriginParts, RecordParts},
    xml::{AcsXmlOptions, AcsXmlReader, AcsXmlWriter, write_record},
};

const PLACES: usize = 40;
const BATCH: usize = 100;
/// Few enough to stay in the cache, as records do between the call that logs and the batch.
const BATCHES: usize = 10;

fn record(number: u64) -> LogRecord {
    let place = number as usize % PLACES;
    let incarnation = Incarnation { boot: 0x1234_5678, pid: 4321, start: 1_700_000_000_000_000_000 };
    let mut record = LogRecord::new(
        Level::ALL[place % 6],
        format!(
            "antenna DV{:02}: commanded position az {:.5} el {:.5} reached after {} ms, residual {:.6} deg, servo state {}",
            number % 66,
            number as f64 * 0.00137,
            45.0 + (number % 400) as f64 * 0.01,
            number % 977,
            (number % 1013) as f64 * 1e-6,
            ["idle", "track", "slew"][place % 3],
        ),
    );
    record.id = Some(RecordId { incarnation, ring: 1, number });
    record.time = Time(1_700_000_000_000_000_000 + number as i64 * 1_000_003);
    record.logger = "alma.control.mount".into();
    record.file = format!("MountController{place}.cpp");
    record.line = Some(100 + place as u32);
    record.routine = format!("control::MountController::track{place}");
    record.host = "te1-abm".into();
    record.process = "CONTROL/DV01/cppContainer".into();
    record.thread = "TrackingThread".into();
    record.source_object = "CONTROL/DV01/Mount".into();
    record.audiences = vec!["Operator".into()];
    record.data = vec![Datum::new("residual", format!("{:.6}", (number % 1013) as f64 * 1e-6))];
    record
}

/// Runs it `rounds` times (times the command line's second word) over `records` records and prints the fastest, if the
/// command line's word is in its name.
fn measure(what: &str, rounds: usize, records: usize, mut run: impl FnMut()) {
    if std::env::args().nth(1).is_some_and(|word| !what.contains(&word)) {
        return;
    }
    let factor = std::env::args().nth(2).and_then(|factor| factor.parse().ok()).unwrap_or(1);
    let round = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() as f64 / records as f64
    };
    let ns = (0..rounds * factor).map(round).fold(f64::INFINITY, f64::min);
    println!("{what:44} {ns:8.1} ns a record {:12.0} records/s", 1e9 / ns);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let records: Vec<LogRecord> = (0..(BATCH * BATCHES) as u64).map(record).collect();

    let mut builder = LogBatchBuilder::new();
    let mut origins = Vec::new();
    for record in &records[..PLACES] {
        let audiences: Vec<&str> = record.audiences.iter().map(String::as_str).collect();
        origins.push(builder.origin(&OriginParts {
            incarnation: record.id.map(|id| id.incarnation),
            logger: &record.logger,
            file: &record.file,
            line: record.line,
            routine: &record.routine,
            host: &record.host,
            process: &record.process,
            thread: &record.thread,
            source_object: &record.source_object,
            audiences: &audiences,
            ..OriginParts::default()
        }));
    }
    measure("LogBatch encode, origin known", 1000, records.len(), || {
        for batch in records.chunks(BATCH) {
            for (place, record) in batch.iter().enumerate() {
                let number = record.id.map_or(0, |id| id.number);
                let parts = RecordParts {
                    time: record.time,
                    ring: 1,
                    number,
                    level: record.level,
                    message: &record.message,
                    ..RecordParts::default()
                };
                let data = record.data.iter().map(|datum| (datum.name.as_str(), datum.value.as_str()));
                let origin = origins[(number as usize) % PLACES];
                debug_assert_eq!(place, number as usize % BATCH);
                let _ = black_box(builder.push(origin, &parts, data));
            }
            black_box(builder.seal());
            builder.reset();
        }
    });

    measure("LogBatch encode, whole LogRecord", 400, records.len(), || {
        for batch in records.chunks(BATCH) {
            for record in batch {
                let _ = black_box(builder.push_record(record));
            }
            black_box(builder.seal());
            builder.reset();
        }
    });

    let mut batches = Vec::new();
    for batch in records.chunks(BATCH) {
        for record in batch {
            builder.push_record(record)?;
        }
        batches.push(builder.finish());
    }
    let bytes: usize = batches.iter().map(Vec::len).sum();
    println!("LogBatch: {:.0} bytes a record in batches of {BATCH}", bytes as f64 / records.len() as f64);

    measure("LogBatch decode to RecordView, all checked", 1000, records.len(), || {
        for batch in &batches {
            let Ok(view) = LogBatchView::parse(batch) else { continue };
            for record in view.records().flatten() {
                black_box((record.time(), record.message(), record.level(), record.origin().logger(), record.data().count()));
            }
        }
    });
    measure("LogBatch decode to LogRecord", 100, records.len(), || {
        for batch in &batches {
            let Ok(view) = LogBatchView::parse(batch) else { continue };
            for record in view.records().flatten() {
                black_box(record.to_record());
            }
        }
    });

    let mut writer = AcsXmlWriter::new(Vec::new(), "speed", AcsXmlOptions::default())?;
    for record in &records {
        writer.record(record)?;
    }
    let xml = writer.finish()?;
    println!("ACS XML: {} bytes a record", xml.len() / records.len());
    measure("ACS XML read", 40, records.len(), || assert_eq!(AcsXmlReader::new(&xml[..], "speed").count(), records.len()));
    let mut out = String::new();
    measure("ACS XML write", 40, records.len(), || {
        out.clear();
        records.iter().for_each(|record| write_record(&mut out, record, AcsXmlOptions::default()));
    });
    let mut ids = ImportIds::new();
    let mut imported: Vec<LogRecord> = records.iter().map(|record| LogRecord { id: None, ..record.clone() }).collect();
    measure("import ids", 40, records.len(), || {
        ids = ImportIds::new();
        imported.iter_mut().for_each(|record| ids.assign(record));
    });

    let mut writer = JsonLinesWriter::new(Vec::new());
    for record in &records {
        writer.record(record)?;
    }
    let json = writer.finish()?;
    measure("JSON lines read", 40, records.len(), || assert_eq!(JsonLinesReader::new(&json[..], "speed").count(), records.len()));
    Ok(())
}
