//! Commands to a running `tampu bulk send`: it may be paced and stopped, and with `--on-start` each start sends its files.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver as Heard, RecvTimeoutError, Sender as Tell, channel, sync_channel},
    },
    time::Duration,
};

use clap::Args;
use tampu_bulk::{
    Name, Sender,
    control::{ControlledSender, StartOrder},
};

use super::offer::{Offer, Offers};
use crate::interrupt::Interrupt;

/// Time between two checks of interrupts.
const TURN: Duration = Duration::from_millis(100);
/// Names of files that an error lists.
const LISTED: usize = 5;

/// Options of a sender that obeys.
#[derive(Debug, Clone, Args)]
pub struct ObeyingArgs {
    /// Let others pace, pause and stop the transfers under this name: tampu bulk control
    #[arg(long, value_name = "NAME")]
    pub control: Option<Name>,
    /// Send at each start that others ask for, until Ctrl-C, instead of at once
    #[arg(long, requires = "control")]
    pub on_start: bool,
}

/// A start that the command carries out on its own thread.
pub struct Order {
    pub parameter: String,
    pub file: Option<String>,
    /// The place of the result.
    ended: Tell<Result<(), String>>,
}

impl Order {
    /// Returns the offered files that the order wants, or an error for a file that is not offered.
    pub fn choose(&self, offers: Offers) -> Result<Offers, String> {
        let Some(wanted) = &self.file else { return Ok(offers) };
        let name = |offer: &Offer| match offer {
            Offer::Stdin => "-".to_owned(),
            Offer::File { name, .. } => name.to_string(),
        };
        let names: Vec<String> = offers.found.iter().take(LISTED).map(|offer| format!("'{}'", name(offer))).collect();
        let found: Vec<Offer> = offers.found.into_iter().filter(|offer| name(offer) == *wanted).collect();
        if !found.is_empty() {
            return Ok(Offers::only(found));
        }
        let bad: Vec<&str> = offers.bad.iter().take(LISTED).map(String::as_str).collect();
        let there = if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) };
        let bad = if bad.is_empty() { String::new() } else { format!("; these cannot be sent: {}", bad.join("; ")) };
        Err(format!("no file '{wanted}' is offered; {there}{bad}"))
    }

    /// Reports the end of the work.
    pub fn ended(self, result: Result<(), String>) {
        // Without a reader, the control has ended.
        let _ = self.ended.send(result);
    }
}

/// Starts that others ask for.
pub struct Orders(Heard<Order>);

impl Orders {
    /// Returns the next start; `None` after an interrupt.
    pub fn next(&self, interrupt: &Interrupt) -> Option<Order> {
        loop {
            if interrupt.asked() {
                return None;
            }
            match self.0.recv_timeout(TURN) {
                Ok(order) => return Some(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

/// Puts a sender under control. Its starts, if others may start it, come from the second value.
pub fn controlled(sender: &Arc<Sender>, on_start: bool) -> (Arc<ControlledSender>, Option<Orders>) {
    if !on_start {
        return (ControlledSender::new(sender.clone()), None);
    }
    // One start is carried out at a time, so one place is enough.
    let (tell, heard) = sync_channel::<Order>(1);
    let ask = move |order: &StartOrder<'_>| {
        let gone = |_| "the program is ending".to_owned();
        let (ended, result) = channel();
        let order = Order { parameter: order.parameter.to_owned(), file: order.file.map(str::to_owned), ended };
        tell.send(order).map_err(|_| "the program is ending".to_owned())?;
        result.recv().map_err(gone)?
    };
    (ControlledSender::starting(sender.clone(), ask), Some(Orders(heard)))
}

/// Returns an error if standard input would be sent more than once.
pub fn check(offers: &Offers, on_start: bool) -> Result<(), &'static str> {
    if on_start && offers.total().is_none() {
        Err("standard input cannot be sent at each start; leave --on-start out")
    } else {
        Ok(())
    }
}
