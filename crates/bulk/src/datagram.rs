//! Sockets that send and receive many datagrams with one system call. They do not interpret the content.
//!
//! Short datagrams are concatenated and passed to the kernel at once, which splits them (UDP_SEGMENT). On reception,
//! many datagrams are read at once (recvmmsg), and the ones that the kernel has joined are split again (UDP_GRO).
//! quinn-udp does both, with a fallback where kernel or network card cannot.
//!
//! Long datagrams, of which no two fit into one call, are sent singly. The kernel gathers each from its parts in
//! memory, so its payload is not copied. Rejected: sendmmsg, which saves the change into the kernel but not the path of
//! each datagram through it.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::net::{AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, bind, sendmsg, socket_with, sockopt};

use crate::{
    group::{Group, GroupPlace},
    seal::{DATAGRAM_SEAL, DatagramOpener, DatagramSealer},
    window::Framed,
};

/// Payload of a datagram on one host.
pub(crate) const LOCAL: u32 = 63 << 10;
/// Payload on a network: with our header, UDP's and IP's below the 1500 bytes of an Ethernet frame.
pub(crate) const NETWORK: u32 = 1400;
/// Payload on an IPv6 network, which does not fragment: with all headers the 1280 bytes that every network supports.
pub(crate) const NETWORK_6: u32 = 1184;
/// Bytes in flight for each datagram in flight, even a short one. This accounts for the cost of a short datagram in the
/// receiver's kernel.
pub(crate) const ROOM_A_DATAGRAM: u32 = 256;
/// Length in bytes above which a datagram is sent singly.
const LONE: usize = 16 << 10;
/// Bytes of one call: the longest IP packet, without its headers.
const CALL: usize = 65_000;
/// Longest wait for a full socket. After it the datagram is lost, as on any part of its path. All datagrams of its flow
/// wait as long.
const FULL: Duration = Duration::from_millis(20);
/// The longest datagram, or group of datagrams joined by the kernel, in bytes.
const LONGEST: usize = 1 << 16;
/// Long datagrams received at once: few, so that they are still in a cache when they are processed.
const LONG_AT_ONCE: usize = 4;

/// The socket that sends datagrams.
#[derive(Debug)]
pub(crate) struct Outlet {
    socket: UdpSocket,
    state: UdpSocketState,
    to: SocketAddr,
    /// Datagrams that wait for their call, concatenated, all of one length except the last.
    batch: Vec<u8>,
    length: usize,
    /// Keys of a protected flow.
    sealer: Option<DatagramSealer>,
    /// A long datagram, sealed.
    lone: Vec<u8>,
    /// Number of system calls so far.
    pub calls: u64,
}

impl Outlet {
    /// Makes an outlet that sends from `socket` to the address `to`.
    pub fn new(socket: UdpSocket, to: SocketAddr) -> io::Result<Outlet> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // `UdpSocketState` sets both otherwise. A send must wait for a full socket, and routers of a narrow network may fragment.
        socket.set_nonblocking(false)?;
        socket.set_write_timeout(Some(FULL))?;
        if to.is_ipv4() {
            sockopt::set_ip_mtu_discover(&socket, sockopt::Ipv4PathMtuDiscovery::DONT)?;
        }
        Ok(Outlet { socket, state, to, batch: Vec::new(), length: 0, sealer: None, lone: Vec::new(), calls: 0 })
    }

    /// Seals all datagrams from here on.
    pub fn protect(&mut self, sealer: DatagramSealer) {
        self.sealer = Some(sealer);
    }

    /// Sends a frame as a datagram, together with the ones after it; [`Outlet::flush`] sends the last. It may be lost
    /// here as on any part of its path, and its receiver then requests it again. Returns whether the socket accepts
    /// more; `false` means that it was full for the longest wait.
    pub fn send(&mut self, framed: &Framed) -> bool {
        let length = framed.wire_len() + if self.sealer.is_some() { DATAGRAM_SEAL } else { 0 };
        if length > LONE || self.state.max_gso_segments() == 1 {
            return self.flush() && self.send_lone(framed);
        }
        let count = self.batch.len() / self.length.max(1);
        let mut takes_more = true;
        if length > self.length || self.batch.len() + length > CALL || count >= self.state.max_gso_segments() {
            takes_more = self.flush();
            self.length = length;
        }
        match &mut self.sealer {
            None => {
                self.batch.extend_from_slice(&framed.head);
                self.batch.extend_from_slice(&framed.bytes);
            }
            // Without a key left nothing is sent, and the receiver asks on the connection for what it misses.
            Some(sealer) => {
                let before = self.batch.len();
                if sealer.seal(&framed.head, &framed.bytes, &mut self.batch).is_err() {
                    self.batch.truncate(before);
                    return takes_more;
                }
            }
        }
        if length < self.length {
            // Only the last datagram of a call may be shorter.
            takes_more &= self.flush();
        }
        takes_more
    }

    /// Sends the waiting datagrams. Returns whether the socket accepts more.
    pub fn flush(&mut self) -> bool {
        if self.batch.is_empty() {
            return true;
        }
        self.calls += 1;
        let segment = (self.batch.len() > self.length).then_some(self.length);
        let whole = Transmit { destination: self.to, ecn: None, contents: &self.batch, segment_size: segment, src_ip: None };
        let sent = self.state.try_send(UdpSockRef::from(&self.socket), &whole);
        let batch = std::mem::take(&mut self.batch);
        let takes_more = match sent {
            Ok(()) => true,
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => false,
            // The network card or route cannot send them in one call.
            Err(_) => batch.chunks(self.length).all(|datagram| self.send_alone(&[IoSlice::new(datagram)])),
        };
        self.batch = batch;
        self.batch.clear();
        self.length = 0;
        takes_more
    }

    fn send_lone(&mut self, framed: &Framed) -> bool {
        let Some(sealer) = &mut self.sealer else {
            return self.send_alone(&[IoSlice::new(&framed.head), IoSlice::new(&framed.bytes)]);
        };
        let mut lone = std::mem::take(&mut self.lone);
        lone.clear();
        let sealed = sealer.seal(&framed.head, &framed.bytes, &mut lone);
        let takes_more = sealed.is_err() || self.send_alone(&[IoSlice::new(&lone)]);
        self.lone = lone;
        takes_more
    }

    fn send_alone(&mut self, pieces: &[IoSlice<'_>]) -> bool {
        self.calls += 1;
        // A connected socket knows the destination; a socket for a group is connected to it.
        let sent = sendmsg(&self.socket, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL);
        sent != Err(rustix::io::Errno::AGAIN)
    }
}

/// The socket that receives datagrams.
#[derive(Debug)]
pub(crate) struct Inlet {
    socket: UdpSocket,
    state: UdpSocketState,
    buffers: Vec<Vec<u8>>,
    /// Address and port of the sender; other datagrams are ignored.
    from: IpAddr,
    port: u16,
    /// Keys of a protected flow.
    opener: Option<DatagramOpener>,
    /// Most bytes that wait in the kernel, including its bookkeeping.
    pub buffer: usize,
}

impl Inlet {
    /// Makes an inlet for datagrams from one sender, with payloads of at most `frame` bytes. It requests a kernel
    /// buffer of this many bytes; a system with a lower limit gives less.
    pub fn new(socket: UdpSocket, from: IpAddr, port: u16, frame: u32, buffer: usize) -> io::Result<Inlet> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // A privileged process may exceed the system's limit.
        if sockopt::set_socket_recv_buffer_size_force(&socket, buffer).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, buffer)?;
        }
        let buffer = sockopt::socket_recv_buffer_size(&socket)?;
        // Memory without writes takes no space.
        let count = if frame as usize > LONE { LONG_AT_ONCE } else { BATCH_SIZE };
        let buffers = (0..count).map(|_| vec![0; LONGEST]).collect();
        Ok(Inlet { socket, state, buffers, from, port, opener: None, buffer })
    }

    /// Accepts sealed datagrams alone from here on.
    pub fn protect(&mut self, opener: DatagramOpener) {
        self.opener = Some(opener);
    }

    /// Returns its address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives at most one batch with one system call and passes each datagram to `each`. Returns whether there was
    /// any.
    pub fn take<E>(&mut self, mut each: impl FnMut(&[u8]) -> Result<(), E>) -> io::Result<Result<bool, E>> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut slices: Vec<IoSliceMut<'_>> = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let count = match self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Ok(false)),
            Err(error) => return Err(error),
        };
        drop(slices);
        for (meta, buffer) in metas[..count].iter().zip(&mut self.buffers) {
            if meta.addr.ip().to_canonical() != self.from || self.port != meta.addr.port() {
                continue;
            }
            let length = meta.len.min(buffer.len());
            for datagram in buffer[..length].chunks_mut(meta.stride.max(1)) {
                let opened = match &mut self.opener {
                    None => Some(&*datagram),
                    Some(opener) => opener.open(datagram),
                };
                // Somebody else has sent it, or sent it again.
                let Some(datagram) = opened else { continue };
                if let Err(error) = each(datagram) {
                    return Ok(Err(error));
                }
            }
        }
        Ok(Ok(true))
    }
}

impl AsFd for Inlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Makes an outlet to a group, and returns the position for the Hello.
pub(crate) fn to_group(group: &Group) -> io::Result<(Outlet, GroupPlace)> {
    let (address, index) = group.interface.outgoing()?;
    let socket = UdpSocket::bind((address, 0))?;
    match index {
        None => sockopt::set_ip_multicast_if(&socket, &address)?,
        Some(index) => sockopt::set_ip_multicast_if_with_ifindex(&socket, &Ipv4Addr::UNSPECIFIED, &address, index)?,
    }
    socket.set_multicast_ttl_v4(u32::from(group.ttl))?;
    // A receiver may be on this host.
    socket.set_multicast_loop_v4(true)?;
    let to = SocketAddrV4::new(group.address, group.port.unwrap_or(socket.local_addr()?.port()));
    socket.connect(to)?;
    let SocketAddr::V4(from) = socket.local_addr()? else { return Err(io::ErrorKind::Unsupported.into()) };
    if from.ip().is_unspecified() {
        let why = format!("the network interface '{}' has no IPv4 address to send from", group.interface);
        return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, why));
    }
    Ok((Outlet::new(socket, to.into())?, GroupPlace { group: to, from }))
}

/// Makes a socket that receives a group's datagrams, beside other members on this host.
pub(crate) fn join(place: &GroupPlace, interface: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::from(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?);
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &place.group)?;
    socket.join_multicast_v4(place.group.ip(), &interface)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        frame::{HEADER_LEN, Header, Kind},
        message::GroupKey,
        seal::Half,
    };

    fn pair(frame: u32) -> (Outlet, Inlet) {
        let (here, there) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let from = here.local_addr().unwrap();
        let inlet = Inlet::new(there, from.ip(), from.port(), frame, 1 << 20).unwrap();
        let to = inlet.address().unwrap();
        here.connect(to).unwrap();
        (Outlet::new(here, to).unwrap(), inlet)
    }

    fn framed(sequence: u64, length: usize) -> Framed {
        let bytes = vec![sequence as u8; length];
        Framed::new(Header { sequence, ..Header::of(Kind::Data) }, bytes.into(), true)
    }

    /// Returns the datagrams that arrive until no more do.
    fn taken(inlet: &mut Inlet, count: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < count && crate::poll::readable(inlet, Duration::from_secs(10)) {
            inlet
                .take(|datagram| {
                    all.push(datagram.to_vec());
                    Ok::<_, ()>(())
                })
                .unwrap()
                .unwrap();
        }
        all
    }

    #[test]
    fn short_datagrams_go_many_to_a_call_and_come_out_each_on_its_own() {
        let (mut outlet, mut inlet) = pair(NETWORK);
        // Datagrams of one length, then shorter, longer and empty ones.
        let lengths = [[1400; 100].as_slice(), &[700], &[1400; 3], &[0; 5], &[10, 20, 30, 30]].concat();
        for (sequence, length) in lengths.iter().enumerate() {
            outlet.send(&framed(sequence as u64, *length));
        }
        outlet.flush();
        outlet.flush();
        let all = taken(&mut inlet, lengths.len());
        assert_eq!(all.len(), lengths.len());
        for (sequence, (datagram, length)) in all.iter().zip(&lengths).enumerate() {
            assert_eq!(datagram.len(), HEADER_LEN + length, "datagram {sequence}");
            assert!(datagram[..] == *[&framed(sequence as u64, *length).head[..], &vec![sequence as u8; *length]].concat());
        }
        // A kernel without segmentation needs one call a datagram.
        if outlet.state.max_gso_segments() > 1 {
            assert!(outlet.calls < 15, "{} calls for {} datagrams", outlet.calls, lengths.len());
        }
    }

    #[test]
    fn a_long_datagram_goes_alone() {
        let (mut outlet, mut inlet) = pair(LOCAL);
        outlet.send(&framed(1, 100));
        outlet.send(&framed(2, LOCAL as usize));
        outlet.send(&framed(3, LOCAL as usize));
        assert_eq!(outlet.calls, 3);
        let lengths: Vec<usize> = taken(&mut inlet, 3).iter().map(|datagram| datagram.len() - HEADER_LEN).collect();
        assert_eq!(lengths, [100, LOCAL as usize, LOCAL as usize]);
    }

    #[test]
    fn a_socket_that_stays_full_is_waited_for_once() {
        let (outlet, _) = pair(LOCAL);
        let (here, _there) = std::os::unix::net::UnixDatagram::pair().unwrap();
        here.set_write_timeout(Some(FULL)).unwrap();
        // Nothing reads this socket, and this kind of socket blocks when it is full.
        let mut full = Outlet { socket: std::os::fd::OwnedFd::from(here).into(), ..outlet };
        let frames = 10_000;
        let taken = (1..=frames).take_while(|sequence| full.send(&framed(*sequence, LOCAL as usize))).count() as u64;
        assert!((1..frames).contains(&taken), "{taken}");
        assert_eq!(full.calls, taken + 1, "the one that was lost was the last that was tried");
    }

    #[test]
    fn sealed_datagrams_come_out_each_on_its_own_and_others_not_at_all() {
        let (mut outlet, mut inlet) = pair(LOCAL);
        let half = Half::of_group(&GroupKey([9; 32])).unwrap();
        inlet.protect(DatagramOpener::new(&half).unwrap());
        outlet.send(&framed(0, 100));
        outlet.flush();
        outlet.protect(DatagramSealer::new(&half).unwrap());
        let lengths = [1400, 1400, 1400, 700, LOCAL as usize, 0, 1400];
        for (sequence, length) in lengths.iter().enumerate() {
            outlet.send(&framed(sequence as u64 + 1, *length));
        }
        outlet.flush();
        let all = taken(&mut inlet, lengths.len());
        assert_eq!(all.len(), lengths.len());
        for (sequence, (datagram, length)) in (1..).zip(all.iter().zip(lengths)) {
            assert!(datagram[..] == *[&framed(sequence, length).head[..], &vec![sequence as u8; length]].concat());
        }
    }

    #[test]
    fn what_a_stranger_sends_is_not_taken() {
        let (mut outlet, mut inlet) = pair(NETWORK);
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.send_to(b"no frame", inlet.address().unwrap()).unwrap();
        outlet.send(&framed(1, 5));
        outlet.flush();
        assert_eq!(taken(&mut inlet, 1), [[&framed(1, 5).head[..], &[1; 5]].concat()]);
    }
}
