//! The queue of commands from subscription handles to the worker of the directory.

use std::sync::Arc;

use parking_lot::Mutex;
use tampu_bus::Alarm;

use super::subscriber::SubscriptionState;
use crate::names_reader::Families;

/// A change of the set of subscriptions.
pub(super) enum Command {
    /// Adds a subscription.
    Subscribe(Arc<SubscriptionState>),
    /// Ends a subscription.
    Unsubscribe(Arc<SubscriptionState>),
    /// Reads the declarations of these families, too.
    Know(Families),
}

/// Commands that wait for the directory's worker.
#[derive(Default)]
pub(super) struct SubscriptionCommands {
    pending: Mutex<Vec<Command>>,
    /// Wakes the worker. It is rung under the lock: the worker then either waits at this alarm, or takes the commands before it
    /// waits at a newer one.
    alarm: Mutex<Option<Alarm>>,
}

impl SubscriptionCommands {
    /// Returns an empty queue that wakes its worker by `alarm`.
    pub fn new(alarm: Alarm) -> SubscriptionCommands {
        SubscriptionCommands { pending: Mutex::default(), alarm: Mutex::new(Some(alarm)) }
    }

    /// Wakes the worker by another alarm from now on.
    pub fn set_alarm(&self, alarm: Alarm) {
        *self.alarm.lock() = Some(alarm);
    }

    /// Adds a command and wakes the worker if the queue was empty.
    pub fn send(&self, command: Command) {
        let mut pending = self.pending.lock();
        let first = pending.is_empty();
        pending.push(command);
        drop(pending);
        if first {
            self.wake();
        }
    }

    /// Takes all commands.
    pub fn take(&self) -> Vec<Command> {
        std::mem::take(&mut *self.pending.lock())
    }

    /// Wakes the worker.
    pub fn wake(&self) {
        if let Some(alarm) = &*self.alarm.lock() {
            alarm.ring();
        }
    }
}
