//! Sessions that come through the hub's HTTP server, which may be another process: WebSocket.
//!
//! ```text
//! role book:    browser == WebSocket == task -- principal, HELLO, frames --.
//! role gateway:                                     gateway-web.sock -- a connection
//! ```
//! Decision: a socket of its own, whose connections begin with the principal that the HTTP server has proved. The kernel
//! proves that a process of the hub's user is at the other end. Such a process has the rights of the local user, so by
//! naming a principal it can only give up rights. Rejected: a member of HELLO with the principal. A mistake that lets the
//! HELLO of a browser pass unchanged would then give it the rights of the local user.
//!
//! | type | field |
//! |-|-|
//! | u32 | length of the principal |
//! | | the principal as JSON, then frames |

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
};

use tampu_bus::access::Principal;

use super::limits::GREETING;

/// Name of the socket in the domain's part of the run-time directory.
pub(super) const WEB_SOCKET: &str = "gateway-web.sock";
/// Longest principal, in bytes.
const LONGEST: u32 = 4096;

/// Returns the bytes before the frames of a connection.
pub(super) fn preamble(principal: &Principal) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(principal)?;
    let length = u32::try_from(json.len()).ok().filter(|length| *length <= LONGEST);
    let mut bytes = length.ok_or_else(|| io::Error::other("a principal of this length"))?.to_le_bytes().to_vec();
    bytes.write_all(&json)?;
    Ok(bytes)
}

/// Reads these bytes; returns the principal.
pub(super) fn principal_of(mut socket: &UnixStream) -> io::Result<Principal> {
    socket.set_read_timeout(Some(GREETING))?;
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = Some(u32::from_le_bytes(length)).filter(|length| *length <= LONGEST);
    let mut json = vec![0; length.ok_or(io::ErrorKind::InvalidData)? as usize];
    socket.read_exact(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_leads_through_the_socket_and_other_bytes_do_not() {
        let read = |bytes: &[u8]| {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.write_all(bytes).unwrap();
            drop(ours);
            principal_of(&theirs)
        };
        for principal in [Principal::Login("zoe".into()), Principal::Token("zoe/1".into()), Principal::this_user()] {
            assert_eq!(read(&preamble(&principal).unwrap()).unwrap(), principal);
        }
        assert!(preamble(&Principal::Login("z".repeat(5000))).is_err());
        assert!(read(&[]).is_err());
        assert!(read(&[0xff; 8]).is_err());
        assert!(read(&[2, 0, 0, 0, b'{', b'}']).is_err());
    }
}
