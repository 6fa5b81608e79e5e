//! The opening of a receiver: once, or each time that another program wants it.

use std::sync::{Arc, Weak};

use pyo3::PyErr;
use tampu_bulk::{
    Name, Receiver,
    control::OpenCommand,
    handler::Handler,
    receiver::{FlowSettings, Identity, OpenError, ReceiverSettings},
    store::Store,
};

use crate::bulk::{
    failure::{of_opening, other},
    files::Filer,
    queue::{Filler, ItemQueue},
};

/// Reason for which a receiver was not opened.
pub enum NotOpened {
    /// The command wants what the program does not have.
    Refused(String),
    /// The opening itself failed.
    Failed(OpenError),
}

impl NotOpened {
    /// Returns the reason for another program.
    pub fn text(&self) -> String {
        match self {
            NotOpened::Refused(why) => why.clone(),
            NotOpened::Failed(error) => error.to_string(),
        }
    }
}

impl From<NotOpened> for PyErr {
    fn from(why: NotOpened) -> PyErr {
        match why {
            NotOpened::Refused(why) => other(why),
            NotOpened::Failed(error) => of_opening(&error),
        }
    }
}

/// Parts of a receiver that is opened once, or again and again.
pub struct Opening {
    pub identity: Identity,
    pub stream: Name,
    pub place: ReceiverSettings,
    pub flows: Vec<FlowSettings>,
    pub queue: Arc<ItemQueue>,
    /// The place of received files; without it data comes into the queue.
    pub store: Option<Arc<Store>>,
    /// Alive as long as a handler of the last opening.
    pub last: Weak<()>,
}

impl Opening {
    /// Opens the receiver with its own settings, or with those of a command, which may be stricter.
    pub fn open(&mut self, asked: &OpenCommand) -> Result<Receiver, NotOpened> {
        if self.last.strong_count() > 0 {
            // Their items would come between those of the new transfers.
            return Err(NotOpened::Refused("the program has not taken all that the last opening received; try again".to_owned()));
        }
        let names: Vec<Name> = self.flows.iter().map(|flow| flow.name.clone()).collect();
        let chosen = asked.choose(&names).map_err(NotOpened::Refused)?;
        let token = Arc::new(());
        let handled = self.flows.iter().filter(|flow| chosen.contains(&&flow.name)).map(|flow| {
            let settings = asked.narrow(flow.clone()).map_err(NotOpened::Refused)?;
            Ok((settings, self.handler(&flow.name, token.clone())))
        });
        let handled = handled.collect::<Result<Vec<_>, NotOpened>>()?;
        self.last = Arc::downgrade(&token);
        Receiver::open(self.identity.clone(), self.stream.clone(), self.place.clone(), handled).map_err(NotOpened::Failed)
    }

    /// Returns the handler of a flow, which fills the queue or writes files.
    fn handler(&self, name: &Name, opening: Arc<()>) -> Box<dyn Handler> {
        match &self.store {
            Some(store) => Box::new(Filer::new(name.clone(), store.clone(), self.queue.clone(), opening)),
            None => Box::new(Filler { flow: name.as_str().into(), queue: self.queue.clone(), _opening: opening }),
        }
    }
}
