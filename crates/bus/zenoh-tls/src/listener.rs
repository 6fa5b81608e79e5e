//! The accepting end.

use std::{
    collections::HashMap,
    fs, io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tampu_tls::{TlsError, mutual::Files};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, TlsStream, rustls::ServerConfig};
use tokio_util::sync::CancellationToken;
use zenoh_link_commons::NewLinkChannelSender;
use zenoh_result::ZResult;

use crate::admission::admit;

/// Time limit of a handshake. A caller that says nothing takes a place among [`HANDSHAKES`] for this long.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Handshakes at the same time. Further callers wait in the kernel's queue. Each takes an open file.
const HANDSHAKES: usize = 256;

/// Handshakes of one address at the same time. Further connections of it are closed, so that it keeps no others out.
const HANDSHAKES_OF_ONE: usize = 64;

/// Pause after an error of accepting, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Modification times of the three files.
type Stamps = [Option<SystemTime>; 3];

/// The settings of new connections, read again when a file has changed.
pub(crate) struct Identity {
    files: Files,
    stamps: Stamps,
    config: Arc<ServerConfig>,
}

impl Identity {
    pub fn read(files: Files) -> Result<Identity, TlsError> {
        let stamps = stamps(&files);
        let config = Arc::new(files.server_config()?);
        Ok(Identity { files, stamps, config })
    }

    /// Returns the settings for the next connection. While changed files are invalid, the earlier settings stay in use.
    fn current(&mut self) -> Arc<ServerConfig> {
        let now = stamps(&self.files);
        if now != self.stamps {
            match self.files.server_config() {
                Ok(config) => (self.config, self.stamps) = (Arc::new(config), now),
                // A reason that passes, such as too many open files: the next connection tries again.
                Err(why) => tracing::warn!("the renewed certificate is not used: {why}"),
            }
        }
        self.config.clone()
    }
}

fn stamps(files: &Files) -> Stamps {
    [&files.authority, &files.certificate, &files.key].map(|path| fs::metadata(path).and_then(|file| file.modified()).ok())
}

/// Accepts connections until the token is cancelled. Handshakes run beside each other: a slow one delays nobody.
pub(crate) async fn accept(
    listener: TcpListener,
    mut identity: Identity,
    token: CancellationToken,
    links: NewLinkChannelSender,
) -> ZResult<()> {
    let places = Arc::new(Semaphore::new(HANDSHAKES));
    let callers: Callers = Arc::default();
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = token.cancelled() => return Ok(()),
            next = next => next,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(why) => {
                tracing::warn!("accepting a connection: {why}");
                sleep(PAUSE).await;
                continue;
            }
        };
        let Some(caller) = Caller::admit(&callers, from.ip()) else { continue };
        let (config, links, token) = (identity.current(), links.clone(), token.clone());
        let certificate = identity.files.certificate.clone();
        tokio::spawn(async move {
            let _places = (place, caller);
            let result = tokio::select! {
                () = token.cancelled() => return,
                result = shake_hands(stream, config, certificate, &links) => result,
            };
            if let Err(why) = result {
                tracing::warn!("TLS handshake with {from}: {why}");
            }
        });
    }
}

async fn shake_hands(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    certificate: PathBuf,
    links: &NewLinkChannelSender,
) -> ZResult<()> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "not complete within 5 s");
    let stream = timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await.map_err(late)??;
    links.send_async(admit(TlsStream::Server(stream), certificate)?).await?;
    Ok(())
}

/// Handshakes under way by address.
type Callers = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// A handshake of an address, counted until it is dropped.
struct Caller {
    callers: Callers,
    address: IpAddr,
}

impl Caller {
    /// Counts a handshake; `None` if the address has its share.
    fn admit(callers: &Callers, address: IpAddr) -> Option<Caller> {
        let mut counts = callers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= HANDSHAKES_OF_ONE {
            return None;
        }
        *count += 1;
        Some(Caller { callers: callers.clone(), address })
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut counts = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// Listens at an address, and returns it with the port that was assigned.
pub(crate) async fn listen(address: &str) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}
