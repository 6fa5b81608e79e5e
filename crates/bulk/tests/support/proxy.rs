//! Somebody between a sender and a receiver, who records what passes and may change it.

#![allow(dead_code)]

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The deed of the proxy in one direction of one connection.
#[derive(Clone)]
pub enum Act {
    Pass,
    /// Changes one bit.
    Flip {
        byte: usize,
        bit: u8,
    },
    /// Passes so many messages, collects and changes the records after them, then passes the rest.
    Records {
        passed: usize,
        count: usize,
        change: fn(&mut Vec<Vec<u8>>),
    },
    /// Closes the connection at the first byte.
    Close,
    /// Closes the connection after so many bytes.
    CloseAfter(usize),
    /// Answers the first bytes in the receiver's place, and closes.
    Answer(Vec<u8>),
}

/// Decides for the number of a connection and its direction: 0 to the receiver, 1 back.
type Plan = dyn Fn(usize, usize) -> Act + Send + Sync;

pub struct Proxy {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<u8>>>,
    connections: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn open(to: SocketAddr, plan: impl Fn(usize, usize) -> Act + Send + Sync + 'static) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy { address: listener.local_addr().unwrap(), seen: Arc::default(), connections: Arc::default() };
        let (seen, connections, plan): (_, _, Arc<Plan>) = (proxy.seen.clone(), proxy.connections.clone(), Arc::new(plan));
        // The process of the test ends it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let number = connections.fetch_add(1, Ordering::SeqCst);
                let Ok(there) = TcpStream::connect(to) else { continue };
                for direction in [0, 1] {
                    let (from, to) = if direction == 0 { (&stream, &there) } else { (&there, &stream) };
                    let (from, to, seen) = (from.try_clone().unwrap(), to.try_clone().unwrap(), seen.clone());
                    let act = plan(number, direction);
                    std::thread::spawn(move || pass(from, to, &seen, act));
                }
            }
        });
        proxy
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// All bytes of both directions so far.
    pub fn recorded(&self) -> Vec<u8> {
        self.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, seen: &Mutex<Vec<u8>>, act: Act) {
    let mut offset = 0;
    let (mut collected, mut held, mut messages) = (Vec::new(), Vec::new(), 0);
    let mut collects = matches!(act, Act::Records { .. });
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(read) if read > 0 => read,
            _ => break,
        };
        let bytes = &mut buffer[..read];
        seen.lock().unwrap().extend_from_slice(bytes);
        match &act {
            Act::Flip { byte, bit } if (offset..offset + read).contains(byte) => bytes[byte - offset] ^= 1 << bit,
            Act::Close => break,
            Act::CloseAfter(most) if offset + read > *most => break,
            Act::Answer(answer) => {
                let _ = from.write_all(answer);
                break;
            }
            Act::Records { passed, count, change } if collects => {
                collected.extend_from_slice(bytes);
                let mut out = Vec::new();
                while let Some(length) = whole(&collected, messages == 0)
                    && messages < passed + count
                {
                    let message: Vec<u8> = collected.drain(..length).collect();
                    messages += 1;
                    if messages <= *passed { out.extend(message) } else { held.push(message) }
                }
                if messages == passed + count {
                    collects = false;
                    change(&mut held);
                    out.extend(held.concat());
                    out.append(&mut collected);
                }
                if to.write_all(&out).is_err() {
                    break;
                }
                continue;
            }
            _ => {}
        }
        offset += read;
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// The length of the first message, if all of it is there: the offer of keys, or a record.
fn whole(bytes: &[u8], offer: bool) -> Option<usize> {
    let length = if offer { 48 + 66 } else { 8 + (u32::from_le_bytes(*bytes.first_chunk()?) & !(1 << 31)) as usize };
    (bytes.len() >= length).then_some(length)
}
