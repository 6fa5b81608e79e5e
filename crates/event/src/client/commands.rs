//! The queue of commands from subscription handles to the worker of the directory.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tampu_bus::Alarm;

use super::subscriber::SubscriptionState;

/// A change of the set of subscriptions.
pub(super) enum Command {
    /// Adds a subscription.
    Subscribe(Arc<SubscriptionState>),
    /// Ends a subscription.
    Unsubscribe(Arc<SubscriptionState>),
}

/// Commands that wait for the directory's worker.
#[derive(Default)]
pub(super) struct SubscriptionCommands {
    pending: Mutex<Vec<Command>>,
    /// Wakes the worker. It is set once, when the reader of declarations is open.
    alarm: OnceLock<Alarm>,
}

impl SubscriptionCommands {
    /// Returns an empty queue that wakes its worker by `alarm`.
    pub fn new(alarm: Alarm) -> SubscriptionCommands {
        let commands = SubscriptionCommands::default();
        // The cell is empty, so this cannot fail.
        let _ = commands.alarm.set(alarm);
        commands
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
        if let Some(alarm) = self.alarm.get() {
            alarm.ring();
        }
    }
}
