//! Another host that takes syslog: RFC 5424, one datagram a record, or a TCP stream with lengths (RFC 6587).
//!
//! Syslog has no acknowledgement. Over TCP what the kernel had taken when a connection broke may be lost without anybody knowing
//! how much, so a broken connection is a failure that is told, and the connection is looked at before it is written to. Over UDP
//! nothing is known at all but that nobody listens, where the other host says so.

use std::{
    io::{self, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket},
    time::Duration,
};

use super::{
    settings::TargetSettings,
    target::{Bundle, Out},
};

/// How long the other host may take to be reached, and to take what is written.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a message in a datagram; the rest is cut. Every receiver takes less than the longest datagram, most take this.
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
    /// Reads `udp HOST:PORT` or `tcp HOST:PORT`; `None` where the target is no other host.
    pub fn parse(settings: &TargetSettings) -> Result<Option<Remote>, String> {
        let facility = tampu_types::syslog::facility_number(&settings.facility);
        let facility = facility.ok_or_else(|| format!("'{}' is no facility (kern, user, ..., local7)", settings.facility))?;
        let Some(place) = &settings.syslog else { return Ok(None) };
        let wrong = || format!("'{place}' is no other host: write \"udp HOST:PORT\" or \"tcp HOST:PORT\"");
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
                // Where it breaks off nobody knows how much has arrived; twice is better than not at all.
                stream.write_all(counted.as_bytes()).map_err(|error| (0, error))?;
            }
        }
        self.open = Some(open);
        Ok(())
    }
}

/// Whether the other side has not closed: a receiver never says anything, so its end of file is the end.
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
