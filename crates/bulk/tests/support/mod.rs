//! Receivers that keep what they are told, and data that tells where it belongs.

#![allow(dead_code)]

pub mod answerer;
pub mod caller;
pub mod proxy;

use std::{
    net::SocketAddr,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use tampu_bulk::{
    Receiver, Sender,
    group::Group,
    handler::{CallbackError, Connection, Data, End, Handler, Start},
    message::{Fault, FaultKind, Refusal, Transport},
    receiver::{FlowSettings, Identity, OpenError, ReceiverSettings},
    receiving::LostRange,
    sender::{SendFlow, Slow},
};

/// Longer than anything takes; tests wait for the thing itself.
pub const WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Start(Vec<u8>),
    Data(u64, Vec<u8>),
    Lost(LostRange),
    Stop { complete: bool, stopped: bool, bytes: u64, lost: Vec<LostRange> },
    Reset,
    Fault(FaultKind),
    Connected,
    Refused(Refusal),
    Disconnected,
}

#[derive(Default)]
struct Inner {
    told: Vec<Told>,
    fail: Option<CallbackError>,
    panic: bool,
    delay: Duration,
    blocked: bool,
    stop_blocked: bool,
    has: u64,
}

/// The calls of a handler, and its behaviour.
#[derive(Clone, Default)]
pub struct Log(Arc<(Mutex<Inner>, Condvar)>);

impl Log {
    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        let result = act(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        result
    }

    pub fn fail_data(&self, error: Option<CallbackError>) {
        self.with(|inner| inner.fail = error);
    }

    pub fn panic_at_start(&self, panic: bool) {
        self.with(|inner| inner.panic = panic);
    }

    pub fn delay_data(&self, delay: Duration) {
        self.with(|inner| inner.delay = delay);
    }

    pub fn block(&self, blocked: bool) {
        self.with(|inner| inner.blocked = blocked);
    }

    pub fn block_stop(&self, blocked: bool) {
        self.with(|inner| inner.stop_blocked = blocked);
    }

    pub fn has(&self, from: u64) {
        self.with(|inner| inner.has = from);
    }

    /// Everything up to the next stop or reset, connections left out.
    pub fn take_until_stop(&self) -> Vec<Told> {
        let until = Instant::now() + WAIT;
        let mut inner = self.0.0.lock().unwrap();
        loop {
            let end = inner.told.iter().position(|told| matches!(told, Told::Stop { .. } | Told::Reset));
            if let Some(end) = end {
                let told: Vec<Told> = inner.told.drain(..=end).collect();
                return told
                    .into_iter()
                    .filter(|told| !matches!(told, Told::Connected | Told::Refused(_) | Told::Disconnected))
                    .collect();
            }
            assert!(Instant::now() < until, "no stop came: {:?}", inner.told);
            inner = self.0.1.wait_timeout(inner, Duration::from_secs(1)).unwrap().0;
        }
    }

    pub fn seen(&self) -> Vec<Told> {
        self.0.0.lock().unwrap().told.clone()
    }

    fn push(&self, told: Told) {
        self.with(|inner| inner.told.push(told));
    }
}

impl Handler for Log {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        self.push(Told::Start(start.parameter.to_vec()));
        let (panic, has) = self.with(|inner| (std::mem::take(&mut inner.panic), inner.has));
        assert!(!panic, "as the test wants");
        Ok(has)
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        let delay = {
            let mut inner = self.0.0.lock().unwrap();
            while inner.blocked {
                inner = self.0.1.wait(inner).unwrap();
            }
            inner.delay
        };
        std::thread::sleep(delay);
        self.push(Told::Data(data.offset, data.bytes.to_vec()));
        self.with(|inner| inner.fail.clone().map_or(Ok(()), Err))
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        let End { complete, stopped, bytes, lost, .. } = end.clone();
        let mut inner = self.0.0.lock().unwrap();
        while inner.stop_blocked {
            inner = self.0.1.wait(inner).unwrap();
        }
        drop(inner);
        self.push(Told::Stop { complete, stopped, bytes, lost });
        Ok(())
    }

    fn reset(&mut self, _: &End) -> Result<(), CallbackError> {
        self.push(Told::Reset);
        Ok(())
    }

    fn lost(&mut self, lost: &LostRange) {
        self.push(Told::Lost(*lost));
    }

    fn fault(&mut self, fault: &Fault) {
        self.push(Told::Fault(fault.kind));
    }

    fn connection(&mut self, change: &Connection) {
        self.push(match change {
            Connection::Connected { .. } => Told::Connected,
            Connection::Refused { why, .. } => Told::Refused(*why),
            Connection::Disconnected { .. } => Told::Disconnected,
        });
    }
}

/// Data that differs everywhere and by its seed.
pub fn pattern(seed: u64, length: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

pub fn bytes_of(told: &[Told]) -> Vec<u8> {
    let data = told.iter().filter_map(|told| if let Told::Data(_, bytes) = told { Some(&bytes[..]) } else { None });
    data.collect::<Vec<_>>().concat()
}

/// Returns the data by its offset.
pub fn pieces(told: &[Told]) -> Vec<(u64, u64, Option<Vec<u8>>)> {
    let data = told.iter().filter_map(|told| match told {
        Told::Data(offset, bytes) => Some((*offset, offset + bytes.len() as u64, Some(bytes.clone()))),
        _ => None,
    });
    data.collect()
}

pub fn eventually(is: impl Fn() -> bool) {
    let until = Instant::now() + WAIT;
    while !is() {
        assert!(Instant::now() < until, "it never became so");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn flow_settings() -> FlowSettings {
    FlowSettings::new("spectra".parse().unwrap())
}

fn boxed(handler: impl Handler + 'static) -> Box<dyn Handler> {
    Box::new(handler)
}

pub fn receiver(flow: impl FnOnce(&mut FlowSettings), settings: impl FnOnce(&mut ReceiverSettings)) -> (Receiver, Log) {
    let (mut one, log) = (flow_settings(), Log::default());
    flow(&mut one);
    let mut all = ReceiverSettings::default();
    settings(&mut all);
    let flows = vec![(one, boxed(log.clone()))];
    (Receiver::open(Identity::alone("test", "archive"), "correlator".parse().unwrap(), all, flows).unwrap(), log)
}

pub fn open_at(listen: SocketAddr) -> Result<Receiver, OpenError> {
    let settings = ReceiverSettings { listen, ..ReceiverSettings::default() };
    let flows = vec![(flow_settings(), boxed(Log::default()))];
    Receiver::open(Identity::alone("test", "archive"), "correlator".parse().unwrap(), settings, flows)
}

pub fn sender(flow: impl FnOnce(&mut SendFlow)) -> Sender {
    sender_as(Identity::alone("test", "CORR"), flow)
}

/// One of several of the same process.
pub fn sender_as(identity: Identity, flow: impl FnOnce(&mut SendFlow)) -> Sender {
    let mut one = SendFlow::new("spectra".parse().unwrap());
    one.ack_wait = WAIT;
    one.wait = WAIT;
    one.transport = Some(crate::WAY);
    one.protection = crate::PROTECTION;
    flow(&mut one);
    if one.transport == Some(Transport::Multicast) {
        match one.slow {
            Slow::Cut => _ = one.group.get_or_insert_with(group),
            // A group skips nothing for a single member; with UDP each receiver has its own datagrams.
            Slow::Skip => one.transport = Some(Transport::Udp),
        }
    }
    Sender::open(identity, "correlator".parse().unwrap(), vec![one]).unwrap()
}

/// A group on this host, at a port that only its sender has.
pub fn group() -> Group {
    "239.255.77.1".parse().unwrap()
}

/// A receiver, and a sender that connects to it.
pub fn pair(flow: impl FnOnce(&mut FlowSettings), send: impl FnOnce(&mut SendFlow)) -> (Receiver, Sender, Log) {
    let (receiver, log) = receiver(flow, |_| ());
    let sender = sender(send);
    sender.connect(&receiver.target()).unwrap();
    (receiver, sender, log)
}
