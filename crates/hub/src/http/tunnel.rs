//! Connections that leave HTTP: a response with status 101 names the task that gets the bytes.
//!
//! Decision: the task runs where the requests of the connection ran. So the connection keeps its place among all and
//! among those of its address, and ends with the server. Rejected: a task of its own, which nothing counts.

use std::{future::Future, pin::Pin, sync::Arc};

use hyper::upgrade::{OnUpgrade, Upgraded};

use super::connections::Busy;

/// The life of a connection after HTTP.
pub type TunnelTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An extension of a response: makes the task that gets the connection. It is called once.
#[derive(Clone)]
pub struct Tunnel(pub Arc<dyn Fn(Upgraded) -> TunnelTask + Send + Sync>);

/// A connection on its way out of HTTP.
pub(super) struct Leaving {
    /// Gives the bytes when the response is written.
    pub connection: OnUpgrade,
    /// Gets the bytes.
    pub tunnel: Tunnel,
    /// Keeps the connection from being closed as an idle one.
    pub busy: Busy,
}

impl Leaving {
    /// Runs the task to its end.
    pub async fn run(self) {
        let Leaving { connection, tunnel, busy } = self;
        if let Ok(upgraded) = connection.await {
            (tunnel.0)(upgraded).await;
        }
        drop(busy);
    }
}
