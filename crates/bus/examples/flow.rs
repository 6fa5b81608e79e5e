//! Samples from one process to others through a node, as fast as they go.
//!
//! ```text
//! flow node DIR
//! flow read DIR SECONDS
//! flow write DIR BYTES SECONDS [loan] [direct]
//! ```

use std::time::{Duration, Instant};

use tampu_bus::{
    Event, Participant, Qos, ReaderQos, TypeTag,
    connect::{Node, NodeSettings, Settings},
};
use tampu_types::{Partition, PartitionFilter, SourceName, TopicFilter, TopicName};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, dir, rest @ ..] = &arguments[..] else { return Err("flow node|read|write DIR ...".into()) };
    let config = Settings::isolated(dir);
    let has = |word: &str| rest.iter().any(|argument| argument == word);
    if role == "node" {
        let _node = Node::start(NodeSettings::new(config))?;
        loop {
            std::thread::park();
        }
    }
    let participant = Participant::open(config, SourceName::new(role.as_str())?)?;
    if role == "read" {
        let seconds = Duration::from_secs_f64(rest[0].parse()?);
        let qos = ReaderQos { direct: has("direct"), ..ReaderQos::default() };
        let mut reader = participant.reader(&TopicFilter::new("flow")?, &PartitionFilter::All, qos)?;
        let (mut count, mut lost, mut sum, mut first) = (0_u64, 0, 0_u64, None);
        let mut last = Instant::now();
        let until = Instant::now() + seconds;
        while Instant::now() < until {
            match reader.next(Duration::from_millis(200)) {
                Some(Event::Sample(sample)) => {
                    sum += sample.payload.with(|bytes| bytes.iter().step_by(64).map(|&byte| u64::from(byte)).sum::<u64>())?;
                    count += 1;
                    if count % 64 == 1 {
                        last = Instant::now();
                        first.get_or_insert(last);
                    }
                }
                Some(Event::Gap(gap)) => lost += gap.to.map_or(0, |to| to - gap.from),
                _ => {}
            }
        }
        let took = first.map_or(1.0, |first| (last - first).as_secs_f64());
        println!("read {count} lost {lost} {:.0}/s sum {sum} {:?}", count as f64 / took, reader.stats());
        return Ok(());
    }
    let (size, seconds): (usize, f64) = (rest[0].parse()?, rest[1].parse()?);
    let credit = std::env::var("CREDIT").ok().and_then(|text| text.parse().ok()).unwrap_or(1 << 20);
    let wait = Duration::from_secs(1);
    let qos = Qos { credit, max_wait: wait, wait_period: wait, direct: has("direct"), ..Qos::default() };
    let writer = participant.writer(&TopicName::new("flow")?, &Partition::everybody(), TypeTag::OCTETS, qos)?;
    let readers: usize = std::env::var("READERS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    while writer.readers().len() < readers {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    let mut sample = vec![0; size];
    let mut count = 0_u64;
    while begun.elapsed().as_secs_f64() < seconds {
        for _ in 0..16 {
            if has("loan") {
                let mut loan = writer.loan(size)?;
                loan.fill(count as u8);
                loan.publish()?;
            } else {
                sample[..8].copy_from_slice(&count.to_le_bytes());
                writer.write(&sample)?;
            }
            count += 1;
        }
    }
    let took = begun.elapsed().as_secs_f64();
    let receipt = writer.flush(Duration::from_secs(5));
    println!("wrote {count} {:.0}/s complete {} {:?}", count as f64 / took, receipt.complete(), writer.stats());
    Ok(())
}
