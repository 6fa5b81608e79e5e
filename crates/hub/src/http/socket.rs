//! Sockets of connections: slow readers are cut, the connection is busy until its answer is written, and the TLS handshake.
//!
//! hyper drops a whole body when it has buffered it, which may be long before the client has read it. So the request's
//! [`Busy`](super::connections::Busy) stays in the connection's [`Unsent`] until hyper flushes its empty buffer.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tampu_tls::ServerCertificate;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep_until, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::connections::Unsent;

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;
/// The response to a request without TLS.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 43\r\n\
    Connection: close\r\n\r\nThis address speaks https; ask it by https\n";

/// Shakes hands on a new connection. A client that has not finished after `time` is closed.
pub(super) async fn handshake(
    stream: TcpStream,
    certificate: &ServerCertificate,
    time: Duration,
    stall: Duration,
    unsent: Arc<Unsent>,
) -> Option<TlsStream<PacedSocket>> {
    let shaken = async {
        let mut first = [0];
        if stream.peek(&mut first).await.ok()? == 1 && first[0] != HANDSHAKE {
            stream.writable().await.ok()?;
            let _ = stream.try_write(PLAIN);
            // Unread bytes would make the kernel reset the connection, and the response would be lost.
            let _ = stream.try_read(&mut [0; 4096]);
            return None;
        }
        TlsAcceptor::from(certificate.config()).accept(PacedSocket::new(stream, stall, unsent)).await.ok()
    };
    timeout(time, shaken).await.ok().flatten()
}

/// Slowest pace, in bytes a second, at which a client may read while the server waits for it. The kernel reports progress
/// only when about a third of its buffer is free, so a client must read that much within the delay, too.
pub const SLOWEST_READER: u64 = 8 << 10;

/// Time that a client may still delay the server. It shrinks while the server waits, and grows with the bytes read.
#[derive(Debug)]
struct Pace {
    most: Duration,
    left: Duration,
    /// The beginning of the present wait.
    since: Option<Instant>,
}

impl Pace {
    fn new(most: Duration) -> Pace {
        Pace { most, left: most, since: None }
    }

    /// Notes that the server waits for the client; returns the end of its patience.
    fn wait(&mut self, now: Instant) -> Instant {
        *self.since.get_or_insert(now) + self.left
    }

    /// Notes that the client took so many bytes.
    fn took(&mut self, bytes: usize, now: Instant) {
        let waited = self.since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let earned = Duration::from_secs_f64(bytes as f64 / SLOWEST_READER as f64);
        self.left = (self.left.saturating_sub(waited) + earned).min(self.most);
    }
}

/// A socket whose writes fail if its client reads too slowly.
pub(super) struct PacedSocket {
    stream: TcpStream,
    pace: Pace,
    timer: Option<Pin<Box<Sleep>>>,
    unsent: Arc<Unsent>,
}

impl PacedSocket {
    /// Wraps a socket. A client may delay the server for `stall`, and longer if it reads fast enough.
    pub fn new(stream: TcpStream, stall: Duration, unsent: Arc<Unsent>) -> PacedSocket {
        PacedSocket { stream, pace: Pace::new(stall), timer: None, unsent }
    }

    fn timed<T>(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<T>>,
        bytes: impl Fn(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(done) = done {
            self.timer = None;
            self.pace.took(done.as_ref().map_or(0, bytes), Instant::now());
            return Poll::Ready(done);
        }
        let until = self.pace.wait(Instant::now());
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
        match timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for PacedSocket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for PacedSocket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, done, |&written| written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.timed(context, done, |&written| written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        if done.is_ready() {
            self.unsent.sent();
        }
        self.timed(context, done, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, done, |()| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_cut_that_stops_or_reads_below_the_pace() {
        let (stall, second) = (Duration::from_secs(30), Duration::from_secs(1));
        let begin = Instant::now();
        let mut pace = Pace::new(stall);
        assert_eq!(pace.wait(begin), begin + stall, "a client that stops");
        assert_eq!(pace.wait(begin + second), begin + stall, "the same wait");
        // A byte every ten seconds keeps nobody waiting for ever.
        let mut now = begin;
        let mut bytes = 0;
        loop {
            let until = pace.wait(now);
            now += 10 * second;
            if now > until {
                break;
            }
            pace.took(1, now);
            bytes += 1;
        }
        assert!(bytes <= 3, "{bytes}");
        // A client at the pace reads as long as it likes.
        let mut pace = Pace::new(stall);
        for step in 0..10_000 {
            let now = begin + step * second;
            assert!(pace.wait(now) > now + second);
            pace.took(SLOWEST_READER as usize, now + second);
        }
        assert!(pace.left > stall - second);
    }
}
