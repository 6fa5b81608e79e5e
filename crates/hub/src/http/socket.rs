//! Sockets of connections: writes that fail after a time without progress, and the TLS handshake.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tampu_tls::ServerCertificate;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

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
) -> Option<TlsStream<Patient>> {
    let shaken = async {
        let mut first = [0];
        if stream.peek(&mut first).await.ok()? == 1 && first[0] != HANDSHAKE {
            stream.writable().await.ok()?;
            let _ = stream.try_write(PLAIN);
            // Unread bytes would make the kernel reset the connection, and the response would be lost.
            let _ = stream.try_read(&mut [0; 4096]);
            return None;
        }
        TlsAcceptor::from(certificate.config()).accept(Patient::new(stream, stall)).await.ok()
    };
    timeout(time, shaken).await.ok().flatten()
}

/// A socket whose writes fail after a time without progress.
pub(super) struct Patient {
    stream: TcpStream,
    stall: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub fn new(stream: TcpStream, stall: Duration) -> Patient {
        Patient { stream, stall, stalled: None }
    }

    fn timed<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stalled = None;
            return done;
        }
        let stall = self.stall;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + stall)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.timed(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.timed(context, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, done)
    }
}
