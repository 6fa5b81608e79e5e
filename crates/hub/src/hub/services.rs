//! The start of a hub's services beside archive and logbook: inputs, the bridge to Tango, and metrics.

use std::{io, path::Path, sync::Arc, time::Duration};

use tampu_bus::{Participant, QosTable, access::Access, engine::Engine};
use tampu_log::{LogSettings, Logger, Threshold, notice, warning};
use tampu_tango::{Bridge, BridgeError};
use tampu_tls::ServerCertificate;
use tampu_types::Level;

use super::{error::HubError, process::name_of};
use crate::{
    config::Config,
    gateway::{self, Gateway, Join, Tokens},
    http::server::Server,
    inputs::{self, Inputs},
    listen::ListenAddress,
    metrics::{self, Page},
};

/// Starts the configured inputs, each as a source of its own.
pub(super) fn start_inputs(
    config: &Config,
    participant: impl Fn(String) -> Result<Participant, HubError>,
    access: &Access,
) -> Result<Inputs, HubError> {
    let mut inputs = Inputs::default();
    let join = |name: &str| -> Result<(Participant, Logger), HubError> {
        let participant = participant(name_of(name))?;
        let mut settings = LogSettings::isolated(config.domain.clone(), participant.source().clone());
        settings.rings = participant.log_rings();
        settings.central = Threshold::From(Level::Trace);
        settings.queue_bytes = inputs::QUEUE;
        // Senders wait, and nothing of theirs is lost on a host that is busy for a while.
        settings.full_wait = Duration::from_secs(10);
        settings.access = access.clone();
        let logger = Logger::on(participant.clone(), settings).map_err(HubError::Log)?;
        Ok((participant, logger))
    };
    if config.syslog.enabled {
        let (participant, logger) = join("syslog")?;
        inputs.syslog(&config.syslog, config.quota.of(participant.source()), &participant, logger)?;
    }
    if config.epics.enabled {
        let (participant, logger) = join("epics")?;
        inputs.epics(&config.epics, config.quota.of(participant.source()), &participant, logger)?;
    }
    Ok(inputs)
}

/// Starts the bridge to Tango. It retries where something is missing there; the hub does not wait for it.
pub(super) fn start_tango(config: &Config, participant: &Participant, logger: Logger) -> Result<Bridge, BridgeError> {
    let database = config.tango.database(std::env::var("TANGO_HOST").ok());
    Bridge::start(participant, config.tango.clone(), database, move |news| {
        if news.is_trouble() {
            warning!(logger, "the bridge to Tango: {news}");
        } else {
            notice!(logger, "the bridge to Tango: {news}");
        }
    })
}

/// Starts the gateway. Each session that publishes joins the bus by `engine`, under its own name.
pub(super) fn start_gateway(
    config: &Config,
    engine: &Arc<dyn Engine>,
    qos: &QosTable,
    participant: Participant,
    access: &Access,
    directory: &Path,
    certificate: Option<Arc<ServerCertificate>>,
) -> Result<Gateway, HubError> {
    let (engine, domain, qos) = (engine.clone(), config.domain.clone(), qos.clone());
    let join: Join = Arc::new(move |source| {
        Participant::on(engine.clone(), domain.clone(), source, qos.clone()).map_err(|why| why.to_string())
    });
    let mut gateway = Gateway::start(participant, access.clone(), join, directory)
        .map_err(|why| HubError::Gateway { path: directory.join(gateway::SOCKET), why })?;
    if let (ListenAddress::At(address), Some(certificate), Some(path)) =
        (config.gateway.listen, certificate, &config.gateway.tokens)
    {
        let listening =
            Tokens::open(path).map_err(io::Error::other).and_then(|tokens| gateway.listen(address, certificate, tokens));
        listening.map_err(|why| HubError::RemoteGateway { address, why })?;
    }
    Ok(gateway)
}

/// Serves metrics, if the configuration has an address for them.
pub(super) fn start_metrics(
    config: &Config,
    certificate: Option<Arc<ServerCertificate>>,
    page: Page,
) -> Result<Option<Server>, HubError> {
    let ListenAddress::At(address) = config.metrics.listen else { return Ok(None) };
    metrics::serve(address, &config.metrics.hosts, certificate, page).map(Some).map_err(|why| HubError::Metrics { address, why })
}
