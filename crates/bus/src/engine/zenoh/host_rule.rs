//! Rules about hosts, handed to the links with certificates.

use std::{net::SocketAddr, sync::Arc};

use crate::{
    connect::{Encryption, Lan},
    engine::AskForHost,
};

/// A rule that links ask. They ask it as long as this lives.
pub(super) type HeldRule = Arc<dyn zenoh_link_tls::HostRule>;

struct Rule(AskForHost);

impl zenoh_link_tls::HostRule for Rule {
    fn refusal(&self, host: &str, own: SocketAddr, dialed: bool) -> Option<String> {
        (self.0)(host, own, dialed)
    }
}

/// Makes links that show this network's certificate ask the rule. Without certificates hosts have no names.
pub(super) fn ask_for_hosts(lan: Option<&Lan>, rule: AskForHost) -> Option<HeldRule> {
    let Some(Encryption::Tls(directory)) = lan.map(|lan| &lan.encryption) else { return None };
    let rule: HeldRule = Arc::new(Rule(rule));
    zenoh_link_tls::ask_for_hosts(&directory.host(), &rule);
    Some(rule)
}
