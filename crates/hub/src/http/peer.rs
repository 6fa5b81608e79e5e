//! The user whose process is at the other end of a connection within this host, as the kernel reports it.
//!
//! The kernel is asked for one socket (sock_diag(7)). Where it does not support that, its table of all sockets is
//! read, which takes milliseconds if there are many.

use std::net::{IpAddr, SocketAddr};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

/// Returns the user id of the process at the other end. `None` if it is not on this host, has closed the connection, or
/// is unknown.
pub fn uid(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    if !peer.ip().is_loopback() || !local.ip().is_loopback() {
        return None;
    }
    if let Ok(answer) = ask(peer, local) {
        return answer;
    }
    let table = std::fs::read_to_string(if peer.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" }).ok()?;
    find(&table, peer, local)
}

/// Of `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg` (linux/netlink.h, linux/inet_diag.h).
const HEAD: usize = 16;
const QUESTION: usize = HEAD + 56;
const ANSWER: usize = HEAD + 72;
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
const TCP: u8 = 6;
const OPEN: u8 = 1;

/// Queries the kernel for the socket at the other end. Returns an error if the kernel does not support the query.
fn ask(peer: SocketAddr, local: SocketAddr) -> rustix::io::Result<Option<u32>> {
    let mut question = Vec::with_capacity(QUESTION);
    question.extend((QUESTION as u32).to_ne_bytes());
    question.extend(BY_FAMILY.to_ne_bytes());
    question.extend(REQUEST.to_ne_bytes());
    question.extend([0; 8]);
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    question.extend([family.as_raw() as u8, TCP, 0, 0]);
    question.extend((1u32 << OPEN).to_ne_bytes());
    // The socket: its own end and its other end, any interface, no cookie.
    let which = question.len();
    question.extend(peer.port().to_be_bytes());
    question.extend(local.port().to_be_bytes());
    for address in [peer, local] {
        let mut octets = [0; 16];
        match address.ip() {
            IpAddr::V4(ip) => octets[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => octets.copy_from_slice(&ip.octets()),
        }
        question.extend(octets);
    }
    let which = question[which..].to_vec();
    question.extend([0; 4]);
    question.extend([0xff; 8]);
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&socket, &question, SendFlags::empty())?;
    let mut answer = [0; 512];
    // The kernel answers before the call returns.
    let (length, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    let word = |at: usize| answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes);
    let kind = u16::from_ne_bytes([answer[4], answer[5]]);
    if kind != BY_FAMILY || length < ANSWER {
        // ENOENT: there is no such socket. Any other error: the kernel cannot be asked.
        let missing = length >= HEAD + 4 && word(HEAD) as i32 == -rustix::io::Errno::NOENT.raw_os_error();
        return if missing { Ok(None) } else { Err(rustix::io::Errno::NOTSUP) };
    }
    let (state, uid, inode) = (answer[HEAD + 1], word(HEAD + 64), word(HEAD + 68));
    let same = answer[HEAD + 4..].starts_with(&which);
    // A socket that its owner has closed has no inode, and 0 as its user.
    Ok((state == OPEN && inode != 0 && same).then_some(uid))
}

/// The table's code for a connection that is open at both ends.
const ESTABLISHED: &str = "01";

/// Finds the user in the table of sockets:
/// `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...`.
///
/// A closed socket stays in the table without an inode, and with user 0, until the connection has ended. Such a row, in
/// every state, does not name its user and is skipped.
fn find(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    let (peer, local) = (spelled(peer), spelled(local));
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().skip(1).take(9).collect();
        let [own, other, state, _, _, _, uid, _, inode] = words[..] else { return None };
        let owned = inode.parse::<u64>().is_ok_and(|inode| inode != 0);
        (own == peer && other == local && state == ESTABLISHED && owned).then(|| uid.parse().ok()).flatten()
    })
}

/// Returns an address in the kernel's notation: words of 32 bits in the machine's order of bytes.
fn spelled(address: SocketAddr) -> String {
    let bytes = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = bytes.chunks(4).map(|word| format!("{:08X}", u32::from_ne_bytes([word[0], word[1], word[2], word[3]])));
    format!("{}:{:04X}", words.collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_other_end_is_ours() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (peer, local) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            assert_eq!(uid(peer, local), Some(rustix::process::getuid().as_raw()), "{address}");
            assert_eq!(uid(local, SocketAddr::new(local.ip(), 1)), None);
            // Where the kernel supports the query, it returns the same user as its table.
            let own = Some(rustix::process::getuid().as_raw());
            let asked = ask(peer, local);
            assert!(asked.is_err() || asked == Ok(own), "{asked:?}");
            assert!(ask(peer, local).is_err() || ask(local, SocketAddr::new(local.ip(), 1)) == Ok(None));
        }
    }

    #[test]
    fn a_socket_that_was_closed_is_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, local) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        assert!(uid(peer, local).is_some());
        // The other end has not closed: the row stays, with 0 as its user.
        drop(stream);
        assert_eq!(uid(peer, local), None);
        let row = |state: &str, inode: u32| {
            format!("5: 0100007F:8AE2 0100007F:1D19 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1 0 20 4 30 10 -1")
        };
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let found = |row: String| find(&row, at(0x8ae2), at(0x1d19));
        assert_eq!(found(row("01", 9)), Some(0));
        for (state, inode) in [("01", 0), ("04", 9), ("05", 0), ("06", 0), ("08", 9)] {
            assert_eq!(found(row(state, inode)), None, "{state} {inode}");
        }
        assert_eq!(find("5: 0100007F:8AE2 0100007F:1D19 01 0:0 0:0 0 0", at(0x8ae2), at(0x1d19)), None);
    }

    #[test]
    fn the_table_is_read() {
        let line =
            "   5: 0100007F:8AE2 0100007F:1D19 01 00000000:00000000 00:00000000 00000000  1000        0 123 1 0 20 4 30 10 -1";
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(find(line, at(0x8ae2), at(0x1d19)), Some(1000));
        assert_eq!(find(line, at(0x1d19), at(0x8ae2)), None);
        assert_eq!(uid("192.0.2.1:5".parse().unwrap(), at(1)), None);
    }
}
