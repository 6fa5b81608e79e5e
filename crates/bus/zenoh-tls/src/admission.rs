//! Rules of a program about the hosts that may connect.
//!
//! The engine has no place for them, so they are found by the file of the own certificate. They are asked for each new
//! connection in both directions, and again every [`LOOK`] for open ones: a host that is shut out loses its connections.
//! A host that the network no longer reaches loses them too ([`silence`]).

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use tokio::{net::TcpStream, time::sleep};
use tokio_rustls::TlsStream;
use tokio_util::sync::CancellationToken;
use zenoh_link_commons::{LinkUnicast, LinkUnicastTrait};
use zenoh_result::{ZResult, bail};

use crate::{
    link::TlsLink,
    silence::{self, Silence},
};

/// Period of the looks at open connections.
const LOOK: Duration = Duration::from_secs(2);

/// Reports if the host with this certificate name may connect, or is told why not.
pub trait HostRule: Send + Sync {
    /// Returns the reason for which the host may not be connected. `own` is this end's address; `dialed` is true if this end
    /// has made the connection.
    fn refusal(&self, host: &str, own: SocketAddr, dialed: bool) -> Option<String>;
}

static RULES: Mutex<Vec<(PathBuf, Weak<dyn HostRule>)>> = Mutex::new(Vec::new());

/// Makes sessions that show this certificate ask the rule, as long as somebody holds it. Several rules must all agree.
pub fn ask_for_hosts(certificate: &Path, rule: &Arc<dyn HostRule>) {
    let mut rules = RULES.lock().unwrap_or_else(PoisonError::into_inner);
    rules.retain(|(_, held)| held.strong_count() > 0);
    rules.push((certificate.to_owned(), Arc::downgrade(rule)));
}

/// Returns the reason for which a host may not be connected to a session with this certificate.
fn refusal(certificate: &Path, host: &str, own: SocketAddr, dialed: bool) -> Option<String> {
    let rules: Vec<Arc<dyn HostRule>> = {
        let rules = RULES.lock().unwrap_or_else(PoisonError::into_inner);
        rules.iter().filter(|(of, _)| of == certificate).filter_map(|(_, rule)| rule.upgrade()).collect()
    };
    rules.iter().find_map(|rule| rule.refusal(host, own, dialed))
}

/// Token of each certificate that cuts all its links.
static LINKS: Mutex<Vec<(PathBuf, CancellationToken)>> = Mutex::new(Vec::new());

/// Returns a token for a new link of this certificate.
fn token(certificate: &Path) -> CancellationToken {
    let mut links = LINKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, all)) = links.iter().find(|(of, _)| of == certificate) {
        return all.child_token();
    }
    let all = CancellationToken::new();
    let one = all.child_token();
    links.push((certificate.to_owned(), all));
    one
}

/// Cuts all open links that show this certificate. Later ones may open.
pub fn cut_links(certificate: &Path) {
    let mut links = LINKS.lock().unwrap_or_else(PoisonError::into_inner);
    let cut: Vec<_> = links.extract_if(.., |(of, _)| of == certificate).collect();
    drop(links);
    cut.iter().for_each(|(_, all)| all.cancel());
}

/// Makes a link of a stream if the rules admit the other end's host, and asks them again while it is open.
pub(crate) fn admit(stream: TlsStream<TcpStream>, certificate: PathBuf) -> ZResult<LinkUnicast> {
    let own = stream.get_ref().0.local_addr()?;
    let dialed = matches!(stream, TlsStream::Client(_));
    let cut = token(&certificate);
    let (link, host) = TlsLink::of(stream, cut.clone())?;
    let host = host.unwrap_or_default();
    if let Some(why) = refusal(&certificate, &host, own, dialed) {
        bail!("the host '{}' may not connect: {why}", host.escape_debug());
    }
    tokio::spawn(cut_when_silent(Arc::downgrade(&link), cut.clone()));
    let link: Arc<dyn LinkUnicastTrait> = link;
    let watched = Arc::downgrade(&link);
    tokio::spawn(async move {
        loop {
            sleep(LOOK).await;
            if watched.strong_count() == 0 {
                return;
            }
            if let Some(why) = refusal(&certificate, &host, own, dialed) {
                tracing::warn!("the host '{}' is shut out: {why}", host.escape_debug());
                return cut.cancel();
            }
        }
    });
    Ok(LinkUnicast::from(link))
}

/// Cuts a link whose other end is silent, as long as the link lives.
async fn cut_when_silent(link: Weak<TlsLink>, cut: CancellationToken) {
    let mut silence = Silence::default();
    loop {
        sleep(silence::LOOK).await;
        let Some(link) = link.upgrade() else { return };
        match link.delivery() {
            Ok(delivery) if !silence.look(delivery, Instant::now()) => {}
            Ok(_) => {
                tracing::info!("{link}: the other end is silent");
                return cut.cancel();
            }
            // Without the kernel's word the engine's lease decides.
            Err(why) => return tracing::warn!("{link}: the kernel says nothing about the connection: {why}"),
        }
    }
}
