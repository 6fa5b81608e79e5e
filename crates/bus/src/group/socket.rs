//! Sockets of a group: one that all sources send to, and one of this host from which it sends and gets reports.

use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use bytes::Bytes;
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, netdevice, socket_with, sockopt};

use super::settings::{GroupInterface, GroupSettings};

/// Length of a datagram on IPv4: with UDP's and IP's headers the 1500 bytes of an Ethernet frame.
const NETWORK: usize = 1472;
/// Length of a datagram on IPv6: with all headers the 1280 bytes that every network supports.
const NETWORK_6: usize = 1232;
/// Bytes that wait in the kernel for a member, if the system allows it.
const ROOM: usize = 4 << 20;
/// Longest wait for a full socket. After it the datagrams are lost, as on any part of their way.
const FULL: Duration = Duration::from_millis(500);
/// The longest train of datagrams joined by the kernel.
const LONGEST: usize = 1 << 16;

/// A socket of a group, or one that sends to it.
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

fn index_of(socket: &UdpSocket, interface: &GroupInterface) -> io::Result<Option<u32>> {
    match interface {
        GroupInterface::Address(_) => Ok(None),
        GroupInterface::Index(index) => Ok(Some(*index)),
        GroupInterface::Name(name) => netdevice::name_to_index(socket, name)
            .map(Some)
            .map_err(|_| io::Error::new(io::ErrorKind::NotFound, format!("no network interface '{name}'; `ip link` shows all"))),
    }
}

/// Returns a socket at this address, and the index of the group's interface if it has a name or an index.
fn udp(address: IpAddr, port: u16, group: &GroupSettings) -> io::Result<(UdpSocket, Option<u32>)> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = UdpSocket::from(socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?);
    sockopt::set_socket_reuseaddr(&socket, true)?;
    let index = group.interface.as_ref().map(|interface| index_of(&socket, interface)).transpose()?.flatten();
    let mut bound = SocketAddr::new(address, port);
    if let SocketAddr::V6(bound) = &mut bound
        && group.is_of_one_network()
    {
        // The kernel binds such an address with its interface only.
        bound.set_scope_id(index.unwrap_or(0));
    }
    bind(&socket, &bound)?;
    Ok((socket, index))
}

impl Socket {
    fn of(socket: UdpSocket) -> io::Result<Socket> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // `UdpSocketState` sets it otherwise.
        socket.set_nonblocking(false)?;
        socket.set_write_timeout(Some(FULL))?;
        Ok(Socket { socket, state })
    }

    /// Opens the socket that gets what all sources send to the group. Returns it with its room in bytes.
    pub fn of_members(group: &GroupSettings) -> io::Result<(Socket, u32)> {
        let (socket, index) = udp(group.address, group.port, group)?;
        match (group.address, &group.interface) {
            (IpAddr::V4(address), Some(GroupInterface::Address(own))) => socket.join_multicast_v4(&address, own)?,
            (IpAddr::V4(address), _) => {
                sockopt::set_ip_add_membership_with_ifindex(&socket, &address, &Ipv4Addr::UNSPECIFIED, index.unwrap_or(0))?;
            }
            (IpAddr::V6(address), _) => socket.join_multicast_v6(&address, index.unwrap_or(0))?,
        }
        // A privileged process may exceed the system's limit.
        if sockopt::set_socket_recv_buffer_size_force(&socket, ROOM).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, ROOM)?;
        }
        let room = sockopt::socket_recv_buffer_size(&socket)?;
        Ok((Socket::of(socket)?, u32::try_from(room).unwrap_or(u32::MAX)))
    }

    /// Opens the socket that sends to the group and to single members.
    pub fn of_source(group: &GroupSettings) -> io::Result<Socket> {
        let any = if group.address.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let own = match &group.interface {
            Some(GroupInterface::Address(own)) => IpAddr::V4(*own),
            _ => any,
        };
        let (socket, index) = udp(own, 0, group)?;
        match (group.address, &group.interface, index) {
            (IpAddr::V4(_), Some(GroupInterface::Address(own)), _) => sockopt::set_ip_multicast_if(&socket, own)?,
            (IpAddr::V4(_), _, Some(index)) => {
                sockopt::set_ip_multicast_if_with_ifindex(&socket, &Ipv4Addr::UNSPECIFIED, &Ipv4Addr::UNSPECIFIED, index)?;
            }
            (IpAddr::V6(_), _, Some(index)) => sockopt::set_ipv6_multicast_if(&socket, index)?,
            _ => {}
        }
        match group.address {
            IpAddr::V4(_) => socket.set_multicast_ttl_v4(u32::from(group.ttl))?,
            IpAddr::V6(_) => sockopt::set_ipv6_multicast_hops(&socket, u32::from(group.ttl))?,
        }
        Socket::of(socket)
    }

    /// Returns the length of a datagram.
    pub fn datagram(address: IpAddr) -> usize {
        if address.is_ipv4() { NETWORK } else { NETWORK_6 }
    }

    /// Sends a datagram. It may be lost here as on any part of its way. Returns false if it is too long for the interface.
    pub fn send(&self, datagram: &[u8], to: SocketAddr) -> bool {
        let sent = self.socket.send_to(datagram, to);
        !sent.is_err_and(|why| why.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error()))
    }

    /// Sends datagrams; those of one length share calls. They may be lost here as on any part of their way. Returns the length
    /// of the shortest one that is too long for the interface.
    pub fn send_all(&self, datagrams: &[Bytes], to: SocketAddr) -> Option<usize> {
        let mut too_long: Option<usize> = None;
        let mut send = |datagram: &Bytes| {
            if !self.send(datagram, to) {
                too_long = Some(too_long.map_or(datagram.len(), |length| length.min(datagram.len())));
            }
        };
        let mut rest = datagrams;
        let mut joined = Vec::new();
        while let Some(first) = rest.first() {
            let length = first.len();
            let most = self.state.max_gso_segments().min(65_000 / length.max(1)).max(1);
            let mut count = rest.iter().take(most).take_while(|datagram| datagram.len() == length).count();
            // The last one may be shorter.
            if count < most && rest.get(count).is_some_and(|next| next.len() < length) {
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            rest = later;
            if let [single] = now {
                send(single);
                continue;
            }
            joined.clear();
            now.iter().for_each(|datagram| joined.extend_from_slice(datagram));
            let whole = Transmit { destination: to, ecn: None, contents: &joined, segment_size: Some(length), src_ip: None };
            match self.state.try_send(UdpSockRef::from(&self.socket), &whole) {
                Err(why) if why.kind() != io::ErrorKind::WouldBlock => {
                    // The network card or route cannot send them in one call.
                    now.iter().for_each(&mut send);
                }
                _ => {}
            }
        }
        too_long
    }

    /// Sets the longest wait of [`Socket::take`].
    pub fn wait_at_most(&self, time: Duration) {
        // It fails only for a time of zero.
        let _ = self.socket.set_read_timeout(Some(time.max(Duration::from_millis(1))));
    }

    /// Waits for datagrams and passes each to `each`, with its sender. Returns false if there were none.
    pub fn take(&self, buffer: &mut Vec<u8>, mut each: impl FnMut(&mut [u8], SocketAddr)) -> io::Result<bool> {
        buffer.resize(LONGEST, 0);
        let mut meta = [RecvMeta::default()];
        match self.state.recv(UdpSockRef::from(&self.socket), &mut [IoSliceMut::new(buffer)], &mut meta) {
            Ok(_) => {}
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(why) => return Err(why),
        }
        let [meta] = meta;
        let length = meta.len.min(buffer.len());
        for datagram in buffer[..length].chunks_mut(meta.stride.max(1)) {
            each(datagram, meta.addr);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_one_network_is_joined_on_its_interface() {
        let address = "ff02::7448".parse().unwrap();
        // The first interface of every network namespace is the loopback.
        let interface = Some(GroupInterface::Index(1));
        let group = GroupSettings { port: 0, interface, ..GroupSettings::new(address) };
        let (members, room) = Socket::of_members(&group).unwrap();
        assert!(room > 0);
        let port = members.socket.local_addr().unwrap().port();
        let source = Socket::of_source(&group).unwrap();
        assert!(source.send(b"datagram", SocketAddr::new(address, port)));
    }
}
