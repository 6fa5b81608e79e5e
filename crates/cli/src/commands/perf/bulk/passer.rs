//! The distributor of a measurement: between the sender and all receivers.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use clap::Args;
use serde_json::{Value as Json, json};
use tampu_bulk::{
    Distributor, Target, distributor,
    receiver::{Identity, ReceiverSettings},
};

use super::{PATIENCE, failed, group, memory::Memory, names};
use crate::{
    commands::{
        bulk::choices::{OnOff, Protocol},
        perf::process::{cpu_s, say},
    },
    context::Context,
    failure::Failure,
};

/// Options of the distributor.
#[derive(Debug, Clone, Args)]
pub struct Passing {
    #[arg(value_enum)]
    checksum: OnOff,
    /// Transport to the receivers.
    #[arg(value_enum)]
    protocol: Protocol,
    targets: Vec<Target>,
}

/// Relays data until it is told to end. First reports its address.
pub fn passer(context: &Context, how: &Passing, ended: &AtomicBool) -> Result<Json, Failure> {
    let (stream, flow) = names()?;
    let (mut taken, mut given) = distributor::through(flow);
    taken.checked = how.checksum.is_on();
    given.checked = how.checksum.is_on();
    given.transport = how.protocol.transport();
    given.group = group(how.protocol)?;
    given.receivers = how.targets.len();
    (given.wait, given.ack_wait, given.connect_wait) = (PATIENCE, PATIENCE, PATIENCE);
    taken.callback_limit = 3 * PATIENCE;
    taken.callback_average_limit = PATIENCE;
    let identity = Identity::alone("perf", "perf-distributor");
    let distributor = Distributor::open(identity, stream.clone(), stream, ReceiverSettings::default(), vec![(taken, given)]);
    let distributor = distributor.map_err(failed)?;
    how.targets.iter().try_for_each(|target| distributor.sender().connect(target)).map_err(failed)?;
    let flow = distributor.sender().flows().first().ok_or_else(|| failed("the flow was not opened"))?;
    if !flow.wait_for(how.targets.len(), PATIENCE) {
        return Err(Failure::Failed(format!("{} of {} receivers came", flow.connected(), how.targets.len())));
    }
    let (cpu, mut memory) = (cpu_s(), Memory::new());
    say(&json!({"target": distributor.receiver().target().to_string()}))?;
    while !ended.load(Ordering::Acquire) && !context.interrupt.asked() {
        std::thread::sleep(Duration::from_millis(5));
        memory.look();
    }
    let (used, rss) = (cpu_s() - cpu, memory.report());
    Ok(json!({"cpu_s": used, "rss": rss["now"], "rss_begin": rss["begin"], "rss_end": rss["end"]}))
}
