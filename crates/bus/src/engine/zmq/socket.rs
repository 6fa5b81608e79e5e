//! Sockets of libzmq, and their bounds.

use zmq::{Context, Socket, SocketType};

use crate::engine::EngineError;

pub(super) const NAME: &str = "zmq";

/// Messages that wait for one subscriber before further ones to it are dropped, at either end. A full batch has 60 KB, so a
/// stopped reader of many short samples costs its writer 15 MB at most. Credit bounds what is under way to reliable readers.
const QUEUE: i32 = 256;
/// Time in ms for messages under way when a socket is closed.
const LINGER: i32 = 100;

/// Turns a refusal of libzmq into an error of the engine.
pub fn refused(doing: impl Into<String>) -> impl FnOnce(zmq::Error) -> EngineError {
    move |why| EngineError::Refused { engine: NAME, doing: doing.into(), why: why.to_string() }
}

/// Opens a socket. `longest` is the length of the longest message that it takes from others, in bytes.
pub fn open(context: &Context, kind: SocketType, longest: usize) -> Result<Socket, EngineError> {
    let made = || {
        let socket = context.socket(kind)?;
        // Subscribers send nothing but their subscriptions, of which none may be dropped.
        socket.set_sndhwm(if [zmq::SUB, zmq::XSUB].contains(&kind) { 0 } else { QUEUE })?;
        socket.set_rcvhwm(QUEUE)?;
        socket.set_linger(LINGER)?;
        socket.set_ipv6(true)?;
        socket.set_maxmsgsize(i64::try_from(longest).unwrap_or(i64::MAX))?;
        Ok(socket)
    };
    made().map_err(refused("opening a socket"))
}
