//! A process of a case: a participant with its writers and readers, doing what it is told.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tampu_bus::{
    Ack, Event, Hold, Participant, Payload, Qos, QosPatch, QosTable, Reader, ReaderQos, TypeTag, Writer,
    clock::{Clock, Gate},
    engine::{Engine, Guard, Tick},
};
use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

use super::command::{Command, How, Look, Pace, Ranges, Reply, Seen, Sources, Status, StreamId, Wish, Wrote};

type Failure = Box<dyn std::error::Error>;

/// Period at which an application looks for samples.
const TURN: u64 = 2_000_000;

pub struct Member {
    engine: Arc<dyn Engine>,
    participant: Option<Participant>,
    patches: Vec<QosPatch>,
    writers: Vec<Option<OpenWriter>>,
    readers: Vec<Option<(Arc<Application>, Guard)>>,
    services: Vec<Guard>,
    news: Arc<Mutex<Vec<(i64, String, bool)>>>,
    _watch: Guard,
}

struct OpenWriter {
    writer: Writer,
    deliveries: Arc<Mutex<Vec<u64>>>,
    next: u64,
}

/// Takes what a reader has, at its pace, and writes it down.
struct Application {
    reader: Mutex<Option<Reader>>,
    pace: Mutex<Pace>,
    log: Mutex<Vec<Seen>>,
    clock: Arc<dyn Clock>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of a sample: its number, then its number again and again.
fn content(number: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; size.max(8)];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn is_intact(number: u64, bytes: &[u8]) -> bool {
    bytes.len() >= 8 && bytes[..8] == number.to_le_bytes() && bytes[8..].iter().all(|&byte| byte == number as u8)
}

impl Member {
    pub fn join(engine: Arc<dyn Engine>, domain: &str, source: &str, patches: Vec<QosPatch>) -> Result<Member, Failure> {
        let table = QosTable::new(patches.clone())?;
        let participant = Participant::on(engine.clone(), Domain::new(domain)?, SourceName::new(source)?, table)?;
        let news: Arc<Mutex<Vec<(i64, String, bool)>>> = Arc::default();
        let (heard, clock) = (news.clone(), engine.clock());
        let watch = participant.watch_sources(move |info, here| {
            lock(&heard).push((clock.utc().0, info.source.to_string(), here));
        });
        Ok(Member {
            engine,
            participant: Some(participant),
            patches,
            writers: Vec::new(),
            readers: Vec::new(),
            services: Vec::new(),
            news,
            _watch: watch,
        })
    }

    /// Does what it is told; what the bus refuses is said, not panicked about.
    pub fn run(&mut self, command: Command) -> Reply {
        self.tried(command).unwrap_or_else(|why| Reply::Refused(why.to_string()))
    }

    fn tried(&mut self, command: Command) -> Result<Reply, Failure> {
        if matches!(command, Command::Leave) {
            self.readers.clear();
            self.writers.clear();
            self.services.clear();
            self.participant = None;
            return Ok(Reply::Done);
        }
        let participant = self.participant.clone().ok_or("it has left")?;
        match command {
            Command::OpenWriter { topic, partition, patch } => {
                let topic = TopicName::new(topic)?;
                let partition = Partition::of(partition.iter().map(String::as_str));
                let writer = participant.writer(&topic, &partition, TypeTag::OCTETS, self.qos(&topic, patch)?)?;
                let deliveries: Arc<Mutex<Vec<u64>>> = Arc::default();
                let told = deliveries.clone();
                writer.on_delivery(move |next| lock(&told).push(next));
                self.writers.push(Some(OpenWriter { writer, deliveries, next: 0 }));
                Ok(Reply::Opened(self.writers.len() - 1))
            }
            Command::Write { writer, count, size, how } => self.write(writer, count, size, how),
            Command::Flush { writer, timeout_ms } => {
                let receipt = self.writer(writer)?.writer.flush(Duration::from_millis(timeout_ms));
                let pairs = |ranges: Vec<std::ops::Range<u64>>| ranges.iter().map(|range| (range.start, range.end)).collect();
                let (delivered, cached, lost) = (pairs(receipt.delivered), pairs(receipt.cached), pairs(receipt.lost));
                Ok(Reply::Receipt(Ranges { delivered, cached, lost }))
            }
            Command::Look { writer } => {
                let open = self.writer(writer)?;
                let statuses = open.writer.readers().into_iter().map(|reader| Status {
                    source: reader.source,
                    state: format!("{:?}", reader.state),
                    acked: reader.acked,
                    lost: reader.lost,
                });
                let stats = open.writer.stats();
                Ok(Reply::Look(Look {
                    readers: statuses.collect(),
                    deliveries: lock(&open.deliveries).clone(),
                    lost: stats.lost,
                    waited_ns: stats.waited_ns,
                    copied_loans: stats.copied_loans,
                    shared: stats.shared,
                    batches: stats.batches,
                    cache: stats.cache,
                }))
            }
            Command::CloseWriter { writer } => {
                self.writers[writer] = None;
                Ok(Reply::Done)
            }
            Command::OpenReader(wish) => self.open_reader(&participant, wish),
            Command::Pace { reader, pace } => {
                *lock(&self.reader(reader)?.pace) = pace;
                Ok(Reply::Done)
            }
            Command::Log { reader } => Ok(Reply::Log(lock(&self.reader(reader)?.log).clone())),
            Command::Acknowledge { reader, topic, next } => {
                self.reader(reader)?.acknowledge(&topic, next);
                Ok(Reply::Done)
            }
            Command::CloseReader { reader } => {
                self.readers[reader] = None;
                Ok(Reply::Done)
            }
            Command::Answer { service, parts } => {
                let answer = move |question: Box<dyn tampu_bus::engine::Question>| {
                    for part in &parts {
                        let asked = String::from_utf8_lossy(question.payload()).into_owned();
                        // The asker may be gone; then no process waits for the rest.
                        let _ = question.reply(Bytes::from(format!("{part}{asked}")));
                    }
                };
                self.services.push(participant.answer(&TopicName::new(service)?, Arc::new(answer))?);
                Ok(Reply::Done)
            }
            Command::Ask { service, question, timeout_ms } => {
                let timeout = Duration::from_millis(timeout_ms);
                let answers = participant.ask(&TopicName::new(service)?, Bytes::from(question), timeout)?;
                let text = |part: Bytes| String::from_utf8_lossy(&part).into_owned();
                Ok(Reply::Answers(answers.map(|answer| answer.map(text).map_err(|why| why.to_string())).collect()))
            }
            Command::Sources => {
                let here = participant.sources().into_iter().map(|info| (info.source.to_string(), info.incarnation.to_string()));
                Ok(Reply::Sources(Sources { here: here.collect(), news: lock(&self.news).clone() }))
            }
            Command::Configured { topic } => {
                let qos = participant.qos(&TopicName::new(topic)?);
                Ok(Reply::Configured { credit: qos.credit, cache: qos.cache })
            }
            Command::Leave => Ok(Reply::Done),
        }
    }

    fn qos(&self, topic: &TopicName, patch: QosPatch) -> Result<Qos, Failure> {
        let last = QosPatch { topics: "**".to_owned(), ..patch };
        Ok(QosTable::new(self.patches.iter().cloned().chain([last]).collect())?.of(topic))
    }

    fn writer(&mut self, number: usize) -> Result<&mut OpenWriter, Failure> {
        self.writers.get_mut(number).and_then(Option::as_mut).ok_or_else(|| "no such writer".into())
    }

    fn reader(&self, number: usize) -> Result<&Application, Failure> {
        let open = self.readers.get(number).and_then(Option::as_ref);
        open.map(|(application, _)| application.as_ref()).ok_or_else(|| "no such reader".into())
    }

    fn write(&mut self, writer: usize, count: u64, size: usize, how: How) -> Result<Reply, Failure> {
        let clock = self.engine.clock();
        let open = self.writer(writer)?;
        let first = open.next;
        let (mut longest, mut matched) = (0, 0);
        let begun = clock.monotonic();
        for _ in 0..count {
            let number = open.next;
            let sample = content(number, size);
            let before = clock.monotonic();
            let written = match how {
                How::Plain => open.writer.write(&sample)?,
                How::Urgent => open.writer.write_urgent(&sample)?,
                How::Loan => {
                    let mut loan = open.writer.loan(sample.len())?;
                    loan.copy_from_slice(&sample);
                    loan.publish()?
                }
            };
            longest = longest.max(clock.monotonic() - before);
            assert_eq!(written.sequence, number, "samples are numbered from 0 without a hole");
            matched = written.matched;
            open.next += 1;
        }
        let total = clock.monotonic() - begun;
        Ok(Reply::Wrote(Wrote { first, next: open.next, matched, longest_ns: longest, total_ns: total }))
    }

    fn open_reader(&mut self, participant: &Participant, wish: Wish) -> Result<Reply, Failure> {
        let partitions = match &wish.partitions {
            None => PartitionFilter::All,
            Some(names) => PartitionFilter::any(names.iter().map(String::as_str)),
        };
        let resume = wish.resume.iter().map(|(incarnation, stream, next)| Ok((incarnation.parse()?, *stream, *next)));
        let mut qos = ReaderQos {
            reliable: wish.reliable,
            history: wish.history,
            ack: if wish.manual { Ack::Manual } else { Ack::OnTake },
            hold: if wish.full { Hold::Full } else { Hold::Bounded },
            direct: wish.direct,
            resume: resume.collect::<Result<_, Failure>>()?,
            ..ReaderQos::default()
        };
        qos.queue = wish.queue.unwrap_or(qos.queue);
        let reader = participant.reader(&TopicFilter::new(wish.topics)?, &partitions, qos)?;
        let application = Arc::new(Application {
            reader: Mutex::new(Some(reader)),
            pace: Mutex::new(wish.pace),
            log: Mutex::default(),
            clock: self.engine.clock(),
        });
        let guard = self.engine.drive(application.clone(), Arc::new(Gate::default()))?;
        self.readers.push(Some((application, guard)));
        Ok(Reply::Opened(self.readers.len() - 1))
    }
}

impl Tick for Application {
    fn tick(&self, now: u64) -> u64 {
        let pace = *lock(&self.pace);
        let (most, again) = match pace {
            Pace::Keen => (u64::MAX, TURN),
            Pace::Slow(samples, ms) => (samples, ms * 1_000_000),
            Pace::Idle => (0, TURN),
        };
        if let Some(reader) = lock(&self.reader).as_mut() {
            self.take(reader, most);
        }
        now + again
    }
}

impl Application {
    fn take(&self, reader: &mut Reader, most: u64) {
        let mut taken = 0;
        while taken < most {
            let Some(event) = reader.next(Duration::ZERO) else { return };
            taken += u64::from(matches!(event, Event::Sample(_)));
            self.note(event);
        }
    }

    fn note(&self, event: Event<'_>) {
        let at = self.clock.utc().0;
        let mut log = lock(&self.log);
        match event {
            Event::Sample(sample) => {
                let stream = id(sample.stream);
                let number = sample.sequence;
                let (damage, loan, tear) = judged(number, &sample.payload);
                match log.last_mut() {
                    Some(Seen::Samples { stream: same, to, damaged, lent, torn, last_at, .. })
                        if *same == stream && *to == number =>
                    {
                        (*to, *last_at) = (number + 1, at);
                        (*damaged, *lent, *torn) = (*damaged + damage, *lent + loan, *torn + tear);
                    }
                    _ => log.push(Seen::Samples {
                        stream,
                        from: number,
                        to: number + 1,
                        damaged: damage,
                        lent: loan,
                        torn: tear,
                        first_at: at,
                        last_at: at,
                    }),
                }
            }
            Event::Gap(gap) => {
                let why = format!("{:?}", gap.why);
                log.push(Seen::Gap { stream: id(&gap.stream), from: gap.from, to: gap.to, why, at });
            }
            Event::Source(change) => log.push(Seen::Source {
                source: change.source.to_string(),
                incarnation: change.incarnation.to_string(),
                state: format!("{:?}", change.state),
                at,
            }),
        }
    }

    fn acknowledge(&self, topic: &str, next: u64) {
        let reader = lock(&self.reader);
        let Some(reader) = reader.as_ref() else { return };
        // The bus identifies a stream by its own description, which the log has in another form.
        for seen in lock(&self.log).iter() {
            if let Seen::Samples { stream, .. } = seen
                && stream.topic == topic
                && let (Ok(source), Ok(incarnation), Ok(topic)) =
                    (SourceName::new(&*stream.source), stream.incarnation.parse(), TopicName::new(&*stream.topic))
            {
                let info = tampu_bus::StreamInfo {
                    host: None,
                    source,
                    incarnation,
                    stream: stream.stream,
                    topic,
                    partition: Partition::from_key(&stream.partition).unwrap_or_default(),
                    type_tag: TypeTag::OCTETS,
                };
                reader.acknowledge(&info, next);
            }
        }
    }
}

/// Checks if the bytes are damaged, were lent, were torn: 1 or 0 each.
fn judged(number: u64, payload: &Payload<'_>) -> (u64, u64, u64) {
    let lent = u64::from(payload.bytes().is_none());
    match payload.with(|bytes| is_intact(number, bytes)) {
        Ok(intact) => (u64::from(!intact), lent, 0),
        Err(_) => (0, lent, 1),
    }
}

fn id(info: &tampu_bus::StreamInfo) -> StreamId {
    StreamId {
        source: info.source.to_string(),
        incarnation: info.incarnation.to_string(),
        stream: info.stream,
        topic: info.topic.to_string(),
        partition: info.partition.key(),
    }
}
