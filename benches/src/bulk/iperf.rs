//! iperf3 of Debian: the throughput of a program that does not read the bytes.

use std::{
    io::Read,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::sample::Sample;
use crate::process::rss_of;

/// Maximum length of its buffer, bytes.
const LONGEST: usize = 1 << 20;
/// Number of attempts.
const TRIES: usize = 5;

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Time for the server to begin listening.
const STARTING: Duration = Duration::from_millis(100);

/// Measures once, with blocks of at most 1 MB.
pub fn measure(size: usize, seconds: f64) -> Result<Sample, String> {
    let failed = |e: std::io::Error| format!("iperf3: {e}");
    let seconds = seconds.ceil().max(1.0);
    let (time, length) = (seconds.to_string(), size.min(LONGEST).to_string());
    let mut rss = [f64::NAN; 2];
    let mut said = Value::Null;
    for _ in 0..TRIES {
        // iperf3 cannot choose a free port and report it: another program may have taken this one meanwhile.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).map_err(failed)?.port().to_string();
        let server = Command::new("iperf3").args(["-s", "-B", "127.0.0.1", "-p", &port]).stdout(Stdio::null()).spawn();
        let server = Killed(server.map_err(failed)?);
        std::thread::sleep(STARTING);
        let client = Command::new("iperf3")
            .args(["-c", "127.0.0.1", "-p", &port, "-l", &length, "-t", &time, "--json"])
            .stdout(Stdio::piped())
            .spawn();
        let mut client = Killed(client.map_err(failed)?);
        let middle = Instant::now() + Duration::from_secs_f64(seconds / 2.0);
        while Instant::now() < middle && client.0.try_wait().map_err(failed)?.is_none() {
            std::thread::sleep(Duration::from_millis(20));
        }
        rss = [rss_of(client.0.id()), rss_of(server.0.id())];
        let mut text = String::new();
        client.0.stdout.as_mut().map(|pipe| pipe.read_to_string(&mut text)).transpose().map_err(failed)?;
        said = serde_json::from_str(&text).map_err(|e| format!("invalid output of iperf3: {e}"))?;
        if client.0.wait().map_err(failed)?.success() {
            break;
        }
    }
    let received = &said["end"]["sum_received"];
    let rate = received["bits_per_second"].as_f64().ok_or_else(|| format!("iperf3: {}", said["error"]))? / 8.0;
    let time = received["seconds"].as_f64().unwrap_or(f64::NAN);
    let cpu = |side: &str| said["end"]["cpu_utilization_percent"][side].as_f64().unwrap_or(f64::NAN) / 100.0 * time;
    Ok(Sample {
        bytes_per_s: rate,
        lost: 0.0,
        wrong: 0.0,
        cpu: [cpu("host_total"), 0.0, cpu("remote_total")],
        rss_mb: [rss[0], 0.0, rss[1]],
        seconds: time,
    })
}
