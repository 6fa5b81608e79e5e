//! The server of `tampu perf event`.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};
use tampu_bus::{QosPatch, QosTable};
use tampu_event::{
    Attribute, Server,
    criteria::Reading,
    server::{AttributeOptions, Delivery, ServerSettings},
};
use tampu_types::event::{AttributeConfig, Data, DataType, Format, Kinds, Quality, Shape, Value};

use super::{PATIENCE, Way, failed, name};
use crate::{
    commands::perf::process::{Input, cpu_s, join, say},
    context::Context,
    failure::Failure,
};

/// Length from which on values are written into lent memory, bytes.
const LEND_FROM: usize = 16 << 10;
/// Values pushed between two checks of the clock, for short values without a rate.
const AT_ONCE: u64 = 64;
/// Highest rate at which events are sent one by one. Above it a sleep takes longer than the interval of the events, so
/// all due events are sent together.
const SINGLY_BELOW: f64 = 2000.0;
const NAP: Duration = Duration::from_millis(1);

/// Options of the server.
pub struct Publishing {
    pub seconds: f64,
    pub size: usize,
    pub clients: usize,
    pub rate: f64,
    pub attributes: usize,
    pub way: Way,
}

/// Declares, waits for the clients and for the start command, pushes, and reports. It stays until the clients are done,
/// for clients that request missed events.
pub fn publish(context: &Context, how: &Publishing, input: &Input) -> Result<Json, Failure> {
    // No event may be lost: the clients may slow down the server, which is the measured value.
    let patch = |topics: &str| QosPatch {
        topics: topics.to_owned(),
        max_wait_ms: Some(10_000),
        wait_period_ms: Some(10_000),
        ..QosPatch::default()
    };
    let qos = QosTable::new(vec![patch("event/*"), patch("event-own/**")]).map_err(failed)?;
    let server = Server::start(join(context, "perf-server", qos)?, ServerSettings::default()).map_err(failed)?;
    let count = (how.size / 4).max(1);
    let delivery = if how.way == Way::Acknowledged { Delivery::Acknowledged } else { Delivery::Streamed };
    let mut attributes = Vec::with_capacity(how.attributes);
    for number in 0..how.attributes {
        let mut config = AttributeConfig::new(name(number).parse().map_err(failed)?, DataType::Long, Format::Spectrum);
        config.max_x = count as u32;
        attributes
            .push(server.declare_with(config, AttributeOptions { delivery, ..AttributeOptions::default() }).map_err(failed)?);
    }
    let Some(last) = attributes.last() else { return Err(Failure::Usage("there must be an attribute".to_owned())) };
    let until = Instant::now() + 2 * PATIENCE;
    while last.readers() < how.clients || !input.begun.load(Ordering::Acquire) {
        if Instant::now() > until || context.interrupt.asked() || input.ended.load(Ordering::Acquire) {
            return Err(Failure::Failed(format!("{} of {} clients came, or were ready", last.readers(), how.clients)));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut pusher = Pusher { way: how.way, size: how.size, values: vec![0; count] };
    let (begun, cpu) = (Instant::now(), cpu_s());
    let length = Duration::from_secs_f64(how.seconds);
    let at_once = if how.size > 65_536 || how.way == Way::Acknowledged { 1 } else { AT_ONCE };
    let mut pushed = 0u64;
    while begun.elapsed() < length && !context.interrupt.asked() {
        let due = if how.rate > 0.0 { (begun.elapsed().as_secs_f64() * how.rate) as u64 + 1 } else { pushed + at_once };
        while pushed < due {
            let (round, at) = (pushed / attributes.len() as u64, pushed % attributes.len() as u64);
            // The attribute's own number, which counts from 1.
            pusher.push(&attributes[at as usize], at as usize, round + 1)?;
            pushed += 1;
        }
        if how.rate > 0.0 {
            let next = Duration::from_secs_f64(due as f64 / how.rate).saturating_sub(begun.elapsed());
            std::thread::sleep(if how.rate < SINGLY_BELOW { next } else { next.max(NAP) });
        }
    }
    server.send_now();
    let pushing = begun.elapsed().as_secs_f64();
    // Events under way are still read and counted; readers of the newest value only are not awaited.
    let delivered = how.way == Way::Latest || attributes.iter().all(|attribute| attribute.flush(PATIENCE));
    say(&json!({
        "pushed": pushed,
        "pushing_s": pushing,
        "elapsed_s": begun.elapsed().as_secs_f64(),
        "delivered": delivered,
        "cpu_s": cpu_s() - cpu,
    }))?;
    while !input.ended.load(Ordering::Acquire) && !context.interrupt.asked() {
        std::thread::sleep(NAP);
    }
    Ok(json!({ "done": true }))
}

struct Pusher {
    way: Way,
    size: usize,
    values: Vec<i32>,
}

impl Pusher {
    fn push(&mut self, to: &Attribute, attribute: usize, number: u64) -> Result<(), Failure> {
        let first = first(attribute, number);
        let shape = Shape::spectrum(self.values.len() as u32);
        if self.size >= LEND_FROM {
            let mut lent = to.lend::<i32>(shape).map_err(failed)?;
            fill(&mut lent, first);
            if self.way == Way::Acknowledged {
                lent.publish_acknowledged(Kinds::USER, Quality::Valid, PATIENCE).map_err(failed)?;
            } else {
                lent.publish(Kinds::USER, Quality::Valid).map_err(failed)?;
            }
            return Ok(());
        }
        fill(&mut self.values, first);
        let reading = Reading::of(Value { data: Data::Long(&self.values), shape });
        if self.way == Way::Acknowledged {
            to.push_acknowledged(Kinds::USER, &reading, PATIENCE).map_err(failed)?;
        } else {
            to.push_as(Kinds::USER, &reading, None).map_err(failed)?;
        }
        Ok(())
    }
}

/// The first element of an event: it differs between attributes and between their events.
pub(super) fn first(attribute: usize, number: u64) -> i32 {
    (number as i32).wrapping_add((attribute as i32).wrapping_mul(0x5851_F42D))
}

/// Every element follows from the first and its place.
fn fill(values: &mut [i32], first: i32) {
    values.iter_mut().enumerate().for_each(|(at, value)| *value = first.wrapping_add(at as i32));
}
