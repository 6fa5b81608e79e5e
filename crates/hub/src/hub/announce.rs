//! The log records of a hub that has started.

use tampu_log::{info, notice, warning};

use super::Hub;
use crate::{
    api,
    book::settings::PORT,
    history::EventHistory,
    supervisor::handover::{BookStart, StartReport},
};

impl Hub {
    pub(super) fn announce(&self) {
        let pid = std::process::id();
        match self.part {
            Some(part) => info!(self.logger, "the role {part} works"; pid = pid),
            None => {
                let roles: Vec<&str> = self.config.roles.iter().map(|role| role.name()).collect();
                notice!(self.logger, "hub of domain '{}' is up: {}", self.config.domain, roles.join(", "); pid = pid);
                if let Some(remark) = self.node.as_ref().and_then(|_| self.client.run_dir.remark()) {
                    warning!(self.logger, "{remark}");
                }
            }
        }
        if let Some(node) = &self.node {
            let left = node.reclaimed();
            info!(self.logger, "node at {}", node.dir().path().display());
            if left.sockets + left.rings > 0 {
                info!(
                    self.logger,
                    "removed the leftovers of dead processes: {} sockets, {} rings, {} bytes",
                    left.sockets,
                    left.rings,
                    left.bytes
                );
            }
        }
        if let Some(collecting) = &self.collecting {
            let (records, faults) = collecting.found();
            info!(self.logger, "records are kept in {}", collecting.directory().display(); records = records);
            faults.iter().for_each(|fault| warning!(self.logger, "the archive: {fault}"));
        }
        if let Some(history) = self.history.as_ref().map(EventHistory::history) {
            let (records, faults) = history.found();
            info!(self.logger, "events are kept in {}", history.directory().display(); records = records);
            faults.iter().for_each(|fault| warning!(self.logger, "the events' archive: {fault}"));
        }
        for address in self.inputs.addresses() {
            info!(self.logger, "receiving {address}"; address = address.as_str());
        }
        if let Some(gateway) = &self.gateway {
            info!(self.logger, "the gateway is at {}", gateway.path().display());
            if let Some(address) = gateway.remote() {
                info!(self.logger, "the gateway serves other hosts at {address}"; address = address.to_string());
            }
        }
        if let Some(metrics) = &self.metrics {
            for address in metrics.addresses() {
                let scheme = if self.config.metrics.is_encrypted() { "https" } else { "http" };
                info!(self.logger, "metrics are at {scheme}://{address}/metrics"; address = address.to_string());
            }
        }
        if let Some(book) = &self.book {
            info!(self.logger, "the logbook is kept in {}", book.kept_in());
            if let Some(url) = book.url() {
                info!(self.logger, "the logbook's API is at {url}{}", api::BASE; address = url.as_str());
            }
            if let Some(holder) = book.port_holder() {
                notice!(self.logger, "the port {} is taken by {holder}: the logbook uses another one", PORT);
            }
        }
        if self.inputs.addresses().is_empty() {
            return;
        }
        let config = &self.config;
        for (input, door) in [("syslog", config.syslog.udp), ("syslog", config.syslog.tcp), ("epics", config.epics.listen)] {
            let on = if input == "epics" { config.epics.enabled } else { config.syslog.enabled };
            if let Some(address) = door.beyond_this_host().filter(|_| on) {
                notice!(self.logger, "every program that reaches {address} can write to the log: {input} has no keys");
            }
        }
    }

    /// Returns the addresses of this hub, or of the part that this process runs.
    pub fn report(&self) -> StartReport {
        let book = self.book.as_ref().map(|book| BookStart {
            url: book.url(),
            elog_urls: book.elog_urls(),
            owner_url: book.owner_url(),
            port_holder: book.port_holder().map(str::to_owned),
            warning: book.guest_warning(),
            listen: book.listen(),
            elog: book.elog_listen(),
        });
        StartReport { addresses: self.addresses(), book }
    }
}
