//! Cost of the hand-shake when the wire is the limit. Sender and receiver are in network namespaces of their own,
//! joined by a cable of 1 Gbit/s. The cable is a pair of virtual devices with the kernel's token bucket (`tc tbf`) on
//! both ends; it needs root.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use super::{row::mean, verdict::Verdict};
use crate::table::{Table, size};

const RECEIVER: &str = "10.89.0.1";
const SENDER: &str = "10.89.0.2";
const RATE: &str = "1gbit";
/// Burst size in bytes: more than the kernel's longest packet, less than the amount of a tick.
const BURST: &str = "256kb";
const SIZES: [usize; 2] = [1 << 20, 64 << 20];
/// Block size at which the hand-shake should cost next to nothing.
const GOAL_SIZE: usize = 64 << 20;
const GOAL: f64 = 0.005;
/// Minimum duration of a transfer, s: a block of 64 MB takes half a second.
const SHORTEST: f64 = 5.0;

/// Rates of a size without and with hand-shake.
#[derive(Debug, Clone)]
pub struct Pair {
    size: usize,
    without: Vec<f64>,
    with: Vec<f64>,
    clean: bool,
}

/// A network namespace, which ends when this is dropped.
struct Space(Child);

impl Drop for Space {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Space {
    fn make() -> Result<Space, String> {
        let mut child = Command::new("unshare")
            .args(["--net", "sh", "-c", "echo made && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("unshare: {e}"))?;
        // The child reports that it runs, and ends with its input: with the bench, however that ends.
        let mut line = String::new();
        let read = child.stdout.as_mut().map(|pipe| BufReader::new(pipe).read_line(&mut line));
        let space = Space(child);
        match read {
            Some(Ok(length)) if length > 0 => Ok(space),
            _ => Err("a network namespace cannot be made here (it needs root)".to_owned()),
        }
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Returns a command that runs in the namespace.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.0.id())).arg("--").arg(program);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let output = self.command(Path::new(program)).args(arguments).output().map_err(|e| format!("nsenter: {e}"))?;
        let told = || format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        if output.status.success() { Ok(()) } else { Err(told()) }
    }
}

/// Two namespaces and their cable.
struct Cable {
    receiver: Space,
    sender: Space,
}

impl Cable {
    fn lay() -> Result<Cable, String> {
        let (receiver, sender) = (Space::make()?, Space::make()?);
        receiver.run("ip", &["link", "add", "near", "type", "veth", "peer", "name", "far", "netns", &sender.pid()])?;
        for (space, device, address) in [(&receiver, "near", RECEIVER), (&sender, "far", SENDER)] {
            space.run("ip", &["address", "add", &format!("{address}/24"), "dev", device])?;
            space.run("ip", &["link", "set", device, "up"])?;
            space.run("tc", &["qdisc", "add", "dev", device, "root", "tbf", "rate", RATE, "burst", BURST, "latency", "50ms"])?;
        }
        Ok(Cable { receiver, sender })
    }
}

/// A part of `tampu perf bulk`; ends when its input does.
struct Part {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Part {
    fn start(mut command: Command, arguments: &[&str]) -> Result<Part, String> {
        let child = command.args(["perf", "part"]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|e| e.to_string())?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or("no pipe")?);
        Ok(Part { child, input, output })
    }

    fn report(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|e| e.to_string())?;
        serde_json::from_str(&line).map_err(|_| "a part of the measurement ended without a report".to_owned())
    }

    fn last_report(&mut self) -> Result<Value, String> {
        if let Some(mut input) = self.input.take() {
            let _ = input.flush();
        }
        let mut text = String::new();
        self.output.read_to_string(&mut text).map_err(|e| e.to_string())?;
        serde_json::from_str(&text).map_err(|_| "a receiver ended without a report".to_owned())
    }
}

/// Returns the bytes a second, and whether all arrived unchanged.
fn once(cable: &Cable, tampu: &Path, size: usize, handshake: &str, seconds: f64) -> Result<(f64, bool), String> {
    let (bytes, place) = (size.to_string(), format!("{RECEIVER}:0"));
    let mut taker = Part::start(cable.receiver.command(tampu), &["taker", "far", &bytes, "off", "--listen", &place])?;
    let target = taker.report()?["target"].as_str().unwrap_or_default().to_owned();
    let seconds = seconds.max(SHORTEST).to_string();
    let arguments = ["giver", &seconds, "0", &bytes, "off", "tcp", handshake, "0", &target];
    let mut giver = Part::start(cable.sender.command(tampu), &arguments)?;
    let sent = giver.report()?;
    let received = taker.last_report()?;
    let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or(f64::NAN);
    let right = number(&received, "right_bytes");
    let clean = right == number(&sent, "bytes") && number(&received, "wrong_bytes") == 0.0;
    Ok((right / number(&sent, "elapsed_s"), clean))
}

/// Measures with and without hand-shake in turn, so that other load affects both alike.
pub fn measure(tampu: &Path, samples: usize, seconds: f64) -> Result<Vec<Pair>, String> {
    let cable = Cable::lay()?;
    let mut pairs = Vec::new();
    for size in SIZES {
        let mut pair = Pair { size, without: Vec::new(), with: Vec::new(), clean: true };
        for _ in 0..samples.max(1) {
            let (without, clean) = once(&cable, tampu, size, "off", seconds)?;
            let (with, as_clean) = once(&cable, tampu, size, "on", seconds)?;
            pair.without.push(without);
            pair.with.push(with);
            pair.clean &= clean && as_clean;
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

impl Pair {
    /// Returns the share of the time that the hand-shake takes, from the fastest samples of both. Other load can only
    /// slow a wire down.
    fn cost(&self) -> f64 {
        let fastest = |rates: &[f64]| rates.iter().copied().fold(f64::NAN, f64::max);
        1.0 - fastest(&self.with) / fastest(&self.without)
    }

    /// Returns the result as a JSON object.
    pub fn line(&self) -> Value {
        let ((without, without_error), (with, with_error)) = (mean(&self.without), mean(&self.with));
        json!({"gigabit": self.size, "ours": true, "lost": u8::from(!self.clean), "wrong": 0, "without": without, "without_error": without_error,
            "with": with, "with_error": with_error, "cost": self.cost()})
    }

    /// Returns the verdict on the goal.
    pub fn verdict(&self) -> Option<Verdict> {
        let what = format!("hand-shake's part of the time at 1 Gbit/s, {}", size(self.size));
        (self.size == GOAL_SIZE).then(|| Verdict::at_most(what, GOAL, self.cost(), self.clean))
    }
}

pub fn table(pairs: &[Pair]) -> Table {
    let mut table = Table::new(&["1 Gbit/s between namespaces", "MB/s without", "+-", "with", "+-", "hand-shake %"]);
    for pair in pairs {
        let ((without, without_error), (with, with_error)) = (mean(&pair.without), mean(&pair.with));
        let short = |value: f64| format!("{:.2}", value / 1e6);
        let name = format!("tcp, {}{}", size(pair.size), if pair.clean { "" } else { " LOST OR WRONG" });
        let cost = format!("{:.2}", 100.0 * pair.cost());
        table.row(vec![name, short(without), short(without_error), short(with), short(with_error), cost]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_a_part_of_the_time_and_is_judged_for_large_blocks_only() {
        let pair = |size, with| Pair { size, without: vec![100.0, 100.0], with: vec![with, with], clean: true };
        assert!((pair(GOAL_SIZE, 98.0).cost() - 0.02).abs() < 1e-12);
        assert!(!pair(GOAL_SIZE, 98.0).verdict().unwrap().reached && pair(GOAL_SIZE, 99.8).verdict().unwrap().reached);
        let disturbed = Pair { with: vec![99.8, 60.0], ..pair(GOAL_SIZE, 0.0) };
        assert!(disturbed.verdict().unwrap().reached);
        assert_eq!(pair(1 << 20, 50.0).verdict(), None);
    }
}
