//! The offering side: an offer answers to its name, after the access hook has agreed.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tampu_bus::{
    BusError, Participant,
    access::{Access, Resource, Verb},
    engine::Guard,
    service::{Limits, Permission, Request, serve},
};
use tampu_types::TopicName;

use super::question::{CONTROL, ControlCommand, ControlQuestion, ControlState};
use crate::Name;

/// Commands that an offer answers at once.
const AT_ONCE: usize = 16;
/// Longest wait of a program that ends for the answers to its commands. A stop often is what ends it.
const ENDING: Duration = Duration::from_secs(1);
/// Longest wait until the offer can be found.
const DECLARING: Duration = Duration::from_secs(1);
/// Longest command in bytes.
const QUESTION_LIMIT: usize = 64 << 10;

/// A sender or a receiver that can be offered.
pub(super) trait Controllable: Send + Sync + 'static {
    /// Returns the state under this name, with the report of all flows on demand. Its process is left empty.
    fn state(&self, name: &Name, with_report: bool) -> ControlState;
    /// Carries a command out, or returns the reason why not. It may wait.
    fn obey(&self, command: &ControlCommand) -> Result<(), String>;
}

/// Answers to a name until the guard is dropped, which waits for answers under way. The weak reference keeps the service from holding its owner open.
pub(super) fn offer<C: Controllable>(participant: &Participant, name: Name, controlled: &Arc<C>) -> Result<Guard, BusError> {
    let of: Weak<C> = Arc::downgrade(controlled);
    let place = OfferPlace {
        resource: Resource::Service(format!("{CONTROL}/{name}")),
        name,
        process: participant.incarnation().to_string(),
        source: participant.source().to_string(),
    };
    let limits = Limits { question: QUESTION_LIMIT, ending: ENDING, ..Limits::on_threads("bulk-control", AT_ONCE) };
    let handler = move |request: Request| {
        if let Some(controlled) = of.upgrade() {
            answer(&request, &place, &*controlled);
        }
    };
    let guard = serve(participant, &TopicName::new(CONTROL)?, Permission::ByHandler(Access::of_host()), &limits, handler)?;
    // The program may show at once that it works. A command that comes then must find the offer.
    participant.await_declared(DECLARING);
    Ok(guard)
}

/// Name of an offer, and the process that makes it.
struct OfferPlace {
    name: Name,
    resource: Resource,
    process: String,
    source: String,
}

impl OfferPlace {
    fn state(&self, controlled: &dyn Controllable, with_report: bool) -> ControlState {
        let state = controlled.state(&self.name, with_report);
        ControlState { process: self.process.clone(), source: self.source.clone(), ..state }
    }
}

fn answer(request: &Request, place: &OfferPlace, controlled: &dyn Controllable) {
    let OfferPlace { name, resource, process, .. } = place;
    let question = match request.json_or_default::<ControlQuestion>() {
        Ok(question) => question,
        Err(why) => return request.refuse(why),
    };
    let Some(asked) = &question.name else {
        if question != ControlQuestion::default() {
            return request.refuse("a command needs the `name` of an offer");
        }
        if request.may(Verb::Read, resource) || request.may(Verb::Set, resource) {
            request.answer(&place.state(controlled, false));
        }
        return;
    };
    // Another offer of this name answers.
    if asked.as_str() != name.as_str() || question.process.as_deref().is_some_and(|wanted| wanted != process.as_str()) {
        return;
    }
    let verb = if question.command == ControlCommand::State { Verb::Read } else { Verb::Set };
    if let Err(denied) = request.require_for(verb, resource) {
        return request.deny(denied);
    }
    if let Err(why) = controlled.obey(&question.command) {
        return request.refuse(format_args!("'{name}': {why}"));
    }
    if verb == Verb::Set {
        request.carried_out(verb, &described(name, &question.command));
    }
    request.answer(&place.state(controlled, true));
}

/// Describes a command for the audit.
fn described(name: &Name, command: &ControlCommand) -> String {
    format!("{name}: {}", serde_json::to_string(command).unwrap_or_default())
}
