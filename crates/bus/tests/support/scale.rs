//! Measuring a scale test: many processes of one host at one node, as on a telescope's real-time machines. How long until each
//! knows all, and what they cost while nothing happens.
//!
//! The program that measures starts itself again for the node and every member: it says how with a function from [`Part`] to
//! a command, and has that command call [`take_part`].

use std::{
    fs,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use serde::Serialize;
use tampu_types::{Domain, Partition, SourceName, TopicName};

use tampu_bus::{
    Participant, Qos, QosTable, TypeTag,
    clock::Gate,
    connect::{Node, NodeSettings, Settings},
    run_dir::RunDir,
};

/// Role of a child process of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The node of the host.
    Node,
    /// One of this many members, each with one writer.
    Member {
        /// Number of the member.
        number: usize,
        /// Number of members.
        of: usize,
    },
}

/// Results of a measurement. Memory is the mean of the members', in bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Number of members.
    pub processes: usize,
    /// From the start of the first member until each knew all, in seconds.
    pub all_see_all_s: f64,
    /// A member's resident memory.
    pub rss: u64,
    /// A member's resident memory, what it shares with others divided among them.
    pub pss: u64,
    /// The node's resident memory.
    pub node_rss: u64,
    /// Sockets of all members together.
    pub sockets: usize,
    /// Sockets of the node.
    pub node_sockets: usize,
    /// Threads of one member.
    pub threads: usize,
    /// Share of one core that all members together take while nothing happens; 1 is a whole core.
    pub idle_cpu: f64,
    /// The same of the node.
    pub node_idle_cpu: f64,
}

/// Error of a scale test.
#[derive(Debug, thiserror::Error)]
pub enum ScaleError {
    /// A process could not be started or looked at.
    #[error("{doing}: {why}")]
    Io {
        /// The failed action.
        doing: String,
        /// The system's reason.
        why: io::Error,
    },
    /// A member did not see all the others in time.
    #[error("after {seconds} s {missing} of {of} processes had not seen all the others")]
    Incomplete {
        /// Length of the wait in seconds.
        seconds: u64,
        /// Number of members that had not.
        missing: usize,
        /// Number of members.
        of: usize,
    },
    /// The node or the bus refused.
    #[error("{0}")]
    Bus(String),
}

const DOMAIN: &str = "scale test";
/// Time until all members must have seen each other.
const PATIENCE: Duration = Duration::from_secs(120);
/// Line of a member that knows all.
const COMPLETE: &str = "complete";

fn failed(doing: &str) -> impl FnOnce(io::Error) -> ScaleError {
    let doing = doing.to_owned();
    |why| ScaleError::Io { doing, why }
}

fn refused(why: impl ToString) -> ScaleError {
    ScaleError::Bus(why.to_string())
}

fn config(directory: &Path) -> Result<Settings, ScaleError> {
    Ok(Settings::isolated(directory).in_domain(Domain::new(DOMAIN).map_err(refused)?))
}

/// Plays a part until the standard input ends; `directory` is the one given to [`measure`].
pub fn take_part(part: Part, directory: &Path) -> Result<(), ScaleError> {
    match part {
        Part::Node => {
            let _node = Node::start(NodeSettings::new(config(directory)?)).map_err(refused)?;
            wait_for_the_end();
        }
        Part::Member { number, of } => {
            let config = config(directory)?;
            let domain = config.domain.clone();
            let engine = config.open().map_err(refused)?;
            let source = SourceName::new(format!("scale test/{number}")).map_err(refused)?;
            let participant = Participant::on(engine, domain, source, QosTable::default()).map_err(refused)?;
            let topic = TopicName::new(format!("scale test/{number}")).map_err(refused)?;
            let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default());
            let _writer = writer.map_err(refused)?;
            let gate = Arc::new(Gate::default());
            let opened = gate.clone();
            let _watch = participant.watch_sources(move |_, _| opened.open());
            loop {
                let seen = gate.openings();
                if participant.sources().len() >= of {
                    break;
                }
                gate.wait_host(seen, PATIENCE);
            }
            println!("{COMPLETE}");
            wait_for_the_end();
        }
    }
    Ok(())
}

fn wait_for_the_end() {
    io::stdin().lines().for_each(drop);
}

/// Ends with us.
struct Running(Child);

impl Running {
    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a node and its members in an empty directory, waits until all see all, then lets them idle.
pub fn measure(
    directory: &Path,
    processes: usize,
    idle: Duration,
    start: impl Fn(Part) -> Command,
) -> Result<Measured, ScaleError> {
    let run = |part| start(part).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed("starting a process"));
    let node = Running(run(Part::Node)?);
    let dir = RunDir::at(directory).domain(&Domain::new(DOMAIN).map_err(refused)?).map_err(refused)?;
    let begin = Instant::now();
    while !dir.node_answers() {
        if begin.elapsed() > PATIENCE {
            return Err(refused("the node does not answer"));
        }
        Gate::default().wait_host(0, Duration::from_millis(5));
    }
    let (tell, told) = mpsc::channel();
    let begin = Instant::now();
    let mut members = Vec::with_capacity(processes);
    for number in 0..processes {
        let mut child = run(Part::Member { number, of: processes })?;
        let output = child.stdout.take();
        members.push(Running(child));
        let tell = tell.clone();
        // One waiting thread for each member. It ends when the member has all samples, or ends. Other lines belong to the member's
        // program.
        std::thread::spawn(move || {
            let mut lines = output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok));
            tell.send(lines.any(|line| line.ends_with(COMPLETE)))
        });
    }
    drop(tell);
    let mut complete = 0;
    while complete < processes {
        match told.recv_timeout(PATIENCE.saturating_sub(begin.elapsed())) {
            Ok(true) => complete += 1,
            Ok(false) => return Err(refused("a member ended before it had seen all the others")),
            Err(_) => {
                let missing = processes - complete;
                return Err(ScaleError::Incomplete { seconds: PATIENCE.as_secs(), missing, of: processes });
            }
        }
    }
    let all_see_all_s = begin.elapsed().as_secs_f64();
    // The work left over from starting does not count as idling.
    Gate::default().wait_host(0, Duration::from_secs(1));
    let pids: Vec<u32> = members.iter().map(Running::pid).collect();
    let before = (cpu(&pids)?, cpu(&[node.pid()])?);
    let watched = Instant::now();
    Gate::default().wait_host(0, idle);
    let after = (cpu(&pids)?, cpu(&[node.pid()])?);
    let seconds = watched.elapsed().as_secs_f64();
    let memory = pids.iter().map(|pid| memory(*pid)).collect::<Result<Vec<_>, _>>()?;
    let mean = |of: fn(&(u64, u64)) -> u64| memory.iter().map(of).sum::<u64>() / memory.len().max(1) as u64;
    let sockets = pids.iter().map(|pid| sockets(*pid)).collect::<Result<Vec<_>, _>>()?;
    let first = pids.first().copied().unwrap_or_else(|| node.pid());
    Ok(Measured {
        processes,
        all_see_all_s,
        rss: mean(|memory| memory.0),
        pss: mean(|memory| memory.1),
        node_rss: self::memory(node.pid())?.0,
        sockets: sockets.iter().sum(),
        node_sockets: self::sockets(node.pid())?,
        threads: entries(first, "task")?.len(),
        idle_cpu: (after.0 - before.0) / seconds,
        node_idle_cpu: (after.1 - before.1) / seconds,
    })
}

fn proc(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

fn text(pid: u32, file: &str) -> Result<String, ScaleError> {
    let path = proc(pid, file);
    fs::read_to_string(&path).map_err(failed(&path.display().to_string()))
}

fn entries(pid: u32, directory: &str) -> Result<Vec<PathBuf>, ScaleError> {
    let path = proc(pid, directory);
    let found = fs::read_dir(&path).map_err(failed(&path.display().to_string()))?;
    Ok(found.flatten().map(|entry| entry.path()).collect())
}

/// Seconds of processor time these processes have taken.
fn cpu(pids: &[u32]) -> Result<f64, ScaleError> {
    let mut ticks = 0_u64;
    for pid in pids {
        let stat = text(*pid, "stat")?;
        // The name in parentheses may contain any character, so fields are counted from the last parenthesis.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        ticks += fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64)
}

/// Resident and proportional memory in bytes.
fn memory(pid: u32) -> Result<(u64, u64), ScaleError> {
    let rollup = text(pid, "smaps_rollup")?;
    let of = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() * 1024
    };
    Ok((of("Rss:"), of("Pss:")))
}

fn sockets(pid: u32) -> Result<usize, ScaleError> {
    let is_socket = |path: &PathBuf| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
    Ok(entries(pid, "fd")?.iter().filter(|path| is_socket(path)).count())
}
