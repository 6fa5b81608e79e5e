//! Another host that receives syslog by RFC 5424: one datagram for each record, or a TCP stream with lengths (RFC
//! 6587).
//!
//! Syslog has no acknowledgement. When a TCP connection breaks, an unknown number of records that the kernel had
//! accepted may be lost. A broken connection is therefore logged as a failure, and the connection is checked before
//! each write. Over UDP the only known failure is that no program listens, if the other host reports it.

use std::{
    io::{self, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket},
    time::Duration,
};

use super::{
    bundle::{Bundle, Out},
    settings::TargetSettings,
};

/// Time limit for connecting to the other host, and for writing to it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a message in a datagram, in bytes; the rest is cut. Every receiver has a limit below the longest
/// datagram, and most accept this length.
const DATAGRAM: usize = 8192;

pub(super) struct Remote {
    address: String,
    stream: bool,
    pub facility: u8,
    open: Option<Open>,
}

enum Open {
    Datagrams(UdpSocket),
    Stream(TcpStream),
}

impl Remote {
    /// Reads `udp HOST:PORT` or `tcp HOST:PORT`; `None` if the target is not another host.
    pub fn parse(settings: &TargetSettings) -> Result<Option<Remote>, String> {
        let facility = tampu_types::syslog::facility_number(&settings.facility);
        let facility =
            facility.ok_or_else(|| format!("unknown facility '{}'; use kern, user, ..., local7", settings.facility))?;
        let Some(place) = &settings.syslog else { return Ok(None) };
        let wrong = || format!("invalid host '{place}'; write \"udp HOST:PORT\" or \"tcp HOST:PORT\"");
        let (way, address) = place.split_once(' ').ok_or_else(wrong)?;
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let stream = match (way, port) {
            ("udp", Some(_)) => false,
            ("tcp", Some(_)) => true,
            _ => return Err(wrong()),
        };
        Ok(Some(Remote { address: address.to_owned(), stream, facility, open: None }))
    }

    fn connect(&self) -> io::Result<Open> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in self.address.to_socket_addrs()? {
            match self.connect_to(address) {
                Ok(open) => return Ok(open),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn connect_to(&self, address: SocketAddr) -> io::Result<Open> {
        if self.stream {
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            return Ok(Open::Stream(stream));
        }
        let any: SocketAddr = if address.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        Ok(Open::Datagrams(socket))
    }

    fn send(&mut self, bundle: &Bundle, from: usize) -> Result<(), (usize, io::Error)> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.connect().map_err(|error| (0, error))?,
        };
        match &mut open {
            Open::Datagrams(socket) => {
                for (sent, text) in bundle.records(from).enumerate() {
                    let end = (0..=text.len().min(DATAGRAM)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
                    socket.send(&text.as_bytes()[..end]).map_err(|error| (sent, error))?;
                }
            }
            Open::Stream(stream) => {
                is_there(stream).map_err(|error| (0, error))?;
                let mut counted = String::with_capacity(bundle.text.len() + 8 * bundle.ends.len());
                for text in bundle.records(from) {
                    counted.push_str(&format!("{} {text}", text.len()));
                }
                // The number of messages that arrived before a break is unknown; a duplicate is better than a loss.
                stream.write_all(counted.as_bytes()).map_err(|error| (0, error))?;
            }
        }
        self.open = Some(open);
        Ok(())
    }
}

/// Fails if the other side has closed the connection. A receiver never sends data, so the end of its stream means that
/// it closed.
fn is_there(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false)?;
    match peeked {
        Ok(0) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the other side has closed the connection")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

impl Out for Remote {
    fn write(&mut self, bundle: &Bundle, from: usize) -> Result<(), (usize, String)> {
        self.send(bundle, from).map_err(|(sent, error)| (sent, format!("{}: {error}", self.address)))
    }
}
