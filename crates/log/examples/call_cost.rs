//! Cost of a log call to the calling thread, in ns of its processor time: `cargo run --release --example call_cost`.

use std::{hint::black_box, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use tampu_bus::{Participant, QosTable, engine::memory::MemoryNet};
use tampu_log::{LogSettings, Logger, info, trace};
use tampu_types::{Domain, SourceName};

fn thread_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let net = MemoryNet::new(1);
    let (domain, source) = (Domain::new("cost")?, SourceName::new("caller")?);
    let participant = Participant::on(net.engine("host"), domain.clone(), source.clone(), QosTable::default())?;
    let mut settings = LogSettings::isolated(domain, source);
    settings.full_wait = Duration::from_secs(1);
    settings.close_wait = Duration::from_millis(10);
    let logger = Logger::on(participant, settings)?;

    let (calls, rounds) = (10_000u64, 20u64);
    let measure = |name: &str, call: &dyn Fn(u64)| {
        let mut costs: Vec<i64> = (0..rounds)
            .map(|_| {
                let before = thread_ns();
                (0..calls).for_each(|number| call(black_box(number)));
                (thread_ns() - before) / calls as i64
            })
            .collect();
        costs.sort_unstable();
        println!("{name:<40} {:>6} ns a call (best {}, worst {})", costs[costs.len() / 2], costs[0], costs[costs.len() - 1]);
    };
    measure("disabled level", &|number| trace!(logger, "az {number}"));
    measure("fixed text", &|_| info!(logger, "the antenna is on its way to the source"));
    measure("2 integers and a short string", &|number| info!(logger, "az {number} el {} of {}", number + 1, "DV01"));
    measure("the same with 2 named values", &|number| {
        info!(logger, "az {number} el {} of {}", number + 1, "DV01"; scan = number, axis = "az");
    });
    println!("dropped: {}", logger.stats().dropped);
    Ok(())
}
