//! A receiver of a measurement: checks every byte.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use clap::Args;
use serde_json::{Value as Json, json};
use tampu_bulk::{
    Receiver,
    handler::{CallbackError, Data, End, Handler, Start},
    receiver::{FlowSettings, Identity, ReceiverSettings},
};

use super::{block::is_right, failed, memory::Memory, names};
use crate::{
    commands::{
        Context,
        bulk::OnOff,
        perf::part::{cpu_s, say},
    },
    failure::Failure,
};

/// What a receiver is told.
#[derive(Debug, Clone, Args)]
pub struct Taking {
    name: String,
    size: usize,
    #[arg(value_enum)]
    checksum: OnOff,
    /// Where the sender connects.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

#[derive(Debug, Default)]
struct Seen {
    right: u64,
    wrong: u64,
    lost: u64,
}

/// Checks what comes.
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
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.right += right;
        seen.wrong += wrong;
        Ok(())
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).lost += end.lost_bytes;
        Ok(())
    }
}

/// Receives until it is told to end. Says first where it is.
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
    while !ended.load(Ordering::Acquire) && !context.interrupt.asked() {
        std::thread::sleep(Duration::from_millis(5));
        match &mut memory {
            Some(memory) => memory.look(),
            // What it takes before data comes says nothing of its work.
            None if seen.lock().unwrap_or_else(PoisonError::into_inner).right > 0 => memory = Some(Memory::new()),
            None => {}
        }
    }
    let used = cpu_s() - cpu;
    let rss = memory.unwrap_or_else(Memory::new).report();
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(json!({"right_bytes": seen.right, "wrong_bytes": seen.wrong, "lost_bytes": seen.lost, "cpu_s": used, "rss": rss["now"],
        "rss_begin": rss["begin"], "rss_end": rss["end"]}))
}
