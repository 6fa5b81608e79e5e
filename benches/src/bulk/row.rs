//! One row: a carrier, a block size and a number of receivers, measured several times.

use std::{path::Path, time::Duration};

use super::{
    carrier::{Carrier, Kind},
    iperf, perf,
    sample::Sample,
};
use crate::{cell::Cell, payload::SHORTEST, role::Speed, system::System};

/// Several measurements of one carrier.
#[derive(Debug, Clone)]
pub struct Row {
    /// System that carries the messages.
    pub carrier: Carrier,
    /// Bytes of a block.
    pub size: usize,
    /// Number of receivers.
    pub receivers: usize,
    /// Measurements that were made.
    pub samples: Vec<Sample>,
}

impl Row {
    /// Returns the mean of the rates, and the error of the mean.
    pub fn rate(&self) -> (f64, f64) {
        let rates: Vec<f64> = self.samples.iter().map(|sample| sample.bytes_per_s).collect();
        mean(&rates)
    }

    /// Returns true if nothing was lost or changed.
    pub fn is_clean(&self) -> bool {
        self.samples.iter().all(|sample| sample.lost == 0.0 && sample.wrong == 0.0)
    }

    /// Returns the mean of a value.
    pub fn of(&self, what: impl Fn(&Sample) -> f64) -> f64 {
        let all: Vec<f64> = self.samples.iter().map(what).collect();
        mean(&all).0
    }

    /// Returns the processor seconds of the sender for each byte.
    pub fn sender_cpu_a_byte(&self) -> f64 {
        self.of(|sample| sample.cpu[0] / (sample.bytes_per_s * sample.seconds))
    }
}

/// Returns the mean, and its error: the standard deviation divided by the square root of the number of values.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    if values.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

pub fn measure(tampu: &Path, carrier: Carrier, size: usize, receivers: usize, seconds: f64) -> Result<Sample, String> {
    match carrier.kind {
        Kind::Ours(way) => {
            let ask = perf::Ask { way, size, receivers, seconds, throttle: None, bytes: None };
            ask.measure(tampu).map(|said| said.sample)
        }
        Kind::Peer { server } => peer_cell(carrier, server, size, receivers, seconds),
        Kind::Iperf => iperf::measure(size, seconds),
    }
}

fn peer_cell(carrier: Carrier, server: bool, size: usize, receivers: usize, seconds: f64) -> Result<Sample, String> {
    let system = System { name: carrier.name, about: carrier.about, ours: false, server, from_size: 0, latency: false };
    let time = Duration::from_secs_f64(seconds);
    let size = size.max(SHORTEST);
    let outcome = Cell { system, size, readers: receivers, speed: Speed::Full, time }.run()?;
    if let Some(note) = outcome.note {
        return Err(note);
    }
    Ok(Sample {
        bytes_per_s: outcome.per_second * size as f64,
        lost: outcome.lost as f64 * size as f64,
        wrong: outcome.wrong as f64,
        cpu: [outcome.cpu_writer, outcome.cpu_server, outcome.cpu_readers],
        rss_mb: outcome.rss_mb,
        seconds: outcome.sent as f64 / outcome.per_second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_the_mean_falls_with_the_root_of_how_many_there_are() {
        assert_eq!(mean(&[3.0]), (3.0, 0.0));
        let (value, error) = mean(&[1.0, 3.0]);
        assert!((value - 2.0).abs() < 1e-12 && (error - 1.0).abs() < 1e-12);
        assert!(mean(&[]).0.is_nan());
    }
}
