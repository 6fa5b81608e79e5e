//! The arena of the cases: creates processes, stops and kills them, lets time pass.

use std::time::Duration;

use tampu_bus::{QosPatch, ReaderState};

use super::{
    command::{Command, How, Look, Pace, Ranges, Reply, Sources, Status, Wish, Wrote},
    log::Log,
};

/// The arena as a case needs it. An engine that has one is held to every promise of the bus.
pub trait Arena: Sized {
    /// Handle of a process.
    type Process: Process;

    /// A new place with nobody in it.
    fn new() -> Self;

    /// Starts a process.
    fn start(&self, host: &str, domain: &str, source: &str, patches: Vec<QosPatch>) -> Self::Process;

    /// Lets time pass until it is so; false if it is not within the limit. Looking may take time itself, so the limit of an
    /// arena that lives by the host's clock may be longer than what is promised.
    fn until(&self, is_so: impl FnMut() -> bool, limit: Duration) -> bool;

    /// Time allowed for something that is promised within `promised`: on a loaded machine, longer.
    fn allowed(&self, promised: Duration) -> Duration;

    /// Now, as the processes' clocks show it, ns of UTC.
    fn utc(&self) -> i64;
}

/// A place where messages can be lost and hosts be cut; its hosts share no memory.
pub trait Faulty: Arena {
    /// Cuts two hosts from each other.
    fn cut(&self, one: &str, other: &str);

    /// Joins them again.
    fn heal(&self, one: &str, other: &str);

    /// From now on links lose, repeat and reorder.
    fn disturb(&self);

    /// Puts a node on this host, which says that the host can be reached.
    fn serve(&self, host: &str);

    /// Steps the UTC clock of a process.
    fn step_clock(&self, process: &Self::Process, ns: i64);

    /// Loses every batch from the host from now on, and nothing else; `None` ends it.
    fn lose_data_from(&self, host: Option<&'static str>);
}

/// A process of a case.
pub trait Process {
    /// Does what it is told.
    fn call(&mut self, command: Command) -> Reply;
    /// Stops the process (SIGSTOP).
    fn stop(&mut self);
    /// Lets the process continue (SIGCONT).
    fn resume(&mut self);
    /// Kills the process (SIGKILL).
    fn kill(&mut self);
}

/// A case's own domain.
pub const DOMAIN: &str = "conformance";

/// Far longer than anything takes that happens at all.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A case in progress.
pub struct Scene<A: Arena> {
    pub arena: A,
}

/// A process, by its verbs.
pub struct Peer<P: Process>(pub P);

impl<A: Arena> Scene<A> {
    pub fn new() -> Scene<A> {
        Scene { arena: A::new() }
    }

    /// A process on the host `here`.
    pub fn join(&self, source: &str) -> Peer<A::Process> {
        self.join_at("here", source)
    }

    pub fn join_at(&self, host: &str, source: &str) -> Peer<A::Process> {
        Peer(self.arena.start(host, DOMAIN, source, Vec::new()))
    }

    /// Waits for something that must happen.
    #[track_caller]
    pub fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        self.within(what, PATIENCE, is_so);
    }

    /// The same for something that must happen within a time.
    #[track_caller]
    pub fn within(&self, what: &str, limit: Duration, is_so: impl FnMut() -> bool) {
        assert!(self.arena.until(is_so, limit), "'{what}' did not happen within {limit:?}");
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        self.arena.until(|| false, time);
    }

    /// Waits until a writer is heard by so many readers.
    #[track_caller]
    pub fn matched(&self, peer: &mut Peer<A::Process>, writer: usize, readers: usize) {
        let mut last = Vec::new();
        let is_so = self.arena.until(
            || {
                last = peer.look(writer).readers;
                last.iter().filter(|reader| !reader.is(ReaderState::Gone)).count() == readers
            },
            PATIENCE,
        );
        assert!(is_so, "expected {readers} readers, the writer knows of {last:?}");
    }

    /// Waits until the only stream of the topic has been given or told up to there, and returns its account.
    #[track_caller]
    pub fn settled(&self, peer: &mut Peer<A::Process>, reader: usize, topic: &str, to: u64) -> super::log::Account {
        let is_so = self.arena.until(|| peer.log(reader).topic(topic).is_settled(to), PATIENCE);
        let log = peer.log(reader);
        assert!(is_so, "{topic} was not settled up to {to}: {:?}, log {:?}", log.topic(topic), log.0);
        log.topic(topic)
    }
}

impl<P: Process> Peer<P> {
    pub fn call(&mut self, command: Command) -> Reply {
        self.0.call(command)
    }

    pub fn stop(&mut self) {
        self.0.stop();
    }

    pub fn resume(&mut self) {
        self.0.resume();
    }

    pub fn kill(&mut self) {
        self.0.kill();
    }

    #[track_caller]
    fn opened(&mut self, command: Command) -> usize {
        match self.0.call(command) {
            Reply::Opened(number) => number,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn done(&mut self, command: Command) {
        match self.0.call(command) {
            Reply::Done => {}
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn writer(&mut self, topic: &str) -> usize {
        self.writer_with(topic, &[], QosPatch::default())
    }

    #[track_caller]
    pub fn writer_with(&mut self, topic: &str, partition: &[&str], patch: QosPatch) -> usize {
        let partition = partition.iter().map(|&name| name.to_owned()).collect();
        self.opened(Command::OpenWriter { topic: topic.to_owned(), partition, patch })
    }

    #[track_caller]
    pub fn reader(&mut self, topics: &str) -> usize {
        self.reader_with(Wish::of(topics))
    }

    #[track_caller]
    pub fn reader_with(&mut self, wish: Wish) -> usize {
        self.opened(Command::OpenReader(wish))
    }

    #[track_caller]
    pub fn write(&mut self, writer: usize, count: u64, size: usize) -> Wrote {
        self.write_how(writer, count, size, How::Plain)
    }

    #[track_caller]
    pub fn write_how(&mut self, writer: usize, count: u64, size: usize, how: How) -> Wrote {
        match self.0.call(Command::Write { writer, count, size, how }) {
            Reply::Wrote(wrote) => wrote,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn flush(&mut self, writer: usize, timeout: Duration) -> Ranges {
        match self.0.call(Command::Flush { writer, timeout_ms: timeout.as_millis() as u64 }) {
            Reply::Receipt(ranges) => ranges,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn look(&mut self, writer: usize) -> Look {
        match self.0.call(Command::Look { writer }) {
            Reply::Look(look) => look,
            other => panic!("{other:?}"),
        }
    }

    /// State of the reader of this source.
    #[track_caller]
    pub fn status(&mut self, writer: usize, source: &str) -> Status {
        let look = self.look(writer);
        let found = look.readers.iter().find(|reader| reader.source == source).cloned();
        found.unwrap_or_else(|| panic!("no reader of {source} in {:?}", look.readers))
    }

    #[track_caller]
    pub fn log(&mut self, reader: usize) -> Log {
        match self.0.call(Command::Log { reader }) {
            Reply::Log(log) => Log(log),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn pace(&mut self, reader: usize, pace: Pace) {
        self.done(Command::Pace { reader, pace });
    }

    #[track_caller]
    pub fn ask(&mut self, service: &str, question: &str, timeout: Duration) -> Vec<Result<String, String>> {
        let (service, question) = (service.to_owned(), question.to_owned());
        match self.0.call(Command::Ask { service, question, timeout_ms: timeout.as_millis() as u64 }) {
            Reply::Answers(answers) => answers,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn answer(&mut self, service: &str, parts: &[&str]) {
        let parts = parts.iter().map(|&part| part.to_owned()).collect();
        self.done(Command::Answer { service: service.to_owned(), parts });
    }

    /// Processes on the bus, and those that came and went.
    #[track_caller]
    pub fn sources(&mut self) -> Sources {
        match self.call(Command::Sources) {
            Reply::Sources(sources) => sources,
            other => panic!("{other:?}"),
        }
    }
}
