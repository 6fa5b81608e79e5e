//! A host as it is in operation, in this process: a node, a collector with its archive, and who looks after the log rings of other
//! processes.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tampu_archive::{Archive, LocalArchive, Options, Stop, query::Query};
use tampu_bus::{
    Participant, QosTable,
    connect::{Node, NodeSettings, Settings},
    run_dir::RunDir,
};
use tampu_log::{
    collector::{Collector, CollectorOptions},
    recovery::{News, RingKeeper, dead_in},
};
use tampu_types::{Domain, LogRecord, SourceName};
use tampu_workers::OnPanic;

/// Longest wait of a test for an expected event.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub struct Host {
    pub dir: tempfile::TempDir,
    pub rings: PathBuf,
    pub archive: Arc<LocalArchive>,
    pub news: Arc<Mutex<Vec<News>>>,
    config: Settings,
    // Dropped in this order.
    keeper: Option<RingKeeper>,
    collector: Option<Collector>,
    _node: Node,
}

impl Host {
    pub fn start() -> Host {
        let dir = tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp").unwrap();
        let run = dir.path().join("run");
        let domain = Domain::new("victims").unwrap();
        let config = Settings::isolated(&run).in_domain(domain.clone());
        let node = Node::start(NodeSettings::new(config.clone())).unwrap();
        let archive = Arc::new(LocalArchive::open(dir.path().join("data"), Options::new(domain.clone())).unwrap());
        let options = CollectorOptions::new(dir.path().join("rejected"));
        let collector = Collector::start(join(&config, "collector"), archive.clone(), options).unwrap();
        let rings = RunDir::at(&run).domain(&domain).unwrap().log_rings();
        let mut host =
            Host { dir, rings, archive, news: Arc::default(), config, keeper: None, collector: Some(collector), _node: node };
        host.keep_rings();
        host
    }

    fn keep_rings(&mut self) {
        let news = self.news.clone();
        let tell = move |_: &Path, told: News| news.lock().unwrap().push(told);
        self.keeper =
            Some(RingKeeper::start(join(&self.config, "keeper"), self.rings.clone(), OnPanic::ReportOnly, tell).unwrap());
    }

    /// A program that logs here.
    pub fn command(&self, program: &Command) -> Command {
        let mut command = Command::new(program.get_program());
        command.args(program.get_args());
        command.env("TAMPU_RUN_DIR", self.dir.path().join("run")).env("TAMPU_DOMAIN", self.config.domain.as_str());
        command
    }

    /// Waits for something.
    pub fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < PATIENCE, "{what}: not in time; told: {:?}", self.news.lock().unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// All records that are kept.
    pub fn records(&self) -> Vec<LogRecord> {
        let mut records = Vec::new();
        self.each(|record| records.push(record.clone()));
        records
    }

    /// Looks at all records that are kept.
    pub fn each(&self, mut take: impl FnMut(&LogRecord)) {
        let all = &mut |found: tampu_archive::Found<'_>| {
            take(found.record);
            true
        };
        self.archive.search(&Query::default(), &Stop::default(), all).unwrap();
    }

    /// Waits until nothing of the dead is left, then ends in order.
    pub fn settle(&mut self) {
        self.until("the rings of the dead", || dead_in(&self.rings).is_empty());
        drop((self.keeper.take(), self.collector.take()));
        assert!(self.archive.flush(PATIENCE));
    }
}

fn join(config: &Settings, name: &str) -> Participant {
    let engine = config.open().unwrap();
    Participant::on(engine, config.domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
}
