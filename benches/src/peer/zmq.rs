//! libzmq: XPUB with NODROP (a full queue makes the writer wait instead of dropping), SUB to everything, one frame for
//! each message. zmq's high-water mark counts messages. It is set from their size, to hold about 16 MB on either side.

use std::{path::Path, sync::Arc, thread};

use zmq::{Context, Socket, SocketType};

use crate::{
    payload::Message,
    process::{RoleMessage, say},
    role::{self, Inbox, Outgoing, Speed},
};

const QUEUE: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Tcp,
    /// zmq's name for a unix stream socket.
    Ipc,
}

struct Out(Socket);

impl Outgoing for Out {
    #[inline]
    fn publish(&mut self, message: &Message) -> Result<(), String> {
        let mut frame = zmq::Message::with_size(message.size);
        message.write(&mut frame);
        self.0.send(frame, 0).map_err(|e| format!("zmq send: {e}"))
    }
}

fn queue(size: usize) -> i32 {
    (QUEUE / size).clamp(2, 100_000) as i32
}

fn socket(kind: SocketType, size: usize) -> zmq::Result<Socket> {
    let socket = Context::new().socket(kind)?;
    socket.set_sndhwm(queue(size))?;
    socket.set_rcvhwm(queue(size))?;
    Ok(socket)
}

pub fn writer(kind: Kind, dir: &Path, size: usize, speed: Speed) -> Result<(), String> {
    let mut socket = socket(zmq::XPUB, size).map_err(|e| format!("zmq: {e}"))?;
    no_drop(&mut socket)?;
    let address = match kind {
        Kind::Tcp => "tcp://127.0.0.1:*".to_owned(),
        Kind::Ipc => format!("ipc://{}", dir.join("zmq.sock").display()),
    };
    socket.bind(&address).map_err(|e| format!("zmq bind {address}: {e}"))?;
    let at = socket.get_last_endpoint().ok().and_then(Result::ok).ok_or("zmq does not report its address")?;
    say(&RoleMessage::At(at));
    role::write(Out(socket), size, speed)
}

/// Sets the option `XPUB_NODROP`, for which the `zmq` crate has no setter.
fn no_drop(socket: &mut Socket) -> Result<(), String> {
    let yes: std::ffi::c_int = 1;
    // SAFETY: the socket is open, and the option's value is one int of which zmq keeps a copy.
    let result = unsafe {
        zmq_sys::zmq_setsockopt(
            socket.as_mut_ptr(),
            zmq_sys::ZMQ_XPUB_NODROP as std::ffi::c_int,
            std::ptr::from_ref(&yes).cast(),
            size_of_val(&yes),
        )
    };
    if result == 0 { Ok(()) } else { Err("zmq refuses XPUB_NODROP".to_owned()) }
}

pub fn reader(at: &str, size: usize) -> Result<(), String> {
    let socket = socket(zmq::SUB, size).map_err(|e| format!("zmq: {e}"))?;
    socket.set_subscribe(b"").map_err(|e| format!("zmq subscribe: {e}"))?;
    socket.connect(at).map_err(|e| format!("zmq connect {at}: {e}"))?;
    let inbox = Arc::new(Inbox::new(size));
    let to = Arc::clone(&inbox);
    thread::spawn(move || {
        let mut frame = zmq::Message::new();
        loop {
            match socket.recv(&mut frame, 0) {
                Ok(()) => to.take(&frame),
                Err(e) => return to.fail(format!("zmq receive: {e}")),
            }
        }
    });
    role::read(&inbox)
}
