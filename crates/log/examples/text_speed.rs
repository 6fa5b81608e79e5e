//! Speed of local output: `cargo run --release --example text_speed -- FILE [RECORDS [THREADS [FORMAT]]]`.
//!
//! Logs at full speed, publishes nothing, and waits until the last line is written. Callers wait for room, so that no
//! record is dropped.

use std::time::{Duration, Instant};

use tampu_bus::{Participant, QosTable, engine::memory::MemoryNet};
use tampu_log::{LogSettings, Logger, Threshold, info};
use tampu_types::{Domain, Level, SourceName};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let records: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let threads: u64 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let net = MemoryNet::new(1);
    let (domain, source) = (Domain::new("speed")?, SourceName::new("CONTROL/DV01")?);
    let participant = Participant::on(net.engine("host"), domain.clone(), source.clone(), QosTable::default())?;
    let mut settings = LogSettings::isolated(domain, source);
    (settings.central, settings.local) = (Threshold::Off, Threshold::From(Level::Delouse));
    settings.output = path.parse()?;
    settings.format = arguments.next().map_or(Ok(settings.format), |text| text.parse())?;
    settings.full_wait = Duration::from_secs(10);
    let logger = Logger::on(participant, settings)?;

    let states = ["tracking", "slewing", "idle", "stowed"];
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for number in 0..records / threads {
                    info!(logger, "antenna {} at {} is {}", number, number * 7 % 360, states[number as usize % 4]);
                }
            });
        }
    });
    let called = begun.elapsed();
    logger.flush(Duration::from_secs(60));
    let (took, stats) = (begun.elapsed(), logger.stats());
    println!(
        "{:.2} M records/s; calls took {called:?}, all {took:?}; dropped {}, not printed {}",
        records as f64 / took.as_secs_f64() / 1e6,
        stats.dropped,
        stats.unprinted
    );
    Ok(())
}
