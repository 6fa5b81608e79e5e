//! A day of an observatory's log, as many records as asked for: 200 kinds of messages, 80 hosts, 300 processes, 800 components,
//! each kind of name as unevenly used as in real logs; messages hold numbers, addresses and identifiers; four in ten records
//! carry data. Times are slightly out of order. The same seed gives the same day.

use tampu_types::{
    BatchHeader, ClockState, Domain, Incarnation, Level, SourceName, Time,
    log_batch::{LogBatchBuilder, OriginId, OriginParts, RecordParts, TYPE_ID, VERSION},
};

const WORDS: &[&str] = &[
    "antenna",
    "mount",
    "pointing",
    "subreflector",
    "cryostat",
    "receiver",
    "correlator",
    "baseline",
    "phase",
    "delay",
    "band",
    "spectrum",
    "window",
    "calibration",
    "scan",
    "subscan",
    "array",
    "scheduler",
    "observation",
    "archive",
    "container",
    "component",
    "manager",
    "monitor",
    "property",
    "control",
    "alarm",
    "channel",
    "connection",
    "timeout",
    "retry",
    "sequence",
    "queue",
    "buffer",
    "overflow",
    "latency",
    "jitter",
    "clock",
    "drift",
    "lock",
    "unlock",
    "oscillator",
    "synthesizer",
    "temperature",
    "pressure",
    "humidity",
    "voltage",
    "current",
    "supply",
    "fan",
    "valve",
    "pump",
    "compressor",
    "helium",
    "vacuum",
    "encoder",
    "motor",
    "drive",
    "servo",
    "position",
    "azimuth",
    "elevation",
    "focus",
    "offset",
    "error",
    "failed",
    "succeeded",
    "completed",
    "started",
    "stopped",
    "initialized",
    "activated",
    "released",
    "acquired",
    "request",
    "reply",
    "method",
    "exception",
    "caught",
    "handler",
    "thread",
    "pool",
    "session",
    "client",
    "server",
    "socket",
    "stream",
    "packet",
    "frame",
    "dropped",
    "received",
    "bytes",
    "checksum",
    "mismatch",
    "invalid",
    "value",
    "range",
    "limit",
    "threshold",
    "nominal",
];

/// Midnight at the day's beginning.
pub const DAY: i64 = 1_772_323_200_000_000_000;
const DAY_NS: i64 = 86_400_000_000_000;
const PROCESSES: usize = 300;
const THREADS: usize = 64;
/// Records of one batch.
const BATCH: usize = 100;

/// Random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Picks places, the first ones far more often than the last.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize, steepness: f64) -> Zipf {
        let mut sum = 0.0;
        let mut sums: Vec<f64> = (1..=count)
            .map(|rank| {
                sum += (rank as f64).powf(-steepness);
                sum
            })
            .collect();
        sums.iter_mut().for_each(|share| *share /= sum);
        Zipf(sums)
    }

    fn pick(&self, random: &mut Random) -> usize {
        let share = random.share();
        self.0.partition_point(|&sum| sum < share).min(self.0.len() - 1)
    }
}

struct Template {
    /// Words; those in braces are filled in.
    parts: Vec<&'static str>,
    level: Level,
    file: String,
    routine: String,
    line: u32,
}

/// One process and the batch it is filling.
struct Process {
    name: String,
    life: Incarnation,
    builder: LogBatchBuilder,
    count: usize,
    sent: u64,
    numbers: [u64; THREADS],
}

/// A sample with the header under which it travels.
pub struct Sample {
    pub header: BatchHeader,
    pub bytes: Vec<u8>,
    pub received: Time,
}

pub struct Day {
    random: Random,
    templates: Vec<Template>,
    hosts: Vec<String>,
    sources: Vec<String>,
    processes: Vec<Process>,
    domain: Domain,
    template_of: Zipf,
    host_of: Zipf,
    process_of: Zipf,
    thread_of: Zipf,
    context_of: Zipf,
    source_of: Zipf,
    made: u64,
    total: u64,
}

impl Day {
    pub fn new(domain: &Domain, total: u64) -> Day {
        let mut random = Random(42);
        let word = |random: &mut Random| WORDS[random.below(WORDS.len())];
        let capital = |text: &str| text[..1].to_uppercase() + &text[1..];
        let templates = (0..200)
            .map(|_| {
                let mut parts = Vec::new();
                for _ in 0..4 + random.below(9) {
                    parts.push(word(&mut random));
                    if random.share() < 0.33 {
                        parts.push(["{i}", "{f}", "{x}", "{d}", "{u}"][random.below(5)]);
                    }
                }
                let steps = [
                    (0.08, Level::Trace),
                    (0.30, Level::Debug),
                    (0.65, Level::Info),
                    (0.83, Level::Notice),
                    (0.93, Level::Warning),
                    (0.98, Level::Error),
                    (0.995, Level::Critical),
                    (1.0, Level::Alert),
                ];
                let share = random.share();
                let level = steps.iter().find(|(most, _)| share <= *most).map_or(Level::Info, |(_, level)| *level);
                let ending = ["Impl.cpp", "Component.java", ".py"][random.below(3)];
                let verb = ["get", "set", "run", "check", "handle"][random.below(5)];
                Template {
                    parts,
                    level,
                    file: format!("{}{ending}", WORDS[random.below(80)]),
                    routine: format!("{verb}{}", capital(WORDS[random.below(60)])),
                    line: 20 + random.below(2480) as u32,
                }
            })
            .collect();
        let hosts = [("ant-abm-", 50), ("corr-node-", 16), ("gas-", 6), ("gns-", 4), ("arch-", 4)];
        let hosts = hosts.iter().flat_map(|(name, count)| (1..=*count).map(move |n| format!("{name}{n:02}.obs.local"))).collect();
        let mut sources = Vec::new();
        for kind in ["DV", "DA", "PM", "CM"] {
            for number in 1..=25 {
                sources.extend(WORDS[..8].iter().map(|word| format!("CONTROL/{kind}{number:02}/{}", capital(word))));
            }
        }
        let processes = (0..PROCESSES)
            .map(|number| {
                let kind = ["cppContainer", "javaContainer", "pyContainer", "gateway"][random.below(4)];
                Process {
                    name: format!("{}/{kind}-{number:03}", word(&mut random).to_uppercase()),
                    life: Incarnation {
                        boot: 0x5eed,
                        pid: number as u32,
                        start: 1_772_000_000_000_000_000 + number as u64 * 7919,
                    },
                    builder: LogBatchBuilder::new(),
                    count: 0,
                    sent: 0,
                    numbers: [0; THREADS],
                }
            })
            .collect();
        Day {
            random,
            templates,
            hosts,
            sources,
            processes,
            domain: domain.clone(),
            template_of: Zipf::new(200, 1.1),
            host_of: Zipf::new(80, 0.7),
            process_of: Zipf::new(8, 1.0),
            thread_of: Zipf::new(THREADS, 0.9),
            context_of: Zipf::new(40, 1.1),
            source_of: Zipf::new(800, 0.6),
            made: 0,
            total,
        }
    }

    /// The next samples, of about so many records; none at the end of the day.
    pub fn next(&mut self, records: u64) -> Result<Vec<Sample>, Box<dyn std::error::Error>> {
        let mut samples = Vec::new();
        let end = (self.made + records).min(self.total);
        while self.made < end {
            self.record(&mut samples)?;
            self.made += 1;
        }
        if self.made == self.total {
            for process in 0..PROCESSES {
                self.send(process, Time(DAY + DAY_NS), &mut samples)?;
            }
        }
        Ok(samples)
    }

    fn record(&mut self, samples: &mut Vec<Sample>) -> Result<(), Box<dyn std::error::Error>> {
        let random = &mut self.random;
        let base = DAY + (i128::from(DAY_NS) * i128::from(self.made) / i128::from(self.total)) as i64;
        let time = Time(base + random.below(400_000_000) as i64 - 200_000_000);
        let template = &self.templates[self.template_of.pick(random)];
        let host = self.host_of.pick(random);
        let process_number = (host * 37 + self.process_of.pick(random) * 11) % PROCESSES;
        let thread = self.thread_of.pick(random);
        let message = message(template, random);
        let level = if random.share() < 2e-6 { Level::Emergency } else { template.level };
        let thread_name = format!("worker-{thread}");
        let context = format!("CTX_{}", WORDS[self.context_of.pick(random)]);
        let audience = if random.share() < 0.1 { "Operator" } else { "Developer" };
        let process = &mut self.processes[process_number];
        let origin: OriginId = process.builder.origin(&OriginParts {
            incarnation: Some(process.life),
            file: &template.file,
            line: Some(template.line),
            routine: &template.routine,
            host: &self.hosts[host],
            process: &process.name,
            thread: &thread_name,
            context: &context,
            source_object: &self.sources[self.source_of.pick(random)],
            audiences: &[audience],
            ..OriginParts::default()
        });
        let number = process.numbers[thread];
        process.numbers[thread] += 1;
        let record = RecordParts { time, ring: thread as u32, number, level, message: &message, ..RecordParts::default() };
        let values = (random.share() < 0.4).then(|| {
            let of = random.next();
            [
                ("scan", (of % 4000).to_string()),
                ("exec", format!("X{:x}", of >> 20 & 0xffff)),
                ("ant", format!("DV{:02}", of % 25 + 1)),
            ]
        });
        let data = values.iter().flatten().map(|(name, value)| (*name, value.as_str()));
        process.builder.push(origin, &record, data)?;
        process.count += 1;
        if process.count == BATCH {
            self.send(process_number, Time(base + 1_000_000_000), samples)?;
        }
        Ok(())
    }

    fn send(&mut self, number: usize, received: Time, samples: &mut Vec<Sample>) -> Result<(), Box<dyn std::error::Error>> {
        let process = &mut self.processes[number];
        if process.count == 0 {
            return Ok(());
        }
        let header = BatchHeader {
            domain: self.domain.clone(),
            source: SourceName::new(process.name.clone())?,
            incarnation: process.life,
            stream: 0,
            first: process.sent,
            count: 1,
            type_id: TYPE_ID,
            type_version: VERSION,
            acquired: received,
            sent: received,
            clock: ClockState::Synchronised,
            tai_offset: 37,
            flags: 0,
        };
        process.count = 0;
        process.sent += 1;
        samples.push(Sample { header, bytes: process.builder.finish(), received });
        Ok(())
    }
}

fn message(template: &Template, random: &mut Random) -> String {
    let mut text = String::with_capacity(128);
    for part in &template.parts {
        if !text.is_empty() {
            text.push(' ');
        }
        let value = random.next();
        match *part {
            "{i}" => text.push_str(&(value % 100_000).to_string()),
            "{f}" => text.push_str(&format!("{:.4}", (value % 1_000_003) as f64 / 317.0)),
            "{x}" => text.push_str(&format!("0x{:08x}", value as u32)),
            "{d}" => text.push_str(&format!("DV{:02}/{}", value % 25 + 1, WORDS[(value >> 5) as usize % WORDS.len()])),
            "{u}" => {
                text.push_str(&format!(
                    "uid://A{:03x}/X{:06x}/X{:x}",
                    value >> 20 & 0xfff,
                    value >> 4 & 0xff_ffff,
                    value % 0x1000
                ));
            }
            word => text.push_str(word),
        }
    }
    text[..1].make_ascii_uppercase();
    text
}
