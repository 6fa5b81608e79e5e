//! How fast the built-in archive takes records and finds them again: `cargo run --release -p tampu-log --example archive_speed
//! -- DIR [million records]`.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use tampu_log::{
    archive::{Archive, Arrival, Grouping, Options, Segments, Stop},
    query::{Field, Query},
};
use tampu_types::{
    BatchHeader, ClockState, Domain, Incarnation, Level, SourceName, Time,
    log_batch::{LogBatchBuilder, OriginParts, RecordParts, TYPE_ID, VERSION},
};

const BATCH: u64 = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("which directory?")?;
    let millions: u64 = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let dir = Path::new(&dir);
    std::fs::create_dir_all(dir)?;
    let domain = Domain::new("speed")?;
    let archive = Segments::open(dir, Options::new(domain.clone()))?;
    append(&archive, &domain, millions * 1_000_000)?;
    drop(archive);

    let begun = Instant::now();
    let archive = Segments::open(dir, Options::new(domain))?;
    println!("open again: {:.3} s, {} records", begun.elapsed().as_secs_f64(), archive.health().records);
    search(&archive)
}

/// CPU time of this process so far.
fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// All samples, made before the clock starts.
fn samples(life: Incarnation, records: u64) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let mut builder = LogBatchBuilder::new();
    let mut samples = Vec::new();
    for batch in 0..records / BATCH {
        builder.reset();
        for number in batch * BATCH..(batch + 1) * BATCH {
            let process = format!("CONTROL/DV{:02}/cppContainer", number % 20);
            let origin = builder.origin(&OriginParts {
                incarnation: Some(life),
                process: &process,
                host: "gas01",
                file: "mountController.cpp",
                line: Some(120),
                routine: "MountController::track",
                logger: "mount",
                ..OriginParts::default()
            });
            let level = if number.is_multiple_of(1000) { Level::Error } else { Level::ALL[(number % 6) as usize] };
            let message = format!(
                "commanded position az {:.6} el {:.6} reached within {} us, following error {} counts, next scan pattern offset \
                 requested by the observing script at cycle {number}, pointing model terms applied, no faults",
                (number % 36000) as f64 / 100.0,
                (number % 9000) as f64 / 100.0,
                number % 977,
                number % 31,
            );
            let time = Time(1_700_000_000_000_000_000 + number as i64 * 1000);
            builder.push(origin, &RecordParts { time, number, level, message: &message, ..RecordParts::default() }, [])?;
        }
        samples.push(builder.seal().to_vec());
    }
    Ok(samples)
}

fn append(archive: &Segments, domain: &Domain, records: u64) -> Result<(), Box<dyn std::error::Error>> {
    let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos() as u64;
    let life = Incarnation { boot: 1, pid: std::process::id(), start };
    let samples = samples(life, records)?;
    let bytes: usize = samples.iter().map(Vec::len).sum();
    let (begun, cpu_before) = (Instant::now(), cpu());
    let mut refused = 0;
    for (batch, sample) in samples.iter().enumerate() {
        let header = BatchHeader {
            domain: domain.clone(),
            source: SourceName::new("CONTROL/speed")?,
            incarnation: life,
            stream: 0,
            first: batch as u64,
            count: 1,
            type_id: TYPE_ID,
            type_version: VERSION,
            acquired: Time(0),
            sent: Time(0),
            clock: ClockState::Synchronised,
            tai_offset: 37,
            flags: 0,
        };
        let sample = [sample.as_slice()];
        let arrival = Arrival::of_stream(&header, &sample, Time(batch as i64 * 2_000_000));
        while archive.append(&arrival).is_err() {
            refused += 1;
        }
    }
    archive.flush(Duration::from_secs(60));
    let (took, spent) = (begun.elapsed(), cpu() - cpu_before);
    let health = archive.health();
    println!(
        "append: {records} records, {} B each on the wire: {:.2} M/s, {:.0} MB/s, CPU {:.0} ns a record, {} commits, slowest {} ms, \
         refused {refused}",
        bytes as u64 / records,
        records as f64 / took.as_secs_f64() / 1e6,
        bytes as f64 / took.as_secs_f64() / 1e6,
        spent.as_nanos() as f64 / records as f64,
        health.commits,
        health.slowest_commit_us / 1000,
    );
    Ok(())
}

fn search(archive: &Segments) -> Result<(), Box<dyn std::error::Error>> {
    let process = |name: &str| [(Field::Process, vec![name.to_owned()])].into();
    let base = Query::default();
    let queries = [
        ("newest 100", Query { newest_first: true, limit: Some(100), ..base.clone() }),
        ("newest 100 errors", Query { min_level: Some(Level::Error), newest_first: true, limit: Some(100), ..base.clone() }),
        ("newest 100 of a process", Query { fields: process("*DV07*"), newest_first: true, limit: Some(100), ..base.clone() }),
        ("all errors of a process", Query { min_level: Some(Level::Error), fields: process("*DV00*"), ..base.clone() }),
        ("a rare word everywhere", Query { words: vec!["1000001".into()], ..base.clone() }),
        ("a word no record has", Query { words: vec!["interlock".into()], ..base.clone() }),
        ("a regex everywhere", Query { regex: Some("cycle 10000[0-9]{2},".into()), ..base.clone() }),
    ];
    for (name, query) in queries {
        timed(name, || {
            let scanned = archive.search(&query, &Stop::default(), &mut |_| true)?;
            Ok(format!("found {} of {} looked at in {} frames", scanned.found, scanned.looked_at, scanned.frames))
        })?;
    }
    for (name, by) in [
        ("count by level", Grouping { level: true, ..Grouping::default() }),
        ("count by process, 5 min", Grouping { field: Some(Field::Process), every_s: Some(300), ..Grouping::default() }),
    ] {
        timed(name, || {
            let counts = archive.count(&base, &by, &Stop::default())?;
            Ok(format!("{} records, {} rows", counts.total, counts.rows.len()))
        })?;
    }
    timed("everything in order", || {
        let scanned = archive.search(&base, &Stop::default(), &mut |_| true)?;
        Ok(format!("{} records", scanned.found))
    })
}

/// Runs something and prints how long it took, by the clock and by the processor.
fn timed(
    name: &str,
    work: impl FnOnce() -> Result<String, Box<dyn std::error::Error>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let (begun, before) = (Instant::now(), cpu());
    let told = work()?;
    let (took, spent) = (begun.elapsed().as_secs_f64() * 1e3, (cpu() - before).as_secs_f64() * 1e3);
    println!("{name:24} {took:8.1} ms, CPU {spent:8.1} ms: {told}");
    Ok(())
}
