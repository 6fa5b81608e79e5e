//! Processes of a bench: this program, started again in a role and controlled over its standard input and output.
//!
//! The lines are JSON. A role ends at the end of its input, so an interrupted bench leaves no processes behind.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::tally::Report;

/// Messages found in storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Audit {
    /// Number of stored messages, in order; `None` if they are not stored.
    pub kept: Option<u64>,
    /// Messages that no writer has written, or that arrived twice.
    pub wrong: u64,
}

/// Message of the bench to a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoleCommand {
    /// To a writer: the readers are connected, begin.
    Go {
        /// Time to write, in ns.
        nanoseconds: u64,
    },
    /// To a reader: the writer is done; report when no more messages arrive.
    WriterDone,
}

/// Message of a role to the bench.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum RoleMessage {
    /// A server or writer accepts connections at this address.
    At(String),
    /// A reader got a probe.
    Connected,
    /// A writer wrote its last message.
    Wrote {
        /// Number of messages.
        count: u64,
        /// Start, in monotonic ns.
        begun: u64,
        /// Time at which its last call returned.
        ended: u64,
        /// A remark beside the figures.
        note: Option<String>,
        /// Messages found in storage.
        audit: Audit,
        /// Bytes that were written to its socket.
        wire: Option<u64>,
    },
    /// A reader's account.
    Got(Report),
    /// The role cannot continue.
    Failed(String),
}

/// Sends a message to the bench.
pub fn say(what: &RoleMessage) {
    let mut out = std::io::stdout().lock();
    // If the write fails, the bench is gone, and this process ends soon.
    if let Ok(line) = serde_json::to_string(what) {
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Returns the commands of the bench. The process ends when the bench ends.
pub fn orders() -> Receiver<RoleCommand> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            match line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
                Some(order) => {
                    let _ = sender.send(order);
                }
                None => break,
            }
        }
        std::process::exit(0);
    });
    receiver
}

/// A process in a role, killed when dropped.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    input: ChildStdin,
    /// Name in messages.
    pub name: String,
}

/// All processes of a cell, and their messages.
#[derive(Debug)]
pub struct Stage {
    actors: Vec<Actor>,
    heard: Receiver<(usize, RoleMessage)>,
    say: Sender<(usize, RoleMessage)>,
    /// Messages that arrived during the wait for another one.
    kept: Vec<(usize, RoleMessage)>,
}

impl Default for Stage {
    fn default() -> Stage {
        let (say, heard) = channel();
        Stage { actors: Vec::new(), heard, say, kept: Vec::new() }
    }
}

impl Stage {
    /// Starts this program in a role; the number it returns names the process.
    pub fn enter(&mut self, name: &str, arguments: &[String], environment: &[(&str, &Path)]) -> Result<usize, String> {
        let program = std::env::current_exe().map_err(|e| format!("this program's own path: {e}"))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        for (key, value) in environment {
            command.env(key, value);
        }
        let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{name}: no pipes"));
        };
        let number = self.actors.len();
        let say = self.say.clone();
        let who = name.to_owned();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(what) => {
                        if say.send((number, what)).is_err() {
                            return;
                        }
                    }
                    Err(_) => eprintln!("{who}: {line}"),
                }
            }
            let _ = say.send((number, RoleMessage::Failed(format!("{who} ended"))));
        });
        self.actors.push(Actor { child, input, name: name.to_owned() });
        Ok(number)
    }

    /// Sends a command.
    pub fn order(&mut self, actor: usize, order: &RoleCommand) -> Result<(), String> {
        let actor = &mut self.actors[actor];
        let line = serde_json::to_string(order).map_err(|e| e.to_string())?;
        writeln!(actor.input, "{line}").map_err(|e| format!("{}: {e}", actor.name))
    }

    /// Waits for something that one of the processes says and that `wanted` takes; other sayings are kept for later.
    pub fn hear<T>(
        &mut self,
        what: &str,
        timeout: Duration,
        mut wanted: impl FnMut(usize, &RoleMessage) -> Option<T>,
    ) -> Result<T, String> {
        if let Some((at, found)) = self.kept.iter().enumerate().find_map(|(at, (who, say))| Some((at, wanted(*who, say)?))) {
            self.kept.remove(at);
            return Ok(found);
        }
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let (who, said) = self.heard.recv_timeout(left).map_err(|_| format!("nothing of {what} within {timeout:?}"))?;
            if let Some(found) = wanted(who, &said) {
                return Ok(found);
            }
            if let RoleMessage::Failed(why) = &said {
                return Err(format!("{}: {why}", self.actors[who].name));
            }
            self.kept.push((who, said));
        }
    }

    /// Returns the processor time of a process so far, in seconds.
    pub fn cpu(&self, actor: usize) -> f64 {
        cpu_of(self.actors[actor].child.id())
    }

    /// Returns the resident memory of a process, in 10^6 bytes.
    pub fn rss_mb(&self, actor: usize) -> f64 {
        rss_of(self.actors[actor].child.id())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for actor in &mut self.actors {
            let _ = actor.child.kill();
        }
        for actor in &mut self.actors {
            let _ = actor.child.wait();
        }
    }
}

/// Resolution of the processor time in `/proc`: the kernel counts it in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the processor time (user and system) of a process in seconds, by the kernel's ticks of 10 ms.
pub fn cpu_of(pid: u32) -> f64 {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return f64::NAN };
    // The second field, the program's name, may hold spaces; it ends with the last bracket.
    let Some((_, fields)) = stat.rsplit_once(')') else { return f64::NAN };
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_SECOND
}

/// Returns the current resident memory of a process, in 10^6 bytes.
pub fn rss_of(pid: u32) -> f64 {
    let Ok(statm) = fs::read_to_string(format!("/proc/{pid}/statm")) else { return f64::NAN };
    let pages: Option<u64> = statm.split_whitespace().nth(1).and_then(|field| field.parse().ok());
    pages.map_or(f64::NAN, |pages| pages as f64 * rustix::param::page_size() as f64 / 1e6)
}
