//! Cost of capturing the arguments of a log call, and of making text of them later: `cargo run --release --example
//! capture_cost`.
//!
//! The calls go into a plain buffer of 1 MiB, with no clock and no ring. Instructions do not depend on the other load
//! of the machine: run `valgrind --tool=callgrind --toggle-collect=capture_cost::measured_NAME
//! target/release/examples/capture_cost NAME CALLS` and divide the collected number by the calls.

use std::{
    cell::{Cell, UnsafeCell},
    hint::black_box,
    mem::MaybeUninit,
    time::Instant,
};

use tampu_text::{Arguments, Payload, Recorder, Rendered, Statement, memory::Memory, statement};

const BUFFER: usize = 1 << 20;

/// A record's own fields in this buffer: its statement, its length.
const HEADER: usize = 16;

struct Buffer {
    bytes: Box<UnsafeCell<[MaybeUninit<u8>; BUFFER]>>,
    at: Cell<usize>,
}

impl Recorder for Buffer {
    #[inline(always)]
    fn wants(&self, level: u8) -> bool {
        level >= black_box(4)
    }

    #[inline(always)]
    fn record_call<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) {
        let length = payload.length();
        let padded = HEADER + ((length + 7) & !7);
        let mut at = self.at.get();
        if at + padded > BUFFER {
            at = 0;
            assert!(padded <= BUFFER, "a record fits the buffer");
        }
        self.at.set(at + padded);
        // SAFETY: the record lies within the buffer, which only this function touches, in one thread.
        unsafe {
            let start = self.bytes.get().cast::<u8>().add(at);
            start.cast::<[u8; 8]>().write((std::ptr::from_ref(statement) as u64).to_le_bytes());
            start.add(8).cast::<[u8; 8]>().write((length as u64).to_le_bytes());
            payload.write(start.add(HEADER));
        }
    }
}

#[inline(never)]
fn measured_call(buffer: &Buffer, azimuth: u64, elevation: i32, antenna: &str) {
    statement!(4, buffer, "az {} el {} of {}", azimuth, elevation, antenna);
}

#[inline(never)]
fn measured_literal(buffer: &Buffer, azimuth: u64, elevation: i32, _: &str) {
    statement!(4, buffer, "az {} el {} of {}", azimuth, elevation, "DV01");
}

#[inline(never)]
fn measured_numbers(buffer: &Buffer, azimuth: u64, elevation: i32, _: &str) {
    statement!(4, buffer, "az {} el {}", azimuth, elevation);
}

#[inline(never)]
fn measured_disabled(buffer: &Buffer, azimuth: u64, elevation: i32, antenna: &str) {
    statement!(3, buffer, "az {} el {} of {}", azimuth, elevation, antenna);
}

struct Angle(f64);

impl std::fmt::Display for Angle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} deg", self.0 as i64)
    }
}

#[inline(never)]
fn measured_formatted(buffer: &Buffer, azimuth: u64, _: i32, _: &str) {
    statement!(4, buffer, "az {}", Angle(azimuth as f64));
}

#[inline(never)]
fn measured_render(rendered: &mut Rendered, call: &tampu_text::memory::Call) {
    let _ = rendered.render(&call.site, &call.payload);
    black_box(rendered.message());
}

#[inline(never)]
fn measured_format(text: &mut String, azimuth: u64, elevation: i32, antenna: &str) {
    use std::fmt::Write;
    text.clear();
    let _ = write!(text, "az {azimuth} el {elevation} of {antenna}");
    black_box(&text);
}

/// The best and the middle of 20 rounds, in ns a call.
fn report(name: &str, wanted: Option<&str>, calls: u64, mut call: impl FnMut(u64)) {
    if wanted.is_some_and(|wanted| wanted != name) {
        return;
    }
    let rounds = if wanted.is_some() { 1 } else { 20 };
    let mut costs: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            (0..calls).for_each(|number| call(black_box(number)));
            start.elapsed().as_nanos() as f64 / calls as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!("{name:<12} {:>6.2} ns a call (best {:.2})", costs[costs.len() / 2], costs[0]);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next();
    let calls = arguments.next().and_then(|calls| calls.parse().ok()).unwrap_or(1_000_000);
    let wanted = wanted.as_deref();
    let buffer = Buffer { bytes: Box::new(UnsafeCell::new([MaybeUninit::uninit(); BUFFER])), at: Cell::new(0) };
    type Measured = fn(&Buffer, u64, i32, &str);
    let measured: [(&str, Measured); 5] = [
        ("call", measured_call),
        ("literal", measured_literal),
        ("numbers", measured_numbers),
        ("disabled", measured_disabled),
        ("formatted", measured_formatted),
    ];
    for (name, call) in measured {
        report(name, wanted, calls, |number| call(black_box(&buffer), number, number as i32, black_box("DV01")));
    }
    let memory = Memory::default();
    statement!(4, memory, "az {} el {} of {}", 123_456u64, -4711i32, "DV01");
    let call = memory.calls().remove(0);
    let mut rendered = Rendered::default();
    report("render", wanted, calls, |_| measured_render(&mut rendered, black_box(&call)));
    let mut text = String::new();
    report("format", wanted, calls, |_| measured_format(&mut text, 123_456, -4711, black_box("DV01")));
}
