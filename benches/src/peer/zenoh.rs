//! zenoh with its own batching, reliable, [`CongestionControl::Block`] (its protection against loss), multicast and
//! gossip off. It runs through a router (client, router, client) or from peer to peer, without shared memory.

use std::{net::TcpListener, path::Path, sync::Arc};

use zenoh::{
    Session, Wait,
    config::Config,
    pubsub::Publisher,
    qos::{CongestionControl, Reliability},
};

use crate::{
    payload::Message,
    process::{RoleMessage, orders, say},
    role::{self, Inbox, Outgoing, Speed},
};

const KEY: &str = "bench/data";

/// Arrangement of the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Writer and readers are clients of a router, over its unix socket.
    Router,
    /// The readers connect to the writer's unix socket.
    Unix,
    /// The readers connect to the writer by loopback TCP.
    Tcp,
}

struct Out<'a>(Publisher<'a>);

impl Outgoing for Out<'_> {
    #[inline]
    fn publish(&mut self, message: &Message) -> Result<(), String> {
        self.0.put(message.to_vec()).wait().map_err(|e| format!("zenoh put: {e}"))
    }
}

fn open(mode: &str, listen: Option<&str>, connect: Option<&str>) -> Result<Session, String> {
    let list = |endpoint: Option<&str>| endpoint.map_or("[]".to_owned(), |endpoint| format!("[\"{endpoint}\"]"));
    let mut config = Config::default();
    for (key, value) in [
        ("mode", format!("\"{mode}\"")),
        ("listen/endpoints", list(listen)),
        ("connect/endpoints", list(connect)),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("scouting/gossip/enabled", "false".to_owned()),
    ] {
        config.insert_json5(key, &value).map_err(|e| format!("zenoh {key}: {e}"))?;
    }
    zenoh::open(config).wait().map_err(|e| format!("zenoh open: {e}"))
}

/// Runs the router until the bench is over.
pub fn server(dir: &Path) -> Result<(), String> {
    let at = format!("unixsock-stream/{}", dir.join("zenoh.sock").display());
    let _session = open("router", Some(&at), None)?;
    say(&RoleMessage::At(at));
    let orders = orders();
    while orders.recv().is_ok() {}
    Ok(())
}

pub fn writer(shape: Shape, dir: &Path, router: &str, size: usize, speed: Speed) -> Result<(), String> {
    let at = match shape {
        Shape::Router => router.to_owned(),
        Shape::Unix => format!("unixsock-stream/{}", dir.join("writer.sock").display()),
        // zenoh does not report its port; a port that was free a moment ago nearly always still is.
        Shape::Tcp => {
            let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            format!("tcp/{}", free.map_err(|e| format!("a free port: {e}"))?)
        }
    };
    let session = match shape {
        Shape::Router => open("client", None, Some(&at))?,
        Shape::Unix | Shape::Tcp => open("peer", Some(&at), None)?,
    };
    let publisher = session
        .declare_publisher(KEY)
        .congestion_control(CongestionControl::Block)
        .reliability(Reliability::Reliable)
        .wait()
        .map_err(|e| format!("zenoh publisher: {e}"))?;
    say(&RoleMessage::At(at));
    role::write(Out(publisher), size, speed)
}

pub fn reader(shape: Shape, at: &str, size: usize) -> Result<(), String> {
    let session = open(if shape == Shape::Router { "client" } else { "peer" }, None, Some(at))?;
    let inbox = Arc::new(Inbox::new(size));
    let to = Arc::clone(&inbox);
    let _subscriber = session
        .declare_subscriber(KEY)
        .callback(move |sample| to.take(&sample.payload().to_bytes()))
        .wait()
        .map_err(|e| format!("zenoh subscriber: {e}"))?;
    role::read(&inbox)
}
