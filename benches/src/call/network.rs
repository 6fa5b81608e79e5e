//! A collector that is a millisecond away, on a host of its own. That host is a network namespace with its own boot id,
//! at the end of a cable that delays packets.
//!
//! The bench starts itself again in a network and mount namespace, so that all mounts and connections end with it, even
//! after a crash. The delay is `tc netem`'s on both ends of the cable. If the kernel has no `netem`, a process carries
//! the bytes ([`delay`](crate::call::delay)). It has the same delay, but less work for single packets.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde::{Deserialize, Serialize};

use crate::call::{
    amount::Amount,
    cost,
    hub::Hub,
    marks::missing,
    paper::{self, Place, Row},
    paths::Paths,
    peer::ours,
    program,
    stage::{self, Stage, this_program},
    summary::Summary,
};

/// The far end of the cable, and the port its node listens at.
const FAR: &str = "10.88.0.2";
const PORT: u16 = 7447;
/// Address of the far node if a process delays the bytes sent to it.
const BEHIND: &str = "127.0.0.1:7448";
/// Delay in each direction in microseconds.
const LATE_US: u64 = 1000;
/// Number of measurements, made in turn. The least values are compared, because other load can only add time.
const TURNS: usize = 5;

/// Arguments of the role.
#[derive(Debug, Clone, clap::Args)]
pub struct Ask {
    /// The program to measure.
    #[arg(long)]
    pub tampu: PathBuf,
    /// Directory for the run\'s directories.
    #[arg(long)]
    pub data: PathBuf,
    /// Amount of work.
    #[command(flatten)]
    pub amount: Amount,
    /// File for the account.
    #[arg(long)]
    pub account: PathBuf,
}

/// A line of the published table, with the collector near and far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pair {
    pub number: u32,
    /// Name of the row.
    pub name: String,
    /// Number of threads.
    pub threads: usize,
    /// With the collector on this host.
    pub near: Seen,
    /// With the collector far away.
    pub far: Seen,
}

/// Results of a row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Seen {
    pub times: Summary,
    /// Number of records that were not stored.
    pub lost: u64,
}

/// Cost of a one-way call with the collector near and far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Costs {
    /// Number of threads.
    pub threads: usize,
    /// Measured in turn with `far`.
    pub near: Vec<cost::Account>,
    /// Measured in turn with `near`.
    pub far: Vec<cost::Account>,
}

impl Costs {
    /// Returns the least measured processor time of a call, near and far, in ns.
    pub fn cpu_ns(&self) -> [f64; 2] {
        [&self.near, &self.far]
            .map(|accounts| accounts.iter().map(|account| account.cpu_ns).min_by(f64::total_cmp).unwrap_or(f64::NAN))
    }
}

/// Results of the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Account {
    /// Means by which the cable delays.
    pub cable: String,
    /// Lines of the published table.
    pub pairs: Vec<Pair>,
    /// Costs of a one-way call.
    pub costs: Vec<Costs>,
}

/// Measures in a network namespace of its own. Fails if none can be created. The account is passed in a file.
pub fn measure(amount: &Amount, place: &Paths, file: &Path) -> Result<Account, String> {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--propagation", "private"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.arg(std::env::current_exe().map_err(|e| e.to_string())?).args(["role", "network"]);
    command.arg("--tampu").arg(&place.tampu).arg("--data").arg(&place.data).arg("--account").arg(file);
    command.args(["--calls", &amount.calls.to_string(), "--rounds", &amount.rounds.to_string()]);
    let threads: Vec<String> = amount.threads.iter().map(usize::to_string).collect();
    command.args(["--seconds", &amount.seconds.to_string(), "--threads", &threads.join(",")]);
    let ended = command.stdin(Stdio::null()).status().map_err(|e| format!("unshare (util-linux): {e}"))?;
    let unheard = || Err(format!("{ended}; it needs root or user namespaces, and iproute2"));
    stage::take(file).unwrap_or_else(unheard)
}

/// Runs a command, split at blanks, that must succeed.
fn sh(words: &str) -> Result<(), String> {
    let mut parts = words.split(' ');
    let output = Command::new(parts.next().unwrap_or_default()).args(parts).output().map_err(|e| format!("{words}: {e}"))?;
    if output.status.success() { Ok(()) } else { Err(format!("{words}: {}", String::from_utf8_lossy(&output.stderr).trim())) }
}

/// Cable between the two hosts. The process that carries its bytes ends when this is dropped.
struct Cable {
    about: String,
    /// Address of the far node.
    listen: String,
    carrier: Option<Child>,
}

impl Drop for Cable {
    fn drop(&mut self) {
        if let Some(carrier) = &mut self.carrier {
            let _ = carrier.kill();
            let _ = carrier.wait();
        }
    }
}

/// Connects this host to another, called `far`.
fn lay() -> Result<Cable, String> {
    // `ip netns` keeps its names below /run, which this user cannot always write.
    sh("mount -t tmpfs tampu /run")?;
    sh("mkdir -p /run/netns")?;
    sh("ip netns add far")?;
    sh("ip link set lo up")?;
    sh("ip link add cable type veth peer name cable netns far")?;
    sh("ip addr add 10.88.0.1/24 dev cable")?;
    sh(&format!("ip -n far addr add {FAR}/24 dev cable"))?;
    for link in ["ip link set cable up", "ip -n far link set cable up", "ip -n far link set lo up"] {
        sh(link)?;
    }
    let late = format!("qdisc add dev cable root netem delay {LATE_US}us");
    match sh(&format!("tc {late}")).and_then(|()| sh(&format!("tc -n far {late}"))) {
        Ok(()) => Ok(Cable { about: "1 ms each way (tc netem)".to_owned(), listen: format!("{FAR}:{PORT}"), carrier: None }),
        Err(why) => {
            eprintln!("bench-call: no netem in this kernel ({why}); a process delays the bytes instead");
            let own = this_program("delay")?;
            let mut command = Command::new("ip");
            command.args(["netns", "exec", "far"]).arg(own.get_program()).args(own.get_args());
            command.args(["--from", &format!("{FAR}:{PORT}"), "--to", BEHIND, "--microseconds", &LATE_US.to_string()]);
            let carrier = command.stdin(Stdio::null()).spawn().map_err(|e| format!("ip netns exec: {e}"))?;
            let about = "1 ms each way (a process that carries the bytes; this kernel has no netem)".to_owned();
            Ok(Cable { about, listen: BEHIND.to_owned(), carrier: Some(carrier) })
        }
    }
}

/// Runs inside the network namespace.
pub fn run(ask: &Ask) -> Result<Account, String> {
    let dir = tempfile::Builder::new().prefix("tampu-bench-").tempdir_in(&ask.data);
    let dir = dir.map_err(|e| format!("{}: {e}", ask.data.display()))?;
    let cable = lay()?;
    let key = dir.path().join("key");
    secret(&key).map_err(|e| format!("{}: {e}", key.display()))?;
    let key = key.to_string_lossy().into_owned();
    // Another host has another boot id; processes compare it to learn whether they share a kernel and memory.
    let boot = dir.path().join("boot_id");
    fs::write(&boot, "7d3a1a52-3a53-4ff3-a7c7-5f3f7b1b0f02\n").map_err(|e| format!("{}: {e}", boot.display()))?;
    let script = format!("mount --bind '{}' /proc/sys/kernel/random/boot_id && exec \"$@\"", boot.display());
    let there = ["ip", "netns", "exec", "far", "sh", "-c", &script, "sh"].map(str::to_owned);

    let hub = |within: &[String], arguments: &[&str]| Hub::start(&ask.tampu, dir.path(), within, arguments);
    let near = hub(&[], &[])?;
    // The figures are those of the bus; the example `encryption_cost` of the crate tampu-bus compares TLS with them.
    let _collector = hub(&there, &["--lan", &cable.listen, "--key-file", &key, "--no-encryption"])?;
    let peer = format!("{FAR}:{PORT}");
    let far = hub(&[], &["--roles", "node", "--peer", &peer, "--key-file", &key, "--no-encryption"])?;
    let sides = [near, far].map(|hub| Side { stage: Stage { run: hub.run(), dir: dir.path().to_owned() }, hub });

    let mut pairs = Vec::new();
    let threads = &ask.amount.threads;
    let rows = paper::rows();
    for row in rows.iter().filter(|row| row.place == Place::Client && row.kept() && threads.contains(&row.threads)) {
        let [near, far] = [&sides[0], &sides[1]].map(|side| side.row(ask, row));
        let pair = Pair { number: row.number, name: row.name(), threads: row.threads, near: near?, far: far? };
        let us = |seen: &Seen| seen.times.average_ns() / 1e3;
        eprintln!("{:>2} {}: {:.2} us here, {:.2} us there", pair.number, pair.name, us(&pair.near), us(&pair.far));
        pairs.push(pair);
    }
    let mut costs = Vec::new();
    for &threads in threads {
        let mut found = Costs { threads, near: Vec::new(), far: Vec::new() };
        for _ in 0..TURNS {
            found.near.push(sides[0].cost(ask, threads)?);
            found.far.push(sides[1].cost(ask, threads)?);
        }
        let [here, there] = found.cpu_ns();
        eprintln!("one-way call, {threads} threads: {here:.1} ns of processor here, {there:.1} ns there");
        costs.push(found);
    }
    Ok(Account { cable: cable.about.clone(), pairs, costs })
}

/// Writes a key for the two nodes, readable by its owner alone.
fn secret(path: &Path) -> std::io::Result<()> {
    OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?.write_all(b"a key of the bench\n")
}

/// The hub that receives a process's records.
struct Side {
    stage: Stage,
    hub: Hub,
}

impl Side {
    fn row(&self, ask: &Ask, row: &Row) -> Result<Seen, String> {
        let sink = self.stage.dir.join("text");
        let name = format!("bench-row-{}", row.number);
        let command = stage::program_command(row, &ask.amount, &sink, &name)?;
        let program::Account { times, .. } = self.stage.play(command, &sink)?;
        let lost = missing(times.calls, self.hub.kept(&name)?)?;
        Ok(Seen { times, lost })
    }

    fn cost(&self, ask: &Ask, threads: usize) -> Result<cost::Account, String> {
        let sink = self.stage.dir.join("text");
        let cost = cost::Ask { brief: true, ..cost::Ask::of(ours::NAME, threads, &ask.amount, &sink) };
        self.stage.play(stage::cost_command(&cost)?, &sink)
    }
}
