//! A running hub: all roles in this process, or each in a process of its own.

use std::{path::PathBuf, sync::Arc};

use tampu_bus::{Participant, QosTable, connect::Settings, engine::Engine};
use tampu_hub::{
    Config, Hub, HubError,
    config::Role,
    private::PrivateError,
    supervisor::{
        Supervisor, SupervisorError,
        handover::{StartFailure, StartReport},
    },
};
use tampu_types::SourceName;

use crate::{demo::shift_log, failure::Failure, interrupt::Interrupt, time_expression::now};

/// A running hub.
pub enum Running {
    /// All roles are in this process.
    Whole(Box<Hub>),
    /// Each role has a process, and this one supervises them.
    Roles(Box<Supervisor>),
}

impl Running {
    /// Starts a hub as its configuration says. With `demo`, its logbook has the entries of a night.
    pub fn start(config: Config, demo: bool, interrupt: &Interrupt) -> Result<Running, Failure> {
        if !config.in_process {
            let supervisor = Supervisor::start(config, demo, || interrupt.asked()).map_err(not_supervised)?;
            return Ok(Running::Roles(Box::new(supervisor)));
        }
        let hub = Hub::start(config).map_err(failure)?;
        if let Some(book) = hub.book().filter(|_| demo) {
            shift_log::begin(&**book.store(), now()).map_err(|error| Failure::failed("the demo's logbook", error))?;
        }
        Ok(Running::Whole(Box::new(hub)))
    }

    pub fn config(&self) -> &Config {
        match self {
            Running::Whole(hub) => hub.config(),
            Running::Roles(supervisor) => supervisor.config(),
        }
    }

    pub fn client_settings(&self) -> &Settings {
        match self {
            Running::Whole(hub) => hub.client_settings(),
            Running::Roles(supervisor) => supervisor.client_settings(),
        }
    }

    /// Returns the addresses of the roles.
    pub fn report(&self) -> StartReport {
        match self {
            Running::Whole(hub) => hub.report(),
            Running::Roles(supervisor) => supervisor.report().clone(),
        }
    }

    /// Returns the directory of the records, if the hub collects.
    pub fn records(&self) -> Option<PathBuf> {
        let config = self.config();
        config.roles.contains(&Role::Collector).then(|| config.log_dir())
    }

    pub fn engine(&self) -> Result<Arc<dyn Engine>, Failure> {
        let engine = match self {
            Running::Whole(hub) => Some(hub.engine()),
            Running::Roles(supervisor) => supervisor.engine(),
        };
        engine.cloned().ok_or_else(|| Failure::Failed("the hub has left the bus".to_owned()))
    }

    /// Joins the hub's bus, for its live log.
    pub fn join(&self, name: &str) -> Result<Participant, Failure> {
        let source = SourceName::new(name).map_err(|error| Failure::Failed(error.to_string()))?;
        Participant::on(self.engine()?, self.config().domain.clone(), source, QosTable::default())
            .map_err(|error| Failure::Failed(error.to_string()))
    }

    /// Ends the hub in order.
    pub fn stop(self) {
        match self {
            Running::Whole(hub) => hub.stop(),
            Running::Roles(supervisor) => supervisor.stop(),
        }
    }
}

/// Distinguishes wrong settings from other failures of a start.
pub fn failure(error: HubError) -> Failure {
    match error {
        HubError::Config(error) | HubError::Private(PrivateError::Config(error)) => Failure::Usage(error.to_string()),
        HubError::Denied(denied) => Failure::Usage(denied.to_string()),
        other => Failure::Failed(other.to_string()),
    }
}

fn not_supervised(error: SupervisorError) -> Failure {
    match error {
        SupervisorError::Hub(error) => failure(error),
        SupervisorError::Role(StartFailure { text, usage: true, .. }) => Failure::Usage(text),
        // The user has asked for the end.
        SupervisorError::Interrupted => Failure::Closed,
        other => Failure::Failed(other.to_string()),
    }
}
