//! The gateway beside the bus, in the same run: rates, delays, and what idle sessions cost.
//!
//! `bench-gateway` starts `tampu up` from its own directory. A process writes numbered samples; another reads them on
//! the bus or in a session of the gateway, by turns, and checks that each came once and in order.

use std::{
    fs,
    io::{BufRead, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use clap::{Parser, ValueEnum};
use serde::Serialize;
use tampu_benches::{
    clock::monotonic,
    process::cpu_of,
    table::{self, Table},
};
use tampu_bus::{Event, Participant, Qos, ReaderQos, TypeTag, connect::Settings, gateway::GatewayClient, run_dir::RunDir};
use tampu_types::{
    BatchHeader, Domain, Partition, PartitionFilter, TopicFilter, TopicName,
    gateway::{
        Kind,
        frame::{put_sample, samples},
        messages::{Declare, Hello, Open, Receipt},
    },
};

/// Credit that a client gives ahead, in bytes.
const CREDIT: u64 = 8 << 20;
/// Samples in one PUBLISH.
const TOGETHER: u64 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// A participant of the bus.
    Bus,
    /// A session of the gateway.
    Gateway,
}

#[derive(Debug, Parser)]
#[command(about = "The gateway beside the bus: rates, delays and the cost of idle sessions")]
struct Options {
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Number of idle sessions.
    #[arg(long, default_value_t = 500)]
    sessions: usize,
    /// Prints rows as JSON, one a line.
    #[arg(long)]
    json: bool,
    /// Runs as a writer on this way, for the bench itself.
    #[arg(long, hide = true)]
    write: Option<Way>,
    #[arg(long, hide = true)]
    run: Option<PathBuf>,
    #[arg(long, hide = true, default_value_t = 92)]
    size: usize,
    /// Time between two samples in us; 0 as fast as it can.
    #[arg(long, hide = true, default_value_t = 0)]
    pause_us: u64,
}

#[derive(Serialize)]
struct Row {
    what: String,
    written: &'static str,
    read: &'static str,
    rate: f64,
    p50_us: f64,
    p99_us: f64,
    lost: u64,
}

type Done<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Done<()> {
    let options = Options::parse();
    if let (Some(way), Some(run)) = (options.write, &options.run) {
        return write(&options, way, run);
    }
    let place = tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp")?;
    let hub = Hub::start(place.path())?;
    let run = place.path().join("run");
    let mut rows = Vec::new();
    for (size, pause_us) in [(92, 0), (4096, 0), (92, 1000)] {
        for (written, read) in [(Way::Bus, Way::Bus), (Way::Bus, Way::Gateway), (Way::Gateway, Way::Bus)] {
            rows.push(measure(&options, &run, (written, read), size, pause_us)?);
        }
    }
    let idle = idle(&options, &run, &hub)?;
    if options.json {
        for row in &rows {
            println!("{}", serde_json::to_string(row)?);
        }
        println!("{}", serde_json::json!({"what": "idle", "sessions": options.sessions, "percent_of_a_core": idle}));
        return Ok(());
    }
    let mut table = Table::new(&["samples", "written", "read", "samples/s", "p50, us", "p99, us", "lost"]);
    for row in &rows {
        table.row(vec![
            row.what.clone(),
            row.written.to_owned(),
            row.read.to_owned(),
            table::count(row.rate),
            format!("{:.0}", row.p50_us),
            format!("{:.0}", row.p99_us),
            row.lost.to_string(),
        ]);
    }
    print!("{}", table.render());
    println!("{} idle sessions with a subscription each: {idle:.2} % of a core", options.sessions);
    Ok(())
}

/// A hub of this bench. It ends with the bench.
struct Hub(Child);

impl Hub {
    fn start(place: &Path) -> Done<Hub> {
        let program = std::env::current_exe()?.with_file_name("tampu");
        let mut child = Command::new(program)
            .args(["up", "--domain", "bench", "--data"])
            .arg(place.join("data"))
            .env("TAMPU_RUN_DIR", place.join("run"))
            .env("TAMPU_BOOK_LISTEN", "127.0.0.1:0")
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no standard error")?).lines();
        let hub = Hub(child);
        if !lines.by_ref().map_while(Result::ok).any(|line| line.contains("is up")) {
            return Err("the hub has not started".into());
        }
        std::thread::spawn(move || lines.for_each(drop));
        Ok(hub)
    }

    /// Returns the process of the gateway.
    fn gateway(&self) -> Done<u32> {
        let pid = self.0.id();
        // Each thread has the list of the processes that it started.
        let threads = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
        let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let children = lists.collect::<Vec<_>>().join(" ");
        let is_gateway = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.windows(8).any(|part| part == b"\0gateway"))
        };
        let found = children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(is_gateway);
        found.ok_or_else(|| "the hub has no process of the gateway".into())
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.0.id())
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

fn join(run: &Path, name: &str) -> Done<Participant> {
    Ok(Participant::open(Settings::new(Domain::new("bench")?, RunDir::at(run)), name.parse()?)?)
}

fn client(run: &Path, name: &str) -> Done<GatewayClient> {
    let hello = Hello { source: name.into(), ..Hello::default() };
    Ok(GatewayClient::connect(&run.join("bench/gateway.sock"), hello)?)
}

/// Writes samples: number, time, and zeros.
fn write(options: &Options, way: Way, run: &Path) -> Done<()> {
    let mut sample = vec![0u8; options.size.max(16)];
    let mut fill = |number: u64| {
        sample[..8].copy_from_slice(&number.to_le_bytes());
        sample[8..16].copy_from_slice(&monotonic().to_le_bytes());
        sample.clone()
    };
    let length = Duration::from_secs_f64(options.seconds);
    let pause = Duration::from_micros(options.pause_us);
    let mut number = 0;
    match way {
        Way::Bus => {
            let participant = join(run, "writer")?;
            // A measured rate is one that the reader keeps up with.
            let second = Duration::from_secs(1);
            let qos = Qos { max_wait: second, wait_period: second, ..Qos::default() };
            let topic = TopicName::new("bench/data")?;
            let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, qos)?;
            while writer.readers().is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let begun = Instant::now();
            while begun.elapsed() < length {
                writer.write(&fill(number))?;
                number += 1;
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
            writer.flush(Duration::from_secs(10));
        }
        Way::Gateway => {
            let mut client = client(run, "writer")?;
            let declare = Declare { topic: Some("bench/data".into()), ..Declare::default() };
            client.send_json(Kind::Declare, 1, &declare)?;
            // The reader is there before the writer; the first receipt shows it.
            let mut body = Vec::new();
            let begun = Instant::now();
            while begun.elapsed() < length {
                body.clear();
                let together = if pause.is_zero() { TOGETHER } else { 1 };
                for _ in 0..together {
                    put_sample(&mut body, &fill(number));
                    number += 1;
                }
                client.send(Kind::Publish, 1, 1, &body)?;
                while client.next(Duration::ZERO)?.is_some() {}
                std::thread::sleep(pause);
            }
            let until = Instant::now() + Duration::from_secs(10);
            while Instant::now() < until {
                let Some(frame) = client.next(Duration::from_secs(1))? else { continue };
                if frame.kind == Kind::Receipt {
                    let receipt: Receipt = frame.json()?;
                    if receipt.delivered.is_some_and(|delivered| delivered.0 == number) {
                        break;
                    }
                }
            }
            client.bye()?;
        }
    }
    println!("{number}");
    std::io::stdout().flush()?;
    Ok(())
}

/// Samples that a reader has seen.
#[derive(Default)]
struct Seen {
    next: u64,
    lost: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    delays: Vec<u64>,
}

impl Seen {
    fn sample(&mut self, sample: &[u8]) {
        let word = |at: usize| sample.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes);
        let number = word(0);
        self.lost += number.abs_diff(self.next);
        self.next = number + 1;
        self.delays.push(monotonic().saturating_sub(word(8)));
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
    }
}

fn measure(options: &Options, run: &Path, (written, read): (Way, Way), size: usize, pause_us: u64) -> Done<Row> {
    let begin = || -> Done<Child> {
        let name = |way| if way == Way::Bus { "bus" } else { "gateway" };
        Ok(Command::new(std::env::current_exe()?)
            .args(["--write", name(written), "--size", &size.to_string(), "--pause-us", &pause_us.to_string()])
            .args(["--seconds", &options.seconds.to_string(), "--run"])
            .arg(run)
            .stdout(Stdio::piped())
            .spawn()?)
    };
    let mut seen = Seen::default();
    let mut total = None;
    let mut writer;
    match read {
        Way::Bus => {
            let participant = join(run, "reader")?;
            let topics = TopicFilter::new("bench/*")?;
            let mut reader = participant.reader(&topics, &PartitionFilter::All, ReaderQos::default())?;
            writer = begin()?;
            while total.is_none_or(|total| seen.next < total) {
                match reader.next(Duration::from_millis(200)) {
                    Some(Event::Sample(sample)) => sample.payload.with(|bytes| seen.sample(bytes))?,
                    Some(_) => {}
                    None if total.is_some() => break,
                    None => total = ended(&mut writer)?,
                }
            }
        }
        Way::Gateway => {
            let mut client = client(run, "reader")?;
            let open = Open { topics: vec!["bench/*".into()], credit: Some(CREDIT), ..Open::default() };
            client.send_json(Kind::Open, 1, &open)?;
            writer = begin()?;
            let (mut spent, mut granted) = (0, CREDIT);
            while total.is_none_or(|total| seen.next < total) {
                match client.next(Duration::from_millis(200))? {
                    Some(frame) if frame.kind == Kind::Data => {
                        spent += frame.body.len() as u64;
                        let (_, body) = BatchHeader::decode(frame.body)?;
                        for sample in samples(body) {
                            seen.sample(sample?);
                        }
                    }
                    Some(_) => {}
                    None if total.is_some() => break,
                    None => total = ended(&mut writer)?,
                }
                if spent + CREDIT / 2 > granted {
                    granted = spent + CREDIT;
                    client.credit(1, granted)?;
                }
            }
            // A session that only vanished would stay for a minute, and hold the writers of the next measurements.
            client.bye()?;
        }
    }
    let total = match total {
        Some(total) => total,
        None => wait_for(&mut writer)?,
    };
    let _ = writer.wait();
    seen.delays.sort_unstable();
    let at = |share: f64| {
        let last = seen.delays.len().saturating_sub(1);
        seen.delays.get((last as f64 * share) as usize).map_or(0.0, |ns| *ns as f64 / 1000.0)
    };
    let time = seen.first.zip(seen.last).map_or(1.0, |(first, last)| last.duration_since(first).as_secs_f64().max(1e-6));
    let name = |way| if way == Way::Bus { "bus" } else { "gateway" };
    let speed = if pause_us == 0 { "batched".to_owned() } else { format!("one in {pause_us} us") };
    Ok(Row {
        what: format!("{}, {speed}", table::size(size)),
        written: name(written),
        read: name(read),
        rate: seen.next as f64 / time,
        p50_us: at(0.5),
        p99_us: at(0.99),
        lost: seen.lost + total.saturating_sub(seen.next),
    })
}

/// Returns the number of samples of a writer that has ended.
fn ended(writer: &mut Child) -> Done<Option<u64>> {
    match writer.try_wait()? {
        None => Ok(None),
        Some(_) => wait_for(writer).map(Some),
    }
}

fn wait_for(writer: &mut Child) -> Done<u64> {
    let mut line = String::new();
    BufReader::new(writer.stdout.take().ok_or("the writer's output was read")?).read_line(&mut line)?;
    Ok(line.trim().parse()?)
}

/// Returns the processor time of the gateway in percent of a core, while sessions do nothing but beat.
fn idle(options: &Options, run: &Path, hub: &Hub) -> Done<f64> {
    let mut clients = Vec::new();
    for number in 0..options.sessions {
        let mut client = client(run, &format!("idle{number}"))?;
        let open = Open { topics: vec![format!("idle/{number}")], credit: Some(CREDIT), ..Open::default() };
        client.send_json(Kind::Open, 1, &open)?;
        clients.push(client);
    }
    let beat = |clients: &mut Vec<GatewayClient>, length: Duration| -> Done<()> {
        let until = Instant::now() + length;
        while Instant::now() < until {
            for client in clients.iter_mut() {
                while client.next(Duration::ZERO)?.is_some() {}
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    };
    beat(&mut clients, Duration::from_secs(3))?;
    let (pid, length) = (hub.gateway()?, Duration::from_secs_f64(options.seconds.max(5.0)));
    let (before, begun) = (cpu_of(pid), Instant::now());
    beat(&mut clients, length)?;
    Ok((cpu_of(pid) - before) / begun.elapsed().as_secs_f64() * 100.0)
}
