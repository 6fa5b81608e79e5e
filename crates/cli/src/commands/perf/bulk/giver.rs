//! The sender of a measurement: writes every byte of each block.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value as Json, json};
use tampu_bulk::{
    Sender, Target,
    receiver::Identity,
    sender::{Acknowledge, Flow, SendFlow},
    state::LinkStatus,
};

use super::{PATIENCE, block::fill, failed, group, memory::Memory, names};
use crate::{
    commands::{
        bulk::choices::{OnOff, ProtectionChoice, Protocol},
        perf::process::cpu_s,
    },
    context::Context,
    failure::Failure,
};

/// Options of the sender.
#[derive(Debug, Clone, Args)]
pub struct Giving {
    /// Bytes of a frame at most; a multiple of 8, so that each holds whole words.
    #[arg(long)]
    frame: Option<u32>,
    /// Protection of the data.
    #[arg(long, value_enum, default_value = "auto")]
    protection: ProtectionChoice,
    seconds: f64,
    /// Bytes after which it ends although there is time; 0: none.
    bytes: u64,
    size: usize,
    #[arg(value_enum)]
    checksum: OnOff,
    #[arg(value_enum)]
    protocol: Protocol,
    #[arg(value_enum)]
    handshake: OnOff,
    /// Bytes a second; 0: as fast as it goes.
    throttle: u64,
    targets: Vec<Target>,
}

/// Sends until the time is over and all receivers have everything.
pub fn giver(context: &Context, how: &Giving) -> Result<Json, Failure> {
    let (stream, name) = names()?;
    let each = how.handshake.is_on();
    let flow = SendFlow::new(name.clone());
    let settings = SendFlow {
        frame: how.frame.map_or(flow.frame, |frame| frame.next_multiple_of(8)),
        transport: how.protocol.transport(),
        group: group(how.protocol)?,
        checked: how.checksum.is_on(),
        protection: how.protection.protection(),
        acknowledge: if each { Acknowledge::StartAndStop } else { Acknowledge::Never },
        receivers: how.targets.len(),
        connect_wait: PATIENCE,
        wait: PATIENCE,
        ack_wait: PATIENCE,
        throttle: (how.throttle > 0).then_some(how.throttle as f64),
        ..flow
    };
    let sender = Sender::open(Identity::alone("perf", "perf-sender"), stream, vec![settings]).map_err(failed)?;
    how.targets.iter().try_for_each(|target| sender.connect(target)).map_err(failed)?;
    let flow = sender.flow(&name).ok_or_else(|| failed("the flow was not opened"))?;
    if !flow.wait_for(how.targets.len(), PATIENCE) {
        return Err(Failure::Failed(format!("{} of {} receivers came", flow.connected(), how.targets.len())));
    }
    let mut memory = Memory::new();
    if !each {
        flow.start(&0u64.to_le_bytes()).map_err(failed)?;
    }
    let (begun, cpu) = (Instant::now(), cpu_s());
    let length = Duration::try_from_secs_f64(how.seconds).map_err(failed)?;
    let most = if how.bytes == 0 { u64::MAX } else { how.bytes.div_ceil(how.size as u64) };
    let (mut blocks, mut complete) = (0u64, true);
    while begun.elapsed() < length && blocks < most && !context.interrupt.asked() {
        if each {
            flow.start(&blocks.to_le_bytes()).map_err(failed)?;
        }
        let mut block = flow.block(how.size);
        fill(&mut block, blocks);
        flow.send(block.freeze()).map_err(failed)?;
        blocks += 1;
        if each {
            complete &= flow.stop().map_err(failed)?.complete();
        }
        memory.look();
    }
    if !each {
        // The report does not name the complete receivers: this stop does not wait.
        flow.stop().map_err(failed)?;
    }
    complete &= everybody_has_it(flow);
    let elapsed = begun.elapsed().as_secs_f64();
    let transport = flow.state().receivers.first().map(|link| link.transport.to_string());
    let rss = memory.report();
    Ok(json!({
        "blocks": blocks,
        "bytes": blocks * how.size as u64,
        "elapsed_s": elapsed,
        "complete": complete,
        "transport": transport,
        "cpu_s": cpu_s() - cpu,
        "rss": rss["now"],
        "rss_begin": rss["begin"],
        "rss_end": rss["end"],
    }))
}

/// Waits until everything is acknowledged. Returns whether no receiver was excluded for that.
fn everybody_has_it(flow: &Flow) -> bool {
    let until = Instant::now() + PATIENCE;
    loop {
        let state = flow.state();
        if state.window == 0 {
            return state.receivers.iter().all(|link| link.status == LinkStatus::Live && link.lost_bytes == 0);
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}
