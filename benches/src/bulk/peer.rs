//! The raw loops and the request: writers and readers for [`crate::role`]. Every byte is written and checked.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use tampu_bus::{CallError, Participant, engine::Question};
use tampu_types::TopicName;

use crate::{
    payload::{Message, Piecewise},
    process::{RoleMessage, orders, say},
    role::{self, Inbox, Outgoing, Speed},
    tampu,
};

/// Number of bytes to read at once: less than a cache, as in any good loop.
const READ: usize = 256 << 10;
const SERVICE: &str = "bench/block";
const ANSWER: Duration = Duration::from_secs(20);

struct Raw {
    sockets: Vec<TcpStream>,
    block: Vec<u8>,
}

impl Outgoing for Raw {
    fn publish(&mut self, message: &Message) -> Result<(), String> {
        message.write(&mut self.block);
        self.sockets.iter_mut().try_for_each(|socket| socket.write_all(&self.block)).map_err(|e| format!("write: {e}"))
    }
}

/// Fills a block and writes it to each socket in turn.
pub fn raw_writer(readers: usize, size: usize, speed: Speed) -> Result<(), String> {
    let listen = || -> std::io::Result<Vec<TcpStream>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        say(&RoleMessage::At(listener.local_addr()?.to_string()));
        let accept = |_| {
            let stream = listener.accept()?.0;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        (0..readers).map(accept).collect()
    };
    let sockets = listen().map_err(|e| format!("listen: {e}"))?;
    role::write(Raw { sockets, block: vec![0; size] }, size, speed)
}

/// First byte of a reader that connects to the raw relay.
pub const READS: u8 = b'r';
/// First byte of the writer that connects to the raw relay.
const WRITES: u8 = b'w';

fn connect(at: &str, as_what: Option<u8>) -> Result<TcpStream, String> {
    let connect = || -> std::io::Result<TcpStream> {
        let mut socket = TcpStream::connect(at)?;
        socket.set_nodelay(true)?;
        socket.write_all(as_what.as_slice())?;
        Ok(socket)
    };
    connect().map_err(|e| format!("connect {at}: {e}"))
}

/// Fills a block and writes it to the relay; its readers connect there too.
pub fn raw_writer_to(at: &str, size: usize, speed: Speed) -> Result<(), String> {
    let socket = connect(at, Some(WRITES))?;
    say(&RoleMessage::At(at.to_owned()));
    role::write(Raw { sockets: vec![socket], block: vec![0; size] }, size, speed)
}

/// Passes each piece of the writer to each reader in turn, without reading its content.
pub fn raw_relay(readers: usize) -> Result<(), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("listen: {e}"))?;
    say(&RoleMessage::At(listener.local_addr().map_err(|e| e.to_string())?.to_string()));
    thread::spawn(move || {
        let give = || -> std::io::Result<()> {
            let (mut from, mut to) = (None, Vec::new());
            while from.is_none() || to.len() < readers {
                let mut socket = listener.accept()?.0;
                socket.set_nodelay(true)?;
                let mut who = [0];
                socket.read_exact(&mut who)?;
                if who == [WRITES] { from = Some(socket) } else { to.push(socket) }
            }
            let mut buffer = vec![0; READ];
            while let Some(from) = &mut from {
                let count = from.read(&mut buffer)?;
                if count == 0 {
                    return Ok(());
                }
                to.iter_mut().try_for_each(|socket| socket.write_all(&buffer[..count]))?;
            }
            Ok(())
        };
        if let Err(e) = give() {
            say(&RoleMessage::Failed(format!("relay: {e}")));
        }
    });
    let orders = orders();
    while orders.recv().is_ok() {}
    Ok(())
}

/// Reads pieces and checks each while it is in the cache.
pub fn raw_reader(at: &str, as_what: Option<u8>, size: usize) -> Result<(), String> {
    let mut socket = connect(at, as_what)?;
    let inbox = Arc::new(Inbox::new(size));
    let to = Arc::clone(&inbox);
    thread::spawn(move || {
        let mut buffer = vec![0; READ];
        let mut take = || -> std::io::Result<()> {
            let mut head = [0; Piecewise::HEAD];
            socket.read_exact(&mut head)?;
            let mut block = Piecewise::begin(&head);
            let mut left = size - head.len();
            while left > 0 {
                let piece = &mut buffer[..left.min(READ)];
                socket.read_exact(piece)?;
                block.take(piece);
                left -= piece.len();
            }
            to.with(|tally| {
                tally.count(block.found());
            });
            Ok(())
        };
        loop {
            if let Err(e) = take() {
                return to.fail(format!("read: {e}"));
            }
        }
    });
    role::read(&inbox)
}

struct Ask {
    participant: Participant,
    service: TopicName,
    readers: usize,
}

impl Outgoing for Ask {
    fn publish(&mut self, message: &Message) -> Result<(), String> {
        let asked = self.participant.ask(&self.service, message.to_vec().into(), ANSWER).map_err(|e| e.to_string())?;
        let mut answers = 0;
        for answer in asked {
            match answer {
                Ok(_) => answers += 1,
                // No receiver answers yet.
                Err(CallError::Unanswered(_)) if message.is_probe() => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        if answers < self.readers && !message.is_probe() {
            return Err(format!("{answers} of {} readers answered", self.readers));
        }
        Ok(())
    }
}

/// Sends a request with each block and waits for every reader's response.
pub fn ask_writer(dir: &Path, readers: usize, size: usize, speed: Speed) -> Result<(), String> {
    let participant = tampu::participant(dir, "bench-asks")?;
    let service = TopicName::new(SERVICE).map_err(|e| e.to_string())?;
    say(&RoleMessage::At(String::new()));
    role::write(Ask { participant, service, readers }, size, speed)
}

/// Checks each block and answers.
pub fn ask_reader(dir: &Path, number: usize, size: usize) -> Result<(), String> {
    let participant = tampu::participant(dir, &format!("bench-answers-{number}"))?;
    let inbox = Arc::new(Inbox::new(size));
    let to = Arc::clone(&inbox);
    let answerer = Arc::new(move |question: Box<dyn Question>| {
        to.take(question.payload());
        // If the asker is gone, it needs no answer.
        let _ = question.reply(bytes::Bytes::from_static(b"+"));
    });
    let service = TopicName::new(SERVICE).map_err(|e| e.to_string())?;
    let _answering = participant.answer(&service, answerer).map_err(|e| e.to_string())?;
    role::read(&inbox)
}
