//! Received files: each transfer becomes a file, written by the connection's own thread.

use std::{io, sync::Arc};

use tampu_bulk::{
    Name,
    handler::{CallbackError, Connection, Data, End, Handler, Start},
    message::Fault,
    store::{Incoming, Store, Taken, why_incomplete},
};

use crate::bulk::{
    item::{Content, Received},
    queue::ItemQueue,
};

/// The transfer under way.
struct Current {
    received: Received,
    incoming: Option<Incoming>,
}

/// Handler of a flow that writes files.
pub struct Filer {
    flow: Name,
    label: Arc<str>,
    store: Arc<Store>,
    queue: Arc<ItemQueue>,
    current: Option<Current>,
    /// Shared by all handlers of an opening.
    _opening: Arc<()>,
}

impl Filer {
    /// Makes the handler of a flow.
    pub fn new(flow: Name, store: Arc<Store>, queue: Arc<ItemQueue>, opening: Arc<()>) -> Filer {
        let label = flow.as_str().into();
        Filer { flow, label, store, queue, current: None, _opening: opening }
    }

    fn fail(&mut self, error: &io::Error) -> CallbackError {
        let Some(current) = &mut self.current else { return CallbackError::give_up(error.to_string()) };
        let text = format!("{}: {error}", current.received.name);
        current.received.path = current.incoming.take().and_then(|mut incoming| incoming.give_up());
        current.received.why = Some(text.clone());
        CallbackError::give_up(text)
    }
}

impl Handler for Filer {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        let Taken { incoming, name, parameter, .. } = self.store.take(&self.flow, start);
        let had = incoming.as_ref().map_or(0, |incoming| incoming.had);
        let received = Received {
            transfer: start.transfer,
            sender: start.sender.to_string(),
            name,
            parameter,
            path: None,
            complete: false,
            why: None,
            bytes: 0,
            had,
            seconds: 0.0,
            lost: Vec::new(),
            faults: Vec::new(),
        };
        let mut current = Current { received, incoming: None };
        let begun = incoming.map(|incoming| current.incoming = Some(incoming));
        self.current = Some(current);
        begun.map(|()| had).map_err(|error| self.fail(&error))
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        let Some(Current { incoming: Some(incoming), .. }) = &mut self.current else { return Ok(()) };
        incoming.write(data.bytes, data.offset).map_err(|error| self.fail(&error))
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        let Some(Current { mut received, incoming }) = self.current.take() else { return Ok(()) };
        match incoming {
            Some(incoming) if end.complete => match incoming.complete(end.offset) {
                Ok(path) => received.path = Some(path),
                Err(error) => received.why = Some(format!("{}: {error}", received.name)),
            },
            Some(mut incoming) => received.path = incoming.give_up(),
            None => {}
        }
        received.complete = end.complete && received.why.is_none();
        received.why = received.why.or_else(|| why_incomplete(end));
        received.bytes = end.bytes;
        received.seconds = end.took.as_secs_f64();
        received.lost.clone_from(&end.lost);
        received.faults.clone_from(&end.faults);
        // The sender already knows about an incomplete transfer.
        let failed = received.why.clone().filter(|_| end.complete).map(CallbackError::give_up);
        self.queue.tell(&self.label, Content::File(received));
        failed.map_or(Ok(()), Err)
    }

    fn fault(&mut self, fault: &Fault) {
        self.queue.tell(&self.label, Content::Fault(fault.clone()));
    }

    fn connection(&mut self, change: &Connection) {
        self.queue.tell(&self.label, Content::Connection(change.clone()));
    }
}
