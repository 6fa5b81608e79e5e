//! Sockets for the datagrams of one connection.
//!
//! All receivers on a host share one socket for a group's datagrams. Each receiver has its own socket for repairs.

use std::{
    io,
    net::{SocketAddr, TcpStream, UdpSocket},
};

use crate::{
    datagram::{self, Inlet, LOCAL, NETWORK, NETWORK_6},
    group::{GroupPlace, NotJoined},
    message::GroupKey,
    seal::{DATAGRAM_SEAL, DatagramOpener, Half, SealError},
};

/// Requested size of the receive buffer: several times the bytes that the sender may have in flight.
const BUFFER: usize = 4 << 20;
/// Upper and lower limit for the sender's bytes of payload in flight, for any size of the buffer.
const ROOM: usize = 1 << 20;
const LEAST_ROOM: usize = 2 * LOCAL as usize;
/// Factor of the kernel's cost of a datagram over its payload.
const KERNEL_COST: usize = 3;

/// Keys for the datagrams of a protected connection.
pub(super) struct Seal {
    /// Key of the receiver's own datagrams.
    pub own: Half,
    /// Secret of the group, if its datagrams are sealed.
    pub group: Option<GroupKey>,
}

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

fn no_keys(why: SealError) -> io::Error {
    io::Error::other(why)
}

impl Datagrams {
    /// Opens sockets beside this connection, for datagrams from the port of its sender's host.
    pub fn open(
        stream: &TcpStream,
        port: u16,
        buffer: Option<usize>,
        group: Option<&GroupPlace>,
        seal: Option<&Seal>,
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
        // A sealed datagram is as long as a readable one on the same network.
        let frame = if seal.is_some() && frame != LOCAL { frame - DATAGRAM_SEAL as u32 } else { frame };
        let mut own = Inlet::new(UdpSocket::bind((here, 0))?, there.to_canonical(), port, frame, buffer)?;
        if let Some(seal) = seal {
            own.protect(DatagramOpener::new(&seal.own).map_err(no_keys)?);
        }
        let place = own.address()?.to_string();
        let mut inlets = vec![own];
        if let (Some(group), Some(interface)) = (group, interface) {
            let from = SocketAddr::V4(group.from);
            let mut shared = Inlet::new(datagram::join(group, interface)?, from.ip(), from.port(), frame, buffer)?;
            match seal.map(|seal| seal.group) {
                Some(Some(key)) => {
                    let half = Half::of_group(&key).map_err(no_keys)?;
                    shared.protect(DatagramOpener::new(&half).map_err(no_keys)?);
                }
                Some(None) => return Err(NotJoined::Readable),
                None => {}
            }
            inlets.push(shared);
        }
        let least = inlets.iter().map(|inlet| inlet.buffer).min().unwrap_or(0);
        let room = (least / KERNEL_COST).clamp(LEAST_ROOM, ROOM) as u32;
        Ok(Datagrams { inlets, place, frame, room })
    }
}
