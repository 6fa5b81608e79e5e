//! The asking side.

use std::time::Duration;

use bytes::Bytes;
use tampu_bus::{
    Participant,
    service::{CallError, call, call_json},
};

use super::question::{CONTROL, ControlCommand, ControlQuestion, ControlState};
use crate::Name;

/// Reason for a command that was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No program offers this name.
    #[error("no program offers the control '{name}'{}; a program offers one with 'tampu bulk send --control' or 'recv --control'", listed(.known))]
    Missing {
        /// The name in question.
        name: Name,
        /// The names that programs offer.
        known: Vec<String>,
    },
    /// Several programs offer this name.
    #[error("{} offer the control '{name}'; give each another name", .sources.join(" and "))]
    Several {
        /// The name in question.
        name: Name,
        /// The names of these programs on the bus.
        sources: Vec<String>,
    },
    /// The command is no valid JSON of a command.
    #[error("the command: {0}; spec/bulk-control.md has the commands")]
    Unreadable(String),
    /// The program was not reached, or refused.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl ControlError {
    /// Reports if no program was reached, as opposed to one that refused.
    pub fn is_unreachable(&self) -> bool {
        match self {
            ControlError::Missing { .. } => true,
            ControlError::Several { .. } | ControlError::Unreadable(_) => false,
            ControlError::Call(error) => error.is_unreachable(),
        }
    }
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) }
}

/// Returns all offers that answer within this time and that the asking program may see, by name.
pub fn list(participant: &Participant, timeout: Duration) -> Result<Vec<ControlState>, CallError> {
    let mut found: Vec<ControlState> = Vec::new();
    for part in call(participant, CONTROL, Bytes::new(), timeout)? {
        match part {
            // A refusal or an answer of another release takes no offer from the list of others.
            Ok(part) => found.extend(part.content.ok().and_then(|content| serde_json::from_slice(&content).ok())),
            Err(CallError::Unanswered(_)) => {}
            Err(error) => return Err(error),
        }
    }
    found.sort_by(|one, other| (one.name.as_str(), &one.source).cmp(&(other.name.as_str(), &other.source)));
    Ok(found)
}

/// Sends a command to the one offer of this name, and returns the state after it.
///
/// Names of offers are compared with case. Finding the offer and carrying the command out may each take the timeout.
pub fn command(
    participant: &Participant,
    name: &Name,
    command: ControlCommand,
    timeout: Duration,
) -> Result<ControlState, ControlError> {
    let all = list(participant, timeout)?;
    let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|offer| offer.name.as_str() == name.as_str());
    let process = match own.as_slice() {
        [one] => one.process.clone(),
        [] => {
            let known = others.into_iter().map(|offer| format!("'{}'", offer.name)).collect();
            return Err(ControlError::Missing { name: name.clone(), known });
        }
        several => {
            let sources = several.iter().map(|offer| offer.source.clone()).collect();
            return Err(ControlError::Several { name: name.clone(), sources });
        }
    };
    let question = ControlQuestion { name: Some(name.clone()), process: Some(process), command };
    Ok(call_json(participant, CONTROL, &question, timeout)?.first().json()?)
}

/// Sends a command as JSON, and returns the state as JSON; for other languages. Without a name it returns the list of offers,
/// and without a command the state.
pub fn command_json(
    participant: &Participant,
    name: Option<&Name>,
    asked: Option<&str>,
    timeout: Duration,
) -> Result<String, ControlError> {
    let unreadable = |why: serde_json::Error| ControlError::Unreadable(why.to_string());
    let asked = asked.map(serde_json::from_str).transpose().map_err(unreadable)?.unwrap_or_default();
    match name {
        Some(name) => serde_json::to_string(&command(participant, name, asked, timeout)?).map_err(unreadable),
        None if asked == ControlCommand::State => serde_json::to_string(&list(participant, timeout)?).map_err(unreadable),
        None => Err(ControlError::Unreadable("it needs the name of an offer".to_owned())),
    }
}
