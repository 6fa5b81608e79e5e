//! `tampu perf bulk`: a sender that writes every byte of each block, and receivers that check every byte; no hub and no
//! bus between.

use std::time::Duration;

use clap::Args;
use serde_json::{Value as Json, json};
use tampu_bulk::{Name, frame::LENGTH_LIMIT, group::Group};
use tampu_types::units::parse_size;

use crate::{
    commands::{
        bulk::choices::{OnOff, ProtectionChoice, Protocol},
        perf::scene::{Scene, Worker},
    },
    failure::{Failure, Outcome},
};

mod block;
pub mod giver;
mod memory;
pub mod passer;
pub mod taker;

/// Time limit of the parts for one another.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measure bulk data: a sender, and receivers that check every byte
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu perf bulk --size 1MiB --receivers 10\n  \
    tampu perf bulk --protocol tcp --checksum off --size 1MiB --receivers 1 --for 4s --json\n  \
    tampu perf bulk --relay --receivers 5 --throttle 64MB --for 10m")]
pub struct PerfBulk {
    /// Transport of the data
    #[arg(long, value_enum, value_name = "PROTOCOL", default_value = "auto")]
    protocol: Protocol,
    /// Checksums on the data
    #[arg(long, value_enum, value_name = "CHECKSUM", default_value = "off")]
    checksum: OnOff,
    /// Protection between sender and receivers, as between hosts
    #[arg(long, value_enum, value_name = "PROTECTION", default_value = "auto")]
    protection: ProtectionChoice,
    /// Size of a block; rounded up to a multiple of 8
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = parse_size)]
    size: u64,
    /// Number of receivers
    #[arg(long, value_name = "N", default_value_t = 1)]
    receivers: usize,
    /// Measure through a distributor: the sender has one receiver, which sends to all others
    #[arg(long)]
    relay: bool,
    /// Duration of the measurement
    #[arg(long = "for", value_name = "DURATION", default_value = "4s", value_parser = super::options::seconds)]
    seconds: f64,
    /// End after this much data, if that is earlier: 180MB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    bytes: Option<u64>,
    /// Wait with each block for its start, its stop and the acknowledgement of all data, instead of one transfer without waits
    #[arg(long, value_enum, value_name = "HANDSHAKE", default_value = "off")]
    handshake: OnOff,
    /// Send at most this many bytes a second: 50MB, 1GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    throttle: Option<u64>,
    /// Largest frame; 1400 is the size of a datagram on a network [default: as large as the protocol allows]
    #[arg(long, value_name = "SIZE", value_parser = clap::value_parser!(u32).range(8..=i64::from(LENGTH_LIMIT)))]
    frame: Option<u32>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl PerfBulk {
    pub fn run(self) -> Outcome {
        let size = usize::try_from(self.size.next_multiple_of(8)).unwrap_or(usize::MAX);
        if size > 1 << 30 || self.receivers == 0 {
            return Err(Failure::Usage("blocks of at most 1 GiB, to at least one receiver".to_owned()));
        }
        let scene = Scene::new(None)?;
        let (checksum, protocol) = (word(self.checksum), word(self.protocol));
        let mut receivers = Vec::new();
        let mut targets = Vec::new();
        for number in 0..self.receivers {
            let name = format!("perf-receiver-{number}");
            let mut receiver = scene.start(&name, &["perf", "part", "taker", &name, &size.to_string(), &checksum])?;
            targets.push(target(&mut receiver)?);
            receivers.push(receiver);
        }
        let mut relay = None;
        if self.relay {
            let mut arguments = vec!["perf", "part", "passer", &checksum, &protocol];
            arguments.extend(targets.iter().map(String::as_str));
            let mut passer = scene.start("distributor", &arguments)?;
            targets = vec![target(&mut passer)?];
            relay = Some(passer);
        }
        let numbers = [self.seconds.to_string(), self.bytes.unwrap_or(0).to_string(), size.to_string()];
        let (handshake, throttle) = (word(self.handshake), self.throttle.unwrap_or(0).to_string());
        let mut arguments = vec!["perf", "part", "giver"];
        let frame = self.frame.map(|frame| format!("--frame={frame}"));
        arguments.extend(frame.as_deref());
        let protection = format!("--protection={}", word(self.protection));
        arguments.push(&protection);
        arguments.extend(numbers.iter().map(String::as_str));
        arguments.extend([checksum.as_str(), &protocol, &handshake, &throttle]);
        arguments.extend(targets.iter().map(String::as_str));
        let mut sender = scene.start("sender", &arguments)?;
        let sent = sender.report()?;
        // The distributor ends last: it may still be sending when its own sender has finished.
        receivers.iter_mut().for_each(Worker::finish);
        let received = receivers.iter_mut().map(Worker::report).collect::<Result<Vec<_>, _>>()?;
        relay.iter_mut().for_each(Worker::finish);
        let passed = relay.as_mut().map(Worker::report).transpose()?;
        let report = self.report(size, &sent, passed.as_ref(), &received);
        super::report::show(&report, self.json)
    }

    fn report(&self, size: usize, sent: &Json, passed: Option<&Json>, received: &[Json]) -> Json {
        let number = |value: &Json, name: &str| value[name].as_f64().unwrap_or(0.0);
        let of = |name: &str| {
            let receivers: Vec<&Json> = received.iter().map(|one| &one[name]).collect();
            json!({"sender": sent[name], "relay": passed.map(|passed| &passed[name]), "receivers": receivers})
        };
        let bytes = number(sent, "bytes");
        let elapsed = number(sent, "elapsed_s").max(1e-9);
        let least = received.iter().map(|one| number(one, "right_bytes")).fold(f64::INFINITY, f64::min).min(bytes);
        let wrong = received.iter().map(|one| number(one, "wrong_bytes")).sum::<f64>();
        json!({
            "bytes_per_s": (least / elapsed).round(),
            "lost": bytes - least,
            "wrong": wrong,
            "complete": sent["complete"] == true && bytes == least && wrong == 0.0,
            "protocol": sent["transport"],
            "checksum": self.checksum.is_on(),
            "protection": word(self.protection),
            "handshake": self.handshake.is_on(),
            "relay": self.relay,
            "size": size,
            "receivers": self.receivers,
            "blocks": sent["blocks"],
            "blocks_per_s": number(sent, "blocks") / elapsed,
            "seconds": elapsed,
            "cpu_s": of("cpu_s"),
            "rss": of("rss"),
            "rss_begin": of("rss_begin"),
            "rss_end": of("rss_end"),
        })
    }
}

/// Reads the address that a part reports.
fn target(part: &mut Worker) -> Result<String, Failure> {
    Ok(part.report()?["target"].as_str().unwrap_or_default().to_owned())
}

fn word(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

/// A group on this host, where that is the way. Its port is one that only the sender has, so measurements do not meet.
fn group(protocol: Protocol) -> Result<Option<Group>, Failure> {
    match protocol {
        Protocol::Multicast => "239.255.77.77".parse().map(Some).map_err(failed),
        _ => Ok(None),
    }
}

fn names() -> Result<(Name, Name), Failure> {
    Ok((Name::new("perf").map_err(failed)?, Name::new("blocks").map_err(failed)?))
}
