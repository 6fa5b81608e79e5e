//! A receiver of a measurement: checks every byte.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Args;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tampu_bulk::{
    Receiver,
    handler::{CallbackError, Data, End, Handler, Start},
    receiver::{FlowSettings, Identity, ReceiverSettings},
};

use super::{PATIENCE, block::is_right, failed, memory::Memory, names};
use crate::{
    commands::{
        bulk::choices::OnOff,
        perf::process::{cpu_s, say},
    },
    context::Context,
    failure::Failure,
};

/// Options of a receiver.
#[derive(Debug, Clone, Args)]
pub struct Taking {
    name: String,
    size: usize,
    #[arg(value_enum)]
    checksum: OnOff,
    /// Address for the sender.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[derive(Debug, Default)]
struct Seen {
    right: u64,
    wrong: u64,
    lost: u64,
    /// True between the start and the stop of a transfer.
    running: bool,
}

/// Checks the received blocks.
struct Checking {
    size: u64,
    /// The number of the first block of the transfer under way.
    first: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Handler for Checking {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        let first = start.parameter.first_chunk().ok_or_else(|| CallbackError::give_up("no number"))?;
        self.first = u64::from_le_bytes(*first);
        self.seen.lock().running = true;
        Ok(0)
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        let (mut rest, mut offset) = (data.bytes, data.offset);
        let (mut right, mut wrong) = (0, 0);
        while !rest.is_empty() {
            let (block, from) = (self.first + offset / self.size, offset % self.size);
            let here = rest.len().min((self.size - from) as usize);
            let (piece, after) = rest.split_at(here);
            let count = if is_right(piece, block, from as usize) { &mut right } else { &mut wrong };
            *count += here as u64;
            (rest, offset) = (after, offset + here as u64);
        }
        let mut seen = self.seen.lock();
        seen.right += right;
        seen.wrong += wrong;
        Ok(())
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        let mut seen = self.seen.lock();
        seen.lost += end.lost_bytes;
        seen.running = false;
        Ok(())
    }
}

/// Receives until it is told to end. First reports its address.
pub fn taker(context: &Context, how: &Taking, ended: &AtomicBool) -> Result<Json, Failure> {
    let (stream, flow) = names()?;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let handler = Checking { size: how.size as u64, first: 0, seen: seen.clone() };
    let mut settings = FlowSettings::new(flow);
    settings.checked = how.checksum.is_on();
    let flows: Vec<(FlowSettings, Box<dyn Handler>)> = vec![(settings, Box::new(handler))];
    let place = ReceiverSettings { listen: how.listen, ..ReceiverSettings::default() };
    let receiver = Receiver::open(Identity::alone("perf", &how.name), stream, place, flows).map_err(failed)?;
    let cpu = cpu_s();
    say(&json!({"target": receiver.target().to_string()}))?;
    let mut memory: Option<Memory> = None;
    let mut until = None;
    while !context.interrupt.asked() {
        if ended.load(Ordering::Acquire) {
            // A distributor may still be sending the last blocks of a transfer that its own sender has finished.
            let until = *until.get_or_insert_with(|| Instant::now() + PATIENCE);
            if !seen.lock().running || Instant::now() > until {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
        match &mut memory {
            Some(memory) => memory.look(),
            // Memory taken before the first data is not counted.
            None if seen.lock().right > 0 => memory = Some(Memory::new()),
            None => {}
        }
    }
    let used = cpu_s() - cpu;
    let rss = memory.unwrap_or_else(Memory::new).report();
    let seen = seen.lock();
    Ok(json!({"right_bytes": seen.right, "wrong_bytes": seen.wrong, "lost_bytes": seen.lost, "cpu_s": used, "rss": rss["now"],
        "rss_begin": rss["begin"], "rss_end": rss["end"]}))
}
