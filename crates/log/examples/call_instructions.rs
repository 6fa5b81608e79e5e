//! Makes so many log calls (2 integers and a short string) and nothing else in its first thread, for whoever counts that thread's
//! instructions: `tests/peers/call_instructions`.

use std::hint::black_box;

use tampu_bus::{Participant, QosTable, engine::memory::MemoryNet};
use tampu_log::{LogSettings, Logger, info};
use tampu_types::{Domain, SourceName};

/// By themselves, as in a function of a program: in `main` they would share the registers with all that is there.
#[inline(never)]
fn make(logger: &Logger, calls: u64, antenna: &str) {
    for number in 0..calls {
        info!(logger, "az {} el {} of {}", number, number + 1, antenna);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let calls: u64 = std::env::args().nth(1).ok_or("how many calls?")?.parse()?;
    let net = MemoryNet::new(1);
    let (domain, source) = (Domain::new("count")?, SourceName::new("caller")?);
    let participant = Participant::on(net.engine("host"), domain.clone(), source.clone(), QosTable::default())?;
    let mut settings = LogSettings::isolated(domain, source);
    // Room for all records: no call waits.
    settings.ring_bytes = 64 << 20;
    settings.close_wait = std::time::Duration::ZERO;
    let logger = Logger::on(participant, settings)?;
    make(&logger, calls, black_box("DV01"));
    // Not dropped: joining the backend must not be counted.
    std::mem::forget(logger);
    std::process::exit(0);
}
