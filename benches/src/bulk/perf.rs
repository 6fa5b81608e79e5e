//! `tampu perf bulk`: its arguments and its output.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use super::{carrier::Way, sample::Sample};
use crate::perf_log::sum;

/// Measurement to make.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// Path of the data.
    pub way: Way,
    /// Bytes of a block.
    pub size: usize,
    /// Number of receivers.
    pub receivers: usize,
    /// Longest time in seconds.
    pub seconds: f64,
    /// Throttle in bytes a second, if any.
    pub throttle: Option<u64>,
    /// Number of bytes after which it ends, if any.
    pub bytes: Option<u64>,
}

/// A running command; killed when dropped.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Its child processes end when their standard input ends.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Results, with the memory at both ends of the run.
#[derive(Debug, Clone, Copy)]
pub struct Said {
    /// The results that every row has.
    pub sample: Sample,
    /// Resident memory in 10^6 bytes at the beginning: sender, distributor, receivers together.
    pub begin_mb: [f64; 3],
    /// Resident memory at the end.
    pub end_mb: [f64; 3],
}

impl Ask {
    pub fn start(&self, tampu: &Path) -> Result<Running, String> {
        let on_off = |on: bool| if on { "on" } else { "off" };
        let mut command = Command::new(tampu);
        command.args(["perf", "bulk", "--json", "--protocol", self.way.protocol]);
        command.args([
            "--checksum",
            on_off(self.way.checksum),
            "--protection",
            self.way.protection,
            "--handshake",
            on_off(self.way.handshake),
        ]);
        command.args(["--size", &self.size.to_string(), "--receivers", &self.receivers.to_string()]);
        command.args(["--for", &format!("{}s", self.seconds)]);
        for (name, value) in [("--throttle", self.throttle), ("--bytes", self.bytes)] {
            if let Some(value) = value {
                command.args([name, &value.to_string()]);
            }
        }
        if self.way.relay {
            command.arg("--relay");
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        child.map(Running).map_err(|e| format!("{}: {e}", tampu.display()))
    }

    pub fn measure(&self, tampu: &Path) -> Result<Said, String> {
        self.start(tampu)?.said(self.way)
    }
}

impl Running {
    /// Waits for its end.
    pub fn said(mut self, way: Way) -> Result<Said, String> {
        let read = |pipe: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            pipe.map(|pipe| pipe.read_to_string(&mut text)).transpose().map(|_| text)
        };
        // One short line each: neither pipe fills up while the other is read.
        let out = read(self.0.stdout.as_mut().map(|pipe| pipe as _)).map_err(|e| e.to_string())?;
        let errors = read(self.0.stderr.as_mut().map(|pipe| pipe as _)).map_err(|e| e.to_string())?;
        let status = self.0.wait().map_err(|e| e.to_string())?;
        if !status.success() {
            return Err(format!("{status}: {}", errors.trim()));
        }
        let said: Value = serde_json::from_str(&out).map_err(|e| format!("invalid output of tampu perf bulk: {e}"))?;
        if said["protocol"] != way.protocol {
            return Err(format!("{} was asked for, {} was used", way.protocol, said["protocol"]));
        }
        let number = |name: &str| said[name].as_f64().unwrap_or(f64::NAN);
        let sides = |name: &str| ["sender", "relay", "receivers"].map(|side| sum(&said[name][side]));
        let megabytes = |name: &str| sides(name).map(|bytes| bytes / 1e6);
        let sample = Sample {
            bytes_per_s: number("bytes_per_s"),
            lost: number("lost"),
            wrong: number("wrong"),
            cpu: sides("cpu_s"),
            rss_mb: megabytes("rss"),
            seconds: number("seconds"),
        };
        Ok(Said { sample, begin_mb: megabytes("rss_begin"), end_mb: megabytes("rss_end") })
    }
}
