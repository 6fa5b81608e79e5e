//! Configuration of each kind of session. Every number here was chosen by measurement; the reasons stand beside them.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use tampu_tls::CertificateDir;

use zenoh::config::Config;

use super::credentials::{Credentials, locator};
use crate::{connect::Endpoint, engine::EngineError};

/// The engine's name.
pub(super) const NAME: &str = "zenoh";

/// Longest batch that travels as one piece. With the engine's own header it fits the frame of 65 535 bytes. Longer ones
/// made TCP send a second, nearly empty segment.
pub(super) const BATCH: usize = 61_440;

/// Longest message; receivers refuse to assemble more.
pub(super) const MESSAGE: usize = 64 << 20;

/// Lease on a network without TLS, where only silence reveals a cut cable. A cut must be reported within 2 s.
const NETWORK_LEASE: Duration = Duration::from_millis(1_600);

/// Lease on a network with TLS. There `zenoh-link-tls` finds out about silence from the kernel. A reader of the engine that
/// gets no time for a lease takes a link for dead: on a host that starts hundreds of processes it may take seconds.
const TLS_LEASE: Duration = Duration::from_secs(10);

/// Lease on one host, where the kernel reports every death at once. A short lease would only disconnect processes that
/// are stopped for a while (debuggers, swapping). The heartbeats of the layer above report these without losing the
/// connection. A node on the network has one lease for all its connections: processes stopped for longer reconnect.
const HOST_LEASE: Duration = Duration::from_secs(60);

/// Keep-alive messages per lease.
const KEEP_ALIVE: u32 = 3;

/// Keep-alive messages per lease with TLS: two in a second, which show silence.
const TLS_KEEP_ALIVE: u32 = 20;

/// Time that a full link may delay a sample before it is dropped, in us. With 0 the slowest reader lost almost
/// everything, because the queue drains in bursts. At a node it must be short, because it delays the writer's other
/// readers.
const NODE_WAIT_BEFORE_DROP_US: u32 = 1_000;

/// The same time at a process. Its link leads to a node, which reads all the time while it runs: waiting is cheaper
/// than dropping.
const WAIT_BEFORE_DROP_US: u32 = 10_000;

const WAIT_BEFORE_DROP: &str = "transport/link/tx/queue/congestion_control/drop/wait_before_drop";

/// Time in us that a full link may delay messages that are never dropped (declarations, questions, answers). After it
/// the connection is closed. So a process that stops in the middle of an answer delays its node's other processes only
/// once, by this time.
const WAIT_BEFORE_CLOSE_US: u32 = 500_000;

/// Queues of ordinary and of urgent batches.
const QUEUES: [&str; 2] = ["transport/link/tx/queue/size/data", "transport/link/tx/queue/size/data_high"];

/// Frames queued per priority and link. At a process a few keep the link busy, and more would only add latency.
const QUEUE_FRAMES: u32 = 4;

/// The same number where many readers are served: the engine's maximum, allocated when needed. On a busy host a reader
/// may not run for several milliseconds. Every drop costs it a question, and its writer a pause.
const NODE_QUEUE_FRAMES: u32 = 16;

/// Connections that may be half open at a node: hundreds of processes start at once when a site is switched on.
const PENDING_CONNECTIONS: u32 = 1_000;

/// Connections of one session.
const CONNECTIONS: u32 = 10_000;

/// Timeout for opening a connection on this host. A stopped node accepts connections but sends nothing.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout for opening a connection on the network. After a cut the kernel repeats its first packets ever more rarely.
/// A new attempt finds the repaired cable sooner.
const NETWORK_OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// Time that a session without a node waits for the peers it has found. It begins as soon as all have answered.
const PEERS_TIMEOUT: Duration = Duration::from_millis(500);

/// Purpose of a session.
#[derive(Debug, Clone)]
pub(super) enum Role {
    /// A process at its host's node, at a hub elsewhere, or at another process's direct endpoint.
    Client { to: Endpoint, credentials: Option<Credentials> },
    /// A process without a node.
    Peer { listen: Endpoint, connect: Vec<Endpoint> },
    /// Node, or a process that accepts direct links. Callers must have the credentials, if there are any. `access` are the
    /// rules about links.
    Router { listen: Vec<Endpoint>, connect: Vec<Endpoint>, credentials: Option<(Credentials, PathBuf)>, access: Option<String> },
}

impl Role {
    /// Reports if it speaks on the network, or may.
    fn is_networked(&self) -> bool {
        let is_network = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Tcp(_));
        match self {
            Role::Client { to, .. } => is_network(to),
            Role::Peer { .. } => false,
            Role::Router { listen, connect, .. } => listen.iter().chain(connect).any(is_network),
        }
    }

    /// Returns the certificates, if connections over the network are encrypted.
    fn certificates(&self) -> Option<&CertificateDir> {
        match self {
            Role::Client { credentials, .. } => credentials.as_ref(),
            Role::Peer { .. } => None,
            Role::Router { credentials, .. } => credentials.as_ref().map(|(credentials, _)| credentials),
        }
        .and_then(|credentials| credentials.certificates.as_ref())
    }

    /// Returns the configuration of a session of this role.
    pub fn config(&self) -> Result<Config, EngineError> {
        let mut settings = common();
        let mut set = |key: &'static str, value: String| settings.push((key, value));
        let (lease, keep_alive, open_timeout) = match (self.is_networked(), self.certificates()) {
            (true, Some(_)) => (TLS_LEASE, TLS_KEEP_ALIVE, NETWORK_OPEN_TIMEOUT),
            (true, None) => (NETWORK_LEASE, KEEP_ALIVE, NETWORK_OPEN_TIMEOUT),
            (false, _) => (HOST_LEASE, KEEP_ALIVE, OPEN_TIMEOUT),
        };
        set("transport/link/tx/lease", lease.as_millis().to_string());
        set("transport/link/tx/keep_alive", keep_alive.to_string());
        set("transport/unicast/open_timeout", open_timeout.as_millis().to_string());
        match self {
            Role::Client { to, credentials } => {
                set("mode", quoted("client"));
                set("connect/endpoints", locators([to], self.certificates().is_some())?);
                set("connect/timeout_ms", "0".to_owned());
                if let Some(credentials) = credentials {
                    set("transport/auth/usrpwd/user", quoted(&credentials.user));
                    set("transport/auth/usrpwd/password", quoted(credentials.key.reveal()));
                }
            }
            Role::Peer { listen, connect } => {
                set("mode", quoted("peer"));
                set("listen/endpoints", locators([listen], false)?);
                set("connect/endpoints", locators(connect, false)?);
                set("connect/timeout_ms", "-1".to_owned());
                set("connect/exit_on_failure", "false".to_owned());
                set("scouting/delay", PEERS_TIMEOUT.as_millis().to_string());
            }
            Role::Router { listen, connect, credentials, access } => {
                if let Some(access) = access {
                    set("access_control", access.clone());
                }
                set("mode", quoted("router"));
                QUEUES.iter().for_each(|queue| set(queue, NODE_QUEUE_FRAMES.to_string()));
                set(WAIT_BEFORE_DROP, NODE_WAIT_BEFORE_DROP_US.to_string());
                let is_encrypted = self.certificates().is_some();
                set("listen/endpoints", locators(listen, is_encrypted)?);
                set("connect/endpoints", locators(connect, is_encrypted)?);
                set("connect/timeout_ms", "-1".to_owned());
                set("connect/exit_on_failure", "false".to_owned());
                // A router sleeps this long before it is ready, whether it scouts or not.
                set("scouting/delay", "0".to_owned());
                if let Some((credentials, users)) = credentials {
                    set("transport/auth/usrpwd/user", quoted(&credentials.user));
                    set("transport/auth/usrpwd/password", quoted(credentials.key.reveal()));
                    set("transport/auth/usrpwd/dictionary_file", quoted(&users.to_string_lossy()));
                }
            }
        }
        if let Some(directory) = self.certificates() {
            settings.extend(tls(directory)?);
        }
        let mut config = Config::default();
        for (key, value) in settings {
            config.insert_json5(key, &value).map_err(|why| EngineError::Refused {
                engine: NAME,
                doing: format!("setting {key}"),
                why: why.to_string(),
            })?;
        }
        Ok(config)
    }
}

/// TLS with certificates on both sides. The engine accepts TLS 1.3 alone then. The connecting side also checks that the
/// certificate names the address; the listening side accepts every certificate of the authority.
fn tls(directory: &CertificateDir) -> Result<Vec<(&'static str, String)>, EngineError> {
    let path = |path: PathBuf| match path.to_str() {
        Some(text) => Ok(quoted(text)),
        None => Err(EngineError::Unreachable {
            engine: NAME,
            place: path.display().to_string(),
            why: "paths of certificates are UTF-8".to_owned(),
        }),
    };
    let (certificate, key) = (path(directory.host())?, path(directory.host_key())?);
    Ok(vec![
        ("transport/link/tls/root_ca_certificate", path(directory.authority())?),
        ("transport/link/tls/enable_mtls", "true".to_owned()),
        ("transport/link/tls/verify_name_on_connect", "true".to_owned()),
        ("transport/link/tls/listen_certificate", certificate.clone()),
        ("transport/link/tls/listen_private_key", key.clone()),
        ("transport/link/tls/connect_certificate", certificate),
        ("transport/link/tls/connect_private_key", key),
        // A link that works goes on when a certificate expires; new ones are refused.
        ("transport/link/tls/close_link_on_expiration", "false".to_owned()),
    ])
}

fn common() -> Vec<(&'static str, String)> {
    let text = str::to_owned;
    vec![
        // The run-time directory and the configuration name all endpoints. Scouting would connect installations that share a
        // network, and gossip makes the mesh that fails at 100 processes.
        ("scouting/multicast/enabled", text("false")),
        ("scouting/gossip/enabled", text("false")),
        ("adminspace/enabled", text("false")),
        // Batches carry their own times.
        ("timestamping/enabled", text("false")),
        ("connect/retry", text("{ period_init_ms: 20, period_max_ms: 500, period_increase_factor: 2 }")),
        ("listen/timeout_ms", text("0")),
        ("listen/exit_on_failure", text("true")),
        ("transport/unicast/accept_timeout", OPEN_TIMEOUT.as_millis().to_string()),
        ("transport/unicast/accept_pending", PENDING_CONNECTIONS.to_string()),
        ("transport/unicast/max_sessions", CONNECTIONS.to_string()),
        ("transport/link/protocols", text("[\"unixsock-stream\", \"tcp\", \"tls\"]")),
        (QUEUES[0], QUEUE_FRAMES.to_string()),
        (QUEUES[1], QUEUE_FRAMES.to_string()),
        (WAIT_BEFORE_DROP, WAIT_BEFORE_DROP_US.to_string()),
        ("transport/link/tx/queue/congestion_control/block/wait_before_close", WAIT_BEFORE_CLOSE_US.to_string()),
        // The header and key of a message are added to the bytes that the layer above sends.
        ("transport/link/rx/max_message_size", (MESSAGE + BATCH).to_string()),
    ]
}

fn locators<'a>(endpoints: impl IntoIterator<Item = &'a Endpoint>, is_encrypted: bool) -> Result<String, EngineError> {
    let mut list = Vec::new();
    for endpoint in endpoints {
        let locator = locator(endpoint, is_encrypted).ok_or_else(|| EngineError::Unreachable {
            engine: NAME,
            place: endpoint.to_string(),
            why: "paths of sockets are UTF-8 without ?, # and ;".to_owned(),
        })?;
        list.push(quoted(&locator));
    }
    Ok(format!("[{}]", list.join(", ")))
}

/// Quotes a JSON string.
fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            control if control.is_control() => {
                let _ = write!(json, "\\u{:04x}", u32::from(control));
            }
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Key;

    #[test]
    fn every_setting_is_one_the_engine_knows() {
        let unix: Endpoint = "/run/tampu/a \"quoted\" path".parse().unwrap_or(Endpoint::Unix("/run/tampu/a \"q\"".into()));
        let tcp: Endpoint = "127.0.0.1:7447".parse().unwrap();
        let certificates = Some(CertificateDir::new("/etc/tampu/cert"));
        let credentials = Credentials { user: "lab".to_owned(), key: Key::new("a \\ \"key\" é").unwrap(), certificates };
        let roles = [
            Role::Client { to: tcp.clone(), credentials: Some(credentials.clone()) },
            Role::Peer { listen: unix.clone(), connect: vec![unix.clone()] },
            Role::Router {
                listen: vec![unix, tcp],
                connect: vec![],
                credentials: Some((credentials, "/run/users".into())),
                access: Some(super::super::gate::silent_callers()),
            },
        ];
        for role in roles {
            let config = role.config().unwrap();
            assert_eq!(config.get_json("scouting/multicast/enabled").unwrap(), "false");
            let frames = if matches!(role, Role::Router { .. }) { NODE_QUEUE_FRAMES } else { QUEUE_FRAMES };
            for queue in QUEUES {
                assert_eq!(config.get_json(queue).unwrap(), frames.to_string());
            }
        }
    }
}
