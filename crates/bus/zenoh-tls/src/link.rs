//! A connection whose two directions work at the same time.

use std::{
    fmt, io,
    net::SocketAddr,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use tampu_tls::CertificateInfo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    net::TcpStream,
    sync::Mutex,
    time::timeout,
};
use tokio_rustls::TlsStream;
use tokio_util::sync::CancellationToken;
use zenoh_link_commons::{LinkAuthId, LinkUnicastTrait, get_ip_interface_names};
use zenoh_protocol::{
    core::{Locator, Priority},
    transport::BatchSize,
};
use zenoh_result::{ZResult, zerror};

use crate::{TLS_LOCATOR_PREFIX, silence::Delivery, traffic::Counted};

/// Time limit of an orderly close. A peer that reads nothing must not hold its closing up.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The same, at a link that was cut.
const CLOSE_CUT_TIMEOUT: Duration = Duration::from_millis(100);

/// A connection over TLS.
///
/// The two halves share the stream behind a lock, which each poll takes. The engine reads and writes in separate tasks,
/// on separate threads.
pub(crate) struct TlsLink {
    reader: Mutex<ReadHalf<TlsStream<TcpStream>>>,
    writer: Mutex<WriteHalf<TlsStream<TcpStream>>>,
    /// The socket, which the halves hold open.
    socket: RawFd,
    own: SocketAddr,
    source: Locator,
    destination: Locator,
    peer: LinkAuthId,
    cut: CancellationToken,
    traffic: Arc<Counted>,
}

impl TlsLink {
    /// Makes a link of a stream whose handshake is complete. The token cuts the link. The name is that of the other end's
    /// certificate.
    pub fn of(stream: TlsStream<TcpStream>, cut: CancellationToken) -> ZResult<(Arc<TlsLink>, Option<String>)> {
        let (tcp, session) = stream.get_ref();
        tcp.set_nodelay(true)?;
        let (own, other, socket) = (tcp.local_addr()?, tcp.peer_addr()?, tcp.as_raw_fd());
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        let name = certificate.and_then(|der| CertificateInfo::parse(der).ok()).map(|info| info.common_name);
        let locator = |address: SocketAddr| Locator::new(TLS_LOCATOR_PREFIX, address.to_string(), "");
        let (source, destination) = (locator(own)?, locator(other)?);
        let (reader, writer) = tokio::io::split(stream);
        let link = Arc::new(TlsLink {
            reader: Mutex::new(reader),
            writer: Mutex::new(writer),
            socket,
            own,
            source,
            destination,
            peer: LinkAuthId::Tls(name.clone()),
            cut,
            traffic: Counted::new(name.clone(), own, other),
        });
        Ok((link, name))
    }

    /// Asks the kernel what the other end has acknowledged.
    pub fn delivery(&self) -> io::Result<Delivery> {
        // SAFETY: the two halves hold the socket open as long as this link lives, and nothing else closes it.
        Delivery::of(unsafe { BorrowedFd::borrow_raw(self.socket) })
    }

    /// Runs an input until the link is cut. The engine closes a link whose input fails.
    async fn uncut<T>(&self, input: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::select! {
            done = input => done,
            () = self.cut.cancelled() => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the host is shut out, or silent")),
        }
    }

    fn failed(&self, doing: &str, why: &io::Error) -> zenoh_result::Error {
        zerror!("{doing} over TLS, {self}: {why}").into()
    }
}

impl fmt::Display for TlsLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} => {}", self.source, self.destination)
    }
}

#[async_trait]
impl LinkUnicastTrait for TlsLink {
    fn get_mtu(&self) -> BatchSize {
        // A stream has no longest packet. The length of a batch is written in 16 bits.
        BatchSize::MAX
    }

    fn get_src(&self) -> &Locator {
        &self.source
    }

    fn get_dst(&self) -> &Locator {
        &self.destination
    }

    fn is_reliable(&self) -> bool {
        true
    }

    fn is_streamed(&self) -> bool {
        true
    }

    fn get_interface_names(&self) -> Vec<String> {
        get_ip_interface_names(&self.own)
    }

    fn get_auth_id(&self) -> &LinkAuthId {
        &self.peer
    }

    async fn write(&self, buffer: &[u8], _: Option<Priority>) -> ZResult<usize> {
        let mut writer = self.writer.lock().await;
        let written = async {
            let length = writer.write(buffer).await?;
            writer.flush().await?;
            Ok(length)
        };
        let length = self.uncut(written).await.map_err(|why| self.failed("writing", &why))?;
        self.traffic.sent(length);
        Ok(length)
    }

    async fn write_all(&self, buffer: &[u8], _: Option<Priority>) -> ZResult<()> {
        let mut writer = self.writer.lock().await;
        // Without the flush the last record would wait for the next write when the connection was full.
        let written = async {
            writer.write_all(buffer).await?;
            writer.flush().await
        };
        self.uncut(written).await.map_err(|why| self.failed("writing", &why))?;
        self.traffic.sent(buffer.len());
        Ok(())
    }

    async fn read(&self, buffer: &mut [u8], _: Option<Priority>) -> ZResult<usize> {
        let mut reader = self.reader.lock().await;
        let length = self.uncut(reader.read(buffer)).await.map_err(|why| self.failed("reading", &why))?;
        self.traffic.received(length);
        Ok(length)
    }

    async fn read_exact(&self, buffer: &mut [u8], _: Option<Priority>) -> ZResult<()> {
        let mut reader = self.reader.lock().await;
        self.uncut(reader.read_exact(buffer)).await.map_err(|why| self.failed("reading", &why))?;
        self.traffic.received(buffer.len());
        Ok(())
    }

    async fn close(&self) -> ZResult<()> {
        // Nobody waits for the farewell at a link that is silent.
        let patience = if self.cut.is_cancelled() { CLOSE_CUT_TIMEOUT } else { CLOSE_TIMEOUT };
        let closed = timeout(patience, async { self.writer.lock().await.shutdown().await }).await;
        match closed {
            Ok(Err(why)) if why.kind() != io::ErrorKind::NotConnected => Err(self.failed("closing", &why)),
            _ => Ok(()),
        }
    }
}
