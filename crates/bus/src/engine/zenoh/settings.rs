//! How each kind of session is configured. Every number here was chosen by measuring; the reasons stand beside them.

use std::{fmt::Write as _, time::Duration};

use zenoh::config::Config;

use super::config::{Credentials, Endpoint};
use crate::engine::EngineError;

/// Batches up to this travel as one piece: with the engine's own header they fit its frame of 65 535 bytes, and longer ones
/// made TCP send a second, nearly empty segment.
pub(super) const BATCH: usize = 61_440;

/// The longest message; receivers refuse to put together more.
pub(super) const MESSAGE: usize = 64 << 20;

/// On the network silence is all a cut cable says, and it must be told within 2 s.
const NETWORK_LEASE: Duration = Duration::from_millis(1_600);

/// On one host the kernel tells of every death at once. A short lease there would only throw out processes that are
/// stopped for a while (debuggers, swapping), which the heartbeats of the layer above report without losing the connection.
/// A node on the network has one lease for all its connections: processes stopped for longer connect to it anew.
const HOST_LEASE: Duration = Duration::from_secs(60);

/// Messages of keeping alive per lease.
const KEEP_ALIVE: u32 = 3;

/// How long a full link may hold up a sample before it is dropped, in us. With 0 the slowest reader lost almost everything,
/// because the queue drains in bursts. At a node it must be short: it holds up the writer's other readers.
const NODE_WAIT_BEFORE_DROP_US: u32 = 1_000;

/// The same at a process, whose link leads to a node that always reads, if it runs: waiting is cheaper than dropping.
const WAIT_BEFORE_DROP_US: u32 = 10_000;

const WAIT_BEFORE_DROP: &str = "transport/link/tx/queue/congestion_control/drop/wait_before_drop";

/// How long a full link may hold up what is not dropped (declarations, questions, answers) before the connection is given
/// up, in us. A stopped process in the middle of an answer costs its node's other processes no more than this, once.
const WAIT_BEFORE_CLOSE_US: u32 = 500_000;

/// Frames queued a priority and link. At a process a few keep the link busy, and more would only lengthen the way.
const QUEUE_FRAMES: u32 = 4;

/// The same where many readers are served: the engine's most, allocated when needed. On a busy host a reader may not run for
/// several milliseconds, and every drop costs it a question and its writer a pause.
const NODE_QUEUE_FRAMES: u32 = 16;

/// Connections that may be half open at a node: hundreds of processes start at once when a site is switched on.
const PENDING_CONNECTIONS: u32 = 1_000;

/// Connections of one session.
const CONNECTIONS: u32 = 10_000;

/// For opening one connection on this host; a stopped node accepts connections but never says anything.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// For opening one on the network. After a cut the kernel repeats its first words ever more rarely; giving up and beginning
/// anew finds the mended cable sooner.
const NETWORK_OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a session without a node waits for the peers it has found; it begins as soon as all have answered.
const PEERS_TIMEOUT: Duration = Duration::from_millis(500);

/// What a session is for.
#[derive(Debug, Clone)]
pub(super) enum Role {
    /// A process at its host's node, at a hub elsewhere, or at another process's direct endpoint.
    Client { to: Endpoint, credentials: Option<Credentials> },
    /// A process without a node.
    Peer { listen: Endpoint, connect: Vec<Endpoint> },
    /// A node, or a process that takes direct links. Whoever connects must have the credentials, if there are any.
    Router { listen: Vec<Endpoint>, connect: Vec<Endpoint>, credentials: Option<(Credentials, std::path::PathBuf)> },
}

impl Role {
    /// Whether it speaks on the network, or may.
    fn is_networked(&self) -> bool {
        let is_network = |endpoint: &Endpoint| matches!(endpoint, Endpoint::Tcp(_));
        match self {
            Role::Client { to, .. } => is_network(to),
            Role::Peer { .. } => false,
            Role::Router { listen, connect, .. } => listen.iter().chain(connect).any(is_network),
        }
    }

    /// The configuration of a session of this role.
    pub fn config(&self) -> Result<Config, EngineError> {
        let mut settings = common();
        let mut set = |key: &'static str, value: String| settings.push((key, value));
        let (lease, open_timeout) =
            if self.is_networked() { (NETWORK_LEASE, NETWORK_OPEN_TIMEOUT) } else { (HOST_LEASE, OPEN_TIMEOUT) };
        set("transport/link/tx/lease", lease.as_millis().to_string());
        set("transport/unicast/open_timeout", open_timeout.as_millis().to_string());
        match self {
            Role::Client { to, credentials } => {
                set("mode", quoted("client"));
                set("connect/endpoints", locators([to])?);
                set("connect/timeout_ms", "0".to_owned());
                if let Some(credentials) = credentials {
                    set("transport/auth/usrpwd/user", quoted(&credentials.user));
                    set("transport/auth/usrpwd/password", quoted(credentials.key.reveal()));
                }
            }
            Role::Peer { listen, connect } => {
                set("mode", quoted("peer"));
                set("listen/endpoints", locators([listen])?);
                set("connect/endpoints", locators(connect)?);
                set("connect/timeout_ms", "-1".to_owned());
                set("connect/exit_on_failure", "false".to_owned());
                set("scouting/delay", PEERS_TIMEOUT.as_millis().to_string());
            }
            Role::Router { listen, connect, credentials } => {
                set("mode", quoted("router"));
                set("transport/link/tx/queue/size/data", NODE_QUEUE_FRAMES.to_string());
                set(WAIT_BEFORE_DROP, NODE_WAIT_BEFORE_DROP_US.to_string());
                set("listen/endpoints", locators(listen)?);
                set("connect/endpoints", locators(connect)?);
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
        let mut config = Config::default();
        for (key, value) in settings {
            config.insert_json5(key, &value).map_err(|why| EngineError::Refused {
                engine: super::NAME,
                doing: format!("setting {key}"),
                why: why.to_string(),
            })?;
        }
        Ok(config)
    }
}

fn common() -> Vec<(&'static str, String)> {
    let text = str::to_owned;
    vec![
        // Who is where is known from the run-time directory and the configuration. Scouting would let installations that
        // share a network find each other, and gossip makes the mesh that fails at 100 processes.
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
        ("transport/link/protocols", text("[\"unixsock-stream\", \"tcp\"]")),
        ("transport/link/tx/keep_alive", KEEP_ALIVE.to_string()),
        ("transport/link/tx/queue/size/data", QUEUE_FRAMES.to_string()),
        (WAIT_BEFORE_DROP, WAIT_BEFORE_DROP_US.to_string()),
        ("transport/link/tx/queue/congestion_control/block/wait_before_close", WAIT_BEFORE_CLOSE_US.to_string()),
        // The header and key of a message come on top of what the layer above sends.
        ("transport/link/rx/max_message_size", (MESSAGE + BATCH).to_string()),
    ]
}

fn locators<'a>(endpoints: impl IntoIterator<Item = &'a Endpoint>) -> Result<String, EngineError> {
    let mut list = Vec::new();
    for endpoint in endpoints {
        let locator = endpoint.locator().ok_or_else(|| EngineError::Unreachable {
            engine: super::NAME,
            place: endpoint.to_string(),
            why: "paths of sockets are UTF-8 without ?, # and ;".to_owned(),
        })?;
        list.push(quoted(&locator));
    }
    Ok(format!("[{}]", list.join(", ")))
}

/// A JSON string.
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
    use super::{super::config::Key, *};

    #[test]
    fn every_setting_is_one_the_engine_knows() {
        let unix: Endpoint = "/run/tampu/a \"quoted\" path".parse().unwrap_or(Endpoint::Unix("/run/tampu/a \"q\"".into()));
        let tcp: Endpoint = "127.0.0.1:7447".parse().unwrap();
        let credentials = Credentials { user: "lab".to_owned(), key: Key::new("a \\ \"key\" é").unwrap() };
        let roles = [
            Role::Client { to: tcp.clone(), credentials: Some(credentials.clone()) },
            Role::Peer { listen: unix.clone(), connect: vec![unix.clone()] },
            Role::Router { listen: vec![unix, tcp], connect: vec![], credentials: Some((credentials, "/run/users".into())) },
        ];
        for role in roles {
            let config = role.config().unwrap();
            assert_eq!(config.get_json("scouting/multicast/enabled").unwrap(), "false");
            let frames = if matches!(role, Role::Router { .. }) { NODE_QUEUE_FRAMES } else { QUEUE_FRAMES };
            assert_eq!(config.get_json("transport/link/tx/queue/size/data").unwrap(), frames.to_string());
        }
    }
}
