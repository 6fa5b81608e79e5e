//! The accepting end.

use std::{
    fs, io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Weak},
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
use zenoh_link_commons::{LinkUnicastTrait, NewLinkChannelSender};
use zenoh_result::{ZResult, bail};

use crate::{
    admission::{LOOK, refusal},
    link::TlsLink,
};

/// Time limit of a handshake. A caller that says nothing takes a place among [`HANDSHAKES`] for this long.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Handshakes at the same time. Further callers wait in the kernel's queue.
const HANDSHAKES: usize = 1_000;

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
            self.stamps = now;
            match self.files.server_config() {
                Ok(config) => self.config = Arc::new(config),
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
        let (config, links, token) = (identity.current(), links.clone(), token.clone());
        let certificate = identity.files.certificate.clone();
        tokio::spawn(async move {
            let _place = place;
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
    let cut = CancellationToken::new();
    let (link, name) = TlsLink::with_cut(TlsStream::Server(stream), cut.clone())?;
    let host = name.unwrap_or_default();
    if let Some(why) = refusal(&certificate, &host) {
        bail!("the host '{}' may not connect: {why}", host.escape_debug());
    }
    tokio::spawn(cut_when_refused(Arc::downgrade(&link), certificate, host, cut));
    links.send_async(link).await?;
    Ok(())
}

/// Asks for an open link from time to time if its host may still connect.
async fn cut_when_refused(link: Weak<dyn LinkUnicastTrait>, certificate: PathBuf, host: String, cut: CancellationToken) {
    loop {
        sleep(LOOK).await;
        if link.strong_count() == 0 {
            return;
        }
        if let Some(why) = refusal(&certificate, &host) {
            tracing::warn!("the host '{}' is shut out: {why}", host.escape_debug());
            return cut.cancel();
        }
    }
}

/// Listens at the first of these addresses that can be had.
pub(crate) async fn listen(address: &str) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}
