//! Sockets for the datagrams of one connection.
//!
//! All receivers on a host share one socket for a group's datagrams. Each receiver has its own socket for repairs.

use std::net::{SocketAddr, TcpStream, UdpSocket};

use crate::{
    datagram::{self, Inlet, LOCAL, NETWORK, NETWORK_6},
    group::{GroupPlace, NotJoined},
};

/// Requested size of the receive buffer: several times the bytes that the sender may have in flight.
const BUFFER: usize = 4 << 20;
/// Upper and lower limit for the sender's bytes of payload in flight, for any size of the buffer.
const ROOM: usize = 1 << 20;
const LEAST_ROOM: usize = 2 * LOCAL as usize;
/// Factor of the kernel's cost of a datagram over its payload.
const KERNEL_COST: usize = 3;

/// The receiving side of a flow's datagrams.
pub(super) struct Datagrams {
    /// Sockets for the receiver's own datagrams and, if it joined one, for the group's.
    pub(super) inlets: Vec<Inlet>,
    /// The address of its socket.
    pub place: String,
    /// The longest payload.
    pub frame: u32,
    /// Bytes that may be in flight.
    pub room: u32,
}

impl Datagrams {
    /// Opens sockets beside this connection, for datagrams from the port of its sender's host.
    pub fn open(
        stream: &TcpStream,
        port: u16,
        buffer: Option<usize>,
        group: Option<&GroupPlace>,
    ) -> Result<Datagrams, NotJoined> {
        let (here, there) = (stream.local_addr()?.ip(), stream.peer_addr()?.ip());
        let buffer = buffer.unwrap_or(BUFFER);
        let one_host = there.to_canonical().is_loopback() || there == here;
        let interface = group.map(|group| group.interface(here, there)).transpose()?;
        let frame = match interface {
            Some(interface) if interface.is_loopback() => LOCAL,
            Some(_) => NETWORK,
            None if one_host => LOCAL,
            None if there.to_canonical().is_ipv4() => NETWORK,
            None => NETWORK_6,
        };
        let own = Inlet::new(UdpSocket::bind((here, 0))?, there.to_canonical(), port, frame, buffer)?;
        let place = own.address()?.to_string();
        let mut inlets = vec![own];
        if let (Some(group), Some(interface)) = (group, interface) {
            let from = SocketAddr::V4(group.from);
            inlets.push(Inlet::new(datagram::join(group, interface)?, from.ip(), from.port(), frame, buffer)?);
        }
        let least = inlets.iter().map(|inlet| inlet.buffer).min().unwrap_or(0);
        let room = (least / KERNEL_COST).clamp(LEAST_ROOM, ROOM) as u32;
        Ok(Datagrams { inlets, place, frame, room })
    }
}
