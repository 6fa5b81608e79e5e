//! Measuring what a node and another process keep of processes that live shortly beside them.
//!
//! The program that measures starts itself again for each part: it says how with a function from [`Part`] to a command, and
//! has that command call [`take_part`].

use std::{
    error::Error,
    fs,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use tampu_bus::{
    Event, Participant, Qos, ReaderQos, TypeTag, Writer,
    clock::Gate,
    connect::{Node, NodeSettings, Settings},
    engine::Guard,
};
use tampu_types::{Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

/// Error of a measurement.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Role of a child process of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The node of the host.
    Node,
    /// The process that stays: it reads what lives write, and writes for them.
    Observer,
    /// A process that has written and read a sample, and then ends.
    Life,
}

impl Part {
    /// Word for the part, by which [`Part::of`] finds it.
    pub fn word(self) -> &'static str {
        match self {
            Part::Node => "node",
            Part::Observer => "observer",
            Part::Life => "life",
        }
    }

    /// Returns the part with this word.
    pub fn of(word: &str) -> Option<Part> {
        [Part::Node, Part::Observer, Part::Life].into_iter().find(|part| part.word() == word)
    }
}

/// Memory and files that a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Resident memory that is its own, in KiB.
    pub kib: u64,
    /// Number of open files.
    pub files: usize,
}

/// Memory and files held after a number of lives.
#[derive(Debug, Clone, PartialEq)]
pub struct After {
    /// Number of the lives.
    pub lives: u64,
    /// Held by the node.
    pub node: Held,
    /// Held by the process that stays.
    pub observer: Held,
    /// Entries in the run-time directory.
    pub entries: usize,
}

/// Lives that run beside each other.
const AT_ONCE: u64 = 4;
/// Time after which the node has removed the files of killed processes.
const REST: Duration = Duration::from_secs(7);

/// Plays a part until the standard input ends; `directory` is the one given to [`measure`].
pub fn take_part(part: Part, directory: &Path) -> Result<(), Failure> {
    let settings = Settings::isolated(directory);
    let join = |name: &str| -> Result<Participant, Failure> { Ok(Participant::open(settings.clone(), SourceName::new(name)?)?) };
    match part {
        Part::Node => {
            let _node = Node::start(NodeSettings::new(settings))?;
            stay()
        }
        Part::Observer => {
            let participant = join("observer")?;
            let _state = state(&participant)?;
            let writer = writer(&participant, "for lives")?;
            let mut reader = participant.reader(&TopicFilter::new("from lives")?, &PartitionFilter::All, ReaderQos::default())?;
            std::thread::spawn(move || {
                loop {
                    if let Some(Event::Sample(_)) = reader.next(Duration::from_secs(1)) {
                        // A life that misses it asks again.
                        let _ = writer.write(b"heard");
                    }
                }
            });
            stay()
        }
        Part::Life => {
            let participant = join("life")?;
            let _state = state(&participant)?;
            let mut reader = participant.reader(&TopicFilter::new("for lives")?, &PartitionFilter::All, ReaderQos::default())?;
            let writer = writer(&participant, "from lives")?;
            writer.write(b"alive")?;
            while !matches!(reader.next(Duration::from_secs(1)), Some(Event::Sample(_))) {
                writer.write(b"alive")?;
            }
            stay()
        }
    }
}

/// A service that the process that stays has too, as every process that logs has that of its levels.
fn state(participant: &Participant) -> Result<Guard, Failure> {
    Ok(participant.answer(&TopicName::new("lives/state")?, Arc::new(|_| ()))?)
}

fn writer(participant: &Participant, topic: &str) -> Result<Writer, Failure> {
    // Few samples are kept for late readers, so that their memory does not count.
    let qos = Qos { keep: 4 << 10, ..Qos::default() };
    Ok(participant.writer(&TopicName::new(topic)?, &Partition::everybody(), TypeTag::OCTETS, qos)?)
}

/// Line of a part that does its work. The test harness writes words of its own before it.
const READY: &str = ">ready";

fn stay() -> Result<(), Failure> {
    let mut output = io::stdout();
    writeln!(output, "\n{READY}")?;
    output.flush()?;
    io::stdin().lines().for_each(drop);
    Ok(())
}

/// Ends in order when it is dropped.
struct Running {
    child: Child,
    _output: BufReader<ChildStdout>,
}

impl Running {
    fn start(mut command: Command) -> Result<Running, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        while !line.starts_with(READY) {
            line.clear();
            if output.read_line(&mut line)? == 0 {
                return Err("a part has ended".into());
            }
        }
        Ok(Running { child, _output: output })
    }

    fn held(&self) -> Result<Held, Failure> {
        let process = format!("/proc/{}", self.child.id());
        let status = fs::read_to_string(format!("{process}/status"))?;
        let kib = status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.split_whitespace().next()?.parse().ok());
        Ok(Held { kib: kib.ok_or("no RssAnon")?, files: fs::read_dir(format!("{process}/fd"))?.count() })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn entries(directory: &Path) -> usize {
    let found = fs::read_dir(directory).into_iter().flatten().flatten();
    found.map(|entry| 1 + if entry.path().is_dir() { entries(&entry.path()) } else { 0 }).sum()
}

/// Starts a node and the process that stays in an empty directory, and lets so many others live, in steps. Calls `seen` at
/// the beginning and after each step, and ends early when it returns false.
pub fn measure(
    directory: &Path,
    (lives, steps): (u64, u64),
    kill: bool,
    start: impl Fn(Part) -> Command + Sync,
    mut seen: impl FnMut(After) -> bool,
) -> Result<(), Failure> {
    let node = Running::start(start(Part::Node))?;
    let observer = Running::start(start(Part::Observer))?;
    let each = (lives / steps.max(1)).max(1);
    let live = &|| -> Result<(), Failure> {
        let mut life = Running::start(start(Part::Life))?;
        if kill {
            life.child.kill()?;
        }
        Ok(())
    };
    for step in 0..=steps {
        if step > 0 {
            std::thread::scope(|scope| {
                let number = |worker| each / AT_ONCE + u64::from(worker < each % AT_ONCE);
                let workers: Vec<_> =
                    (0..AT_ONCE).map(|worker| scope.spawn(move || (0..number(worker)).try_for_each(|_| live()))).collect();
                workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| Failure::from("a worker panicked"))?)
            })?;
            Gate::default().wait_host(0, REST);
        }
        let (node, observer) = (node.held()?, observer.held()?);
        if !seen(After { lives: step * each, node, observer, entries: entries(directory) }) {
            break;
        }
    }
    Ok(())
}
