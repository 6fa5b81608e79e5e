//! A process that publishes: every value tells the life it is of and its number, and how far it is stands in a file, so that it
//! is known after a kill.
//!
//! ```text
//! started with   name life elements rate [redundant]     rate 0: as fast as it can
//! says           ready | refused WHY | taken WHY | stopped NUMBER LONGEST_US CALLS_US
//! is told        stop: pushes no more, waits until everybody has all, and says so
//! ```

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tampu_bus::connect::Settings;
use tampu_event::{
    Server,
    criteria::Reading,
    server::{AttributeOptions, Delivery, PushError, ServerSettings},
};
use tampu_types::event::{AttributeConfig, Data, DataType, Format, Kinds, Shape, Value};

use super::{
    ATTRIBUTE, PATIENCE,
    part::{Told, join, say},
};

/// Numbers at the beginning of every value: the incarnation, and the two halves of the event's number.
const HEAD: usize = 3;

/// The file a source writes its last number to.
pub fn mark(dir: &Path, name: &str, life: u64) -> PathBuf {
    dir.join(format!("{name}-{life}.mark"))
}

/// Returns how many events an incarnation has published for certain: the number of its last push that returned.
pub fn published(mark: &Path) -> u64 {
    let mut number = [0; 8];
    match File::open(mark).and_then(|file| file.read_exact_at(&mut number, 0)) {
        Ok(()) => u64::from_le_bytes(number),
        // The life ended before that point.
        Err(_) => 0,
    }
}

fn fill(values: &mut [i32], life: u64, number: u64) {
    values[0] = life as i32;
    values[1] = number as i32;
    values[2] = (number >> 32) as i32;
    values[HEAD..].iter_mut().enumerate().for_each(|(at, value)| *value = element(life, number, at));
}

fn element(life: u64, number: u64, at: usize) -> i32 {
    (number as i32).wrapping_mul(31).wrapping_add(at as i32) ^ life as i32
}

/// The life and number a value tells, if it is whole.
pub fn read(values: impl ExactSizeIterator<Item = i32>) -> Option<(u64, u64)> {
    let mut values = values;
    let (life, low, high) = (values.next()?, values.next()?, values.next()?);
    let (life, number) = (u64::from(life as u32), u64::from(low as u32) | u64::from(high as u32) << 32);
    values.enumerate().all(|(at, value)| value == element(life, number, at)).then_some((life, number))
}

/// Lives a source's life.
pub fn be(config: &Settings, told: &Told) {
    let (name, life, rate): (String, u64, f64) = (told.get("name"), told.get("life"), told.get("rate"));
    let file = File::create(mark(Path::new(&told.get::<String>("dir")), &name, life)).unwrap();
    let server = Server::start(join(config, &name), ServerSettings::default()).unwrap();
    let elements = told.get::<usize>("elements").max(HEAD);
    let mut attribute = AttributeConfig::new(ATTRIBUTE.parse().unwrap(), DataType::Long, Format::Spectrum);
    attribute.max_x = elements as u32;
    let options =
        AttributeOptions { delivery: Delivery::Streamed, redundant: told.find("redundant").unwrap_or(false), urgent: false };
    let attribute = match server.declare_with(attribute, options) {
        Ok(attribute) => attribute,
        Err(why) => return say(&format!("refused {why}")),
    };
    say("ready");
    let (stop, end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (stopped, ended) = (stop.clone(), end.clone());
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).for_each(|_| stopped.store(true, Ordering::Release));
        stopped.store(true, Ordering::Release);
        ended.store(true, Ordering::Release);
    });

    let (mut values, mut number) = (vec![0; elements], 0);
    let (begun, mut longest, mut calls) = (Instant::now(), Duration::ZERO, Duration::ZERO);
    let mut taken = false;
    while !stop.load(Ordering::Acquire) {
        if rate > 0.0 {
            let due = Duration::from_secs_f64(number as f64 / rate);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        fill(&mut values, life, number + 1);
        let reading = Reading::of(Value { data: Data::Long(&values), shape: Shape::spectrum(elements as u32) });
        let before = Instant::now();
        match attribute.push_as(Kinds::USER, &reading, None) {
            Ok(pushed) => {
                number = pushed.number;
                file.write_all_at(&number.to_le_bytes(), 0).unwrap();
            }
            Err(why @ PushError::Taken { .. }) => {
                if !std::mem::replace(&mut taken, true) {
                    say(&format!("taken {why}"));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(why) => panic!("{why}"),
        }
        let took = before.elapsed();
        (longest, calls) = (longest.max(took), calls + took);
    }
    if !end.load(Ordering::Acquire) {
        attribute.flush(PATIENCE);
        say(&format!("stopped {number} {} {}", longest.as_micros(), calls.as_micros()));
        while !end.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
