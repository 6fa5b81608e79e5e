//! Bulk data beside a raw loop over a socket: the same bytes, written by the sender and read by the receiver, over loopback.
//!
//! `cargo run --release -p tampu-bulk --example raw_loop -- [--block BYTES] [--seconds N] [--receivers N] [--checked] [--transport tcp|shm|udp]
//! [--protection authenticated|encrypted]`. With protection, the same flow without it is measured beside it, and the
//! processor's time of both ends.
//! prints a line for each way: MB/s at the slowest receiver. Sender and receivers are threads of one process.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tampu_bulk::{
    Name, Protection, Receiver, Sender,
    handler::{CallbackError, Data, End, Handler, Start},
    message::Transport,
    receiver::{FlowSettings, Identity, ReceiverSettings},
    sender::SendFlow,
};

struct Options {
    block: usize,
    seconds: f64,
    receivers: usize,
    checked: bool,
    transport: Option<Transport>,
    protection: Option<Protection>,
}

fn options() -> Options {
    let transport = Some(Transport::Tcp);
    let mut options = Options { block: 1 << 20, seconds: 3.0, receivers: 1, checked: false, transport, protection: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} wants a value"));
        match word.as_str() {
            "--block" => options.block = value().parse().expect("bytes"),
            "--seconds" => options.seconds = value().parse().expect("seconds"),
            "--receivers" => options.receivers = value().parse().expect("a number"),
            "--checked" => options.checked = true,
            "--protection" => options.protection = Some(value().parse().expect("a level")),
            "--transport" => {
                options.transport = match value().as_str() {
                    "tcp" => Some(Transport::Tcp),
                    "shm" => Some(Transport::Shm),
                    "udp" => Some(Transport::Udp),
                    _ => None,
                }
            }
            _ => panic!("what is {word}?"),
        }
    }
    options
}

/// Reads every byte, eight at a time.
fn look(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, &byte| sum.wrapping_add(u64::from(byte)))
}

fn fill(bytes: &mut [u8], round: u64) {
    bytes.fill(round as u8);
}

/// A plain loop: one buffer, `write_all` to each socket.
fn raw(options: &Options) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let mut sockets = Vec::new();
    let mut readers = Vec::new();
    for _ in 0..options.receivers {
        sockets.push(TcpStream::connect(address).expect("connected"));
        let (mut socket, _) = listener.accept().expect("accepted");
        let block = options.block;
        readers.push(std::thread::spawn(move || {
            let mut buffer = vec![0; block.clamp(1, 256 << 10)];
            let mut sum = 0u64;
            loop {
                match socket.read(&mut buffer).expect("readable") {
                    0 => return sum,
                    read => sum = sum.wrapping_add(look(&buffer[..read])),
                }
            }
        }));
    }
    let mut buffer = vec![0; options.block];
    let begin = Instant::now();
    let (mut sent, mut round) = (0u64, 0);
    while begin.elapsed().as_secs_f64() < options.seconds {
        fill(&mut buffer, round);
        for socket in &mut sockets {
            socket.write_all(&buffer).expect("writable");
        }
        sent += options.block as u64;
        round += 1;
    }
    drop(sockets);
    let sum = readers.into_iter().map(|reader| reader.join().expect("read")).fold(0u64, u64::wrapping_add);
    std::hint::black_box(sum);
    sent as f64 / begin.elapsed().as_secs_f64()
}

struct Look(Arc<AtomicU64>, u64);

impl Handler for Look {
    fn start(&mut self, _: &Start<'_>) -> Result<u64, CallbackError> {
        Ok(0)
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        self.1 = self.1.wrapping_add(look(data.bytes));
        Ok(())
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        assert!(end.complete, "{end:?}");
        self.0.fetch_add(self.1, Ordering::Relaxed);
        Ok(())
    }
}

/// Seconds of this process on processors so far.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("readable");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    // User and system time, in hundredths of a second.
    fields[11..13].iter().map(|field| field.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
}

fn ours(options: &Options, protection: Protection) -> f64 {
    let (stream, name) = (Name::new("raw").expect("a name"), Name::new("loop").expect("a name"));
    let sum = Arc::new(AtomicU64::new(0));
    let receivers: Vec<Receiver> = (0..options.receivers)
        .map(|_| {
            let handler: Box<dyn Handler> = Box::new(Look(sum.clone(), 0));
            let flows = vec![(FlowSettings::new(name.clone()), handler)];
            Receiver::open(Identity::alone("raw", "receiver"), stream.clone(), ReceiverSettings::default(), flows).expect("open")
        })
        .collect();
    let mut flow = SendFlow::new(name.clone());
    flow.receivers = options.receivers;
    flow.checked = options.checked;
    (flow.transport, flow.protection) = (options.transport, protection);
    if let Ok(bytes) = std::env::var("ACK_EVERY") {
        flow.ack_every = bytes.parse().expect("bytes");
    }
    if let Ok(bytes) = std::env::var("FRAME") {
        flow.frame = bytes.parse().expect("bytes");
    }
    let sender = Sender::open(Identity::alone("raw", "sender"), stream, vec![flow]).expect("open");
    receivers.iter().for_each(|receiver| sender.connect(&receiver.target()).expect("a worker"));
    let flow = sender.flow(&name).expect("it was opened");
    assert!(flow.wait_for(options.receivers, Duration::from_secs(10)), "all connect");
    let begin = Instant::now();
    let mut round = 0;
    flow.start(b"raw").expect("started");
    while begin.elapsed().as_secs_f64() < options.seconds {
        let mut block = flow.block(options.block);
        fill(&mut block, round);
        flow.send(block.freeze()).expect("sent");
        round += 1;
    }
    let report = flow.stop().expect("stopped");
    assert!(report.complete(), "{report:?}");
    report.bytes as f64 / begin.elapsed().as_secs_f64()
}

fn main() {
    let options = options();
    let way = options.transport.map_or("auto", Transport::name);
    println!("block {} B, {} receivers, checksums {}", options.block, options.receivers, options.checked);
    for _ in 0..2 {
        let raw = raw(&options);
        let mut measured = Vec::new();
        for protection in [Some(Protection::None), options.protection].into_iter().flatten() {
            let before = cpu();
            let rate = ours(&options, protection);
            measured.push((rate, (cpu() - before) / (rate * options.seconds / 1e9)));
        }
        let (plain, plain_cpu) = measured[0];
        println!(
            "  raw loop {:8.0} MB/s   {way} {:8.0} MB/s   {:5.2}   {plain_cpu:.2} s/GB",
            raw / 1e6,
            plain / 1e6,
            plain / raw
        );
        if let (Some((rate, cpu)), Some(protection)) = (measured.get(1), options.protection) {
            println!("  {protection} {:8.0} MB/s   {:5.2} of plain   {cpu:.2} s/GB", rate / 1e6, rate / plain);
        }
    }
}
