//! Sessions of programs on other hosts: TCP with TLS 1.3, and a token in HELLO.
//!
//! ```text
//! client == TLS == a task of the runtime -- socket pair -- a connection, as of a program of this host
//! ```
//! Decision: the bytes of a TLS stream pass through a socket pair, so a session knows one kind of connection. Rejected:
//! sessions on the runtime as well. They wait for the bus, which blocks, and would be written twice.

use std::{io, net::SocketAddr, os::unix::net::UnixStream as StdStream, sync::Arc, time::Duration};

use tampu_tls::ServerCertificate;
use tampu_workers::{OnPanic, Running, RunningGuard, WorkerThread};
use tokio::{
    io::{AsyncWriteExt, copy, split},
    net::{TcpListener, TcpStream, UnixStream},
    runtime::{Builder, Runtime},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    connection::{Peer, serve},
    limits::{GREETING, UNGREETED},
    sessions::Sessions,
    tokens::Tokens,
};

/// Pause after an error of accepting.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens beyond the host. It ends when dropped.
pub(super) struct RemoteListener {
    address: SocketAddr,
    /// Ends all connections when it is dropped.
    runtime: Option<Runtime>,
}

impl RemoteListener {
    /// Listens at an address.
    pub fn start(
        address: SocketAddr,
        certificate: Arc<ServerCertificate>,
        tokens: Tokens,
        sessions: &Arc<Sessions>,
    ) -> io::Result<RemoteListener> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("gateway tls").enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let shared =
            Arc::new(Remote { certificate, tokens: Arc::new(tokens), sessions: sessions.clone(), begun: Running::new() });
        runtime.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // A connection too many is closed, as it has proved nothing yet.
                        let Some(place) = shared.begun.try_enter(UNGREETED) else { continue };
                        let shared = shared.clone();
                        tokio::spawn(async move { shared.serve(stream, place).await });
                    }
                    Err(_) => sleep(PAUSE).await,
                }
            }
        });
        Ok(RemoteListener { address, runtime: Some(runtime) })
    }

    /// Returns the address with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RemoteListener {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct Remote {
    certificate: Arc<ServerCertificate>,
    tokens: Arc<Tokens>,
    sessions: Arc<Sessions>,
    /// Connections whose HELLO has not come.
    begun: Running,
}

impl Remote {
    async fn serve(&self, stream: TcpStream, place: RunningGuard) {
        let shaken = timeout(GREETING, TlsAcceptor::from(self.certificate.config()).accept(stream)).await;
        let Ok(Ok(stream)) = shaken else { return };
        let _ = stream.get_ref().0.set_nodelay(true);
        let Ok((ours, theirs)) = StdStream::pair() else { return };
        let (sessions, peer) = (self.sessions.clone(), Peer::Token(self.tokens.clone()));
        let worker = WorkerThread::named("gateway connection").stack_size(256 << 10);
        if worker.spawn(OnPanic::ReportOnly, move || serve(theirs, &peer, &sessions, place)).is_err() {
            return;
        }
        let Ok(ours) = ours.set_nonblocking(true).and_then(|()| UnixStream::from_std(ours)) else { return };
        let (mut from_client, mut to_client) = split(stream);
        let (mut from_hub, mut to_hub) = ours.into_split();
        // It ends with either side; a lost connection is the session's to resume.
        tokio::select! {
            _ = copy(&mut from_client, &mut to_hub) => {}
            _ = copy(&mut from_hub, &mut to_client) => {
                let _ = timeout(GREETING, to_client.shutdown()).await;
            }
        }
    }
}
