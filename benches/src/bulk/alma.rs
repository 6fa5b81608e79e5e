//! ALMA's load: 64 MB/s for ten minutes, and four concurrent senders that each send a burst of 180 MB at 70 MB/s.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    carrier::Way,
    perf::{Ask, Running, Said},
    verdict::Verdict,
};
use crate::table::{Table, count};

/// Seconds of the steady load by default.
pub const SECONDS: f64 = 600.0;
const STEADY: u64 = 64_000_000;
const BURST: u64 = 180_000_000;
const BURST_RATE: u64 = 70_000_000;
const SENDERS: usize = 4;
/// A dump of the correlator.
const BLOCK: usize = 1 << 20;
/// Time limit of a burst in s; a longer one has failed.
const BURST_LIMIT: f64 = 60.0;
/// Maximum share of a core for each side.
const SHARE: f64 = 0.25;
/// Growth of memory that still counts as flat, 10^6 bytes: pages that are touched for the first time.
const FLAT_MB: f64 = 4.0;

const WAY: Way = Way { protocol: "tcp", checksum: true, protection: "none", handshake: false, relay: false };

/// Results of one sender and its receiver.
#[derive(Debug, Clone)]
pub struct Load {
    name: String,
    wanted: u64,
    said: Said,
}

/// Measures both loads over TCP with checksums, and reports each result at once.
pub fn measure(tampu: &Path, seconds: f64, mut tell: impl FnMut(&Load)) -> Result<Vec<Load>, String> {
    let steady = Ask { way: WAY, size: BLOCK, receivers: 1, seconds, throttle: Some(STEADY), bytes: None };
    let mut loads = vec![Load { name: format!("{seconds} s"), wanted: STEADY, said: steady.measure(tampu)? }];
    loads.iter().for_each(&mut tell);
    let burst = Ask { seconds: BURST_LIMIT, throttle: Some(BURST_RATE), bytes: Some(BURST), ..steady };
    let running = (0..SENDERS).map(|_| burst.start(tampu)).collect::<Result<Vec<Running>, String>>()?;
    for (number, running) in running.into_iter().enumerate() {
        let load = Load { name: format!("burst of sender {}", number + 1), wanted: BURST_RATE, said: running.said(WAY)? };
        tell(&load);
        loads.push(load);
    }
    Ok(loads)
}

impl Load {
    fn share(&self, side: usize) -> f64 {
        self.said.sample.cpu[side] / self.said.sample.seconds
    }

    /// Returns the result as a JSON object.
    pub fn line(&self) -> Value {
        let (sample, Said { begin_mb, end_mb, .. }) = (&self.said.sample, &self.said);
        json!({"alma": self.name, "bytes_per_s": sample.bytes_per_s, "wanted": self.wanted, "lost": sample.lost, "wrong": sample.wrong,
            "ours": true, "seconds": sample.seconds, "cpu_share": {"sender": self.share(0), "receiver": self.share(2)},
            "rss_begin_mb": {"sender": begin_mb[0], "receiver": begin_mb[2]}, "rss_end_mb": {"sender": end_mb[0], "receiver": end_mb[2]}})
    }

    /// Returns the verdicts on the goals.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let (sample, Said { begin_mb, end_mb, .. }) = (&self.said.sample, &self.said);
        let grown = [0, 2].map(|side| end_mb[side] - begin_mb[side]).into_iter().fold(f64::MIN, f64::max);
        let whole = sample.lost == 0.0 && sample.wrong == 0.0;
        let what = |what: &str| format!("ALMA, {}: {what}", self.name);
        vec![
            Verdict::at_most(what("share of a core, the busier side"), SHARE, self.share(0).max(self.share(2)), whole),
            Verdict::at_most(what("bytes lost or wrong"), 0.0, sample.lost + sample.wrong, true),
            Verdict::at_least(what("rate / what was asked for"), 0.97, sample.bytes_per_s / self.wanted as f64, whole),
            Verdict::at_most(what("MB of memory more at the end"), FLAT_MB, grown, true),
        ]
    }
}

pub fn table(loads: &[Load]) -> Table {
    let mut table = Table::new(&[
        "ALMA's load",
        "MB/s",
        "s",
        "cpu %: sender",
        "receiver",
        "MB: sender, begin",
        "end",
        "receiver, begin",
        "end",
        "lost",
    ]);
    for load in loads {
        let (sample, Said { begin_mb, end_mb, .. }) = (&load.said.sample, &load.said);
        let short = |value: f64| format!("{value:.1}");
        table.row(vec![
            load.name.clone(),
            short(sample.bytes_per_s / 1e6),
            short(sample.seconds),
            short(100.0 * load.share(0)),
            short(100.0 * load.share(2)),
            short(begin_mb[0]),
            short(end_mb[0]),
            short(begin_mb[2]),
            short(end_mb[2]),
            count(sample.lost),
        ]);
    }
    table
}
