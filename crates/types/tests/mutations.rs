//! Thousands of seeded mutations of valid inputs through every decoder, on the stable toolchain. The fuzz targets in
//! `fuzz/` look further; both hold the decoders to the same demands. `TAMPU_SEED=n` repeats a run.

use std::{hash::BuildHasher, panic};

use tampu_types::{
    BatchHeader, ClockState, Domain, Incarnation, LogRecord, SourceName, Time,
    json_lines::JsonLinesReader,
    log_batch::encode_records,
    xml::{AcsXmlOptions, AcsXmlWriter},
};

#[path = "../../../fuzz/src/lib.rs"]
mod demands;
#[path = "../../../fuzz/src/gateway.rs"]
mod gateway;

const ROUNDS: u64 = 1500;

/// A small generator whose whole state is a seed (Steele's SplitMix64).
struct Chance(u64);

impl Chance {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.number() % end.max(1) as u64) as usize
    }
}

/// Changes a few places: bytes, lengths, cuts, repetitions, and pieces that matter to this format.
fn mutate(chance: &mut Chance, bytes: &mut Vec<u8>, pieces: &[&[u8]]) {
    for _ in 0..1 + chance.below(4) {
        let at = chance.below(bytes.len());
        let end = (at + chance.below(64)).min(bytes.len());
        match chance.below(7) {
            0 if at < bytes.len() => bytes[at] = chance.number() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            2 if at + 4 <= bytes.len() => bytes[at..at + 4].copy_from_slice(&[0xff, 0xff, 0xff, chance.number() as u8 & 0x80]),
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..end)),
            5 => {
                let piece = bytes[at..end].to_vec();
                let to = chance.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let piece = pieces[chance.below(pieces.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
}

fn run(decoder: fn(&[u8]), inputs: &[Vec<u8>], pieces: &[&[u8]]) {
    let given = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok());
    let first: u64 = given.unwrap_or_else(|| std::hash::RandomState::new().hash_one(0));
    for seed in first..first.saturating_add(if given.is_some() { 1 } else { ROUNDS }) {
        let mut chance = Chance(seed);
        let mut bytes = inputs[chance.below(inputs.len())].clone();
        mutate(&mut chance, &mut bytes, pieces);
        if panic::catch_unwind(|| decoder(&bytes)).is_err() {
            panic!("TAMPU_SEED={seed} does it again: {:?}", String::from_utf8_lossy(&bytes));
        }
    }
}

fn sample_json() -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/log_batch");
    ["v1-full.json", "v1-origins.json"].map(|file| std::fs::read_to_string(format!("{folder}/{file}")).unwrap()).concat()
}

fn samples() -> Vec<LogRecord> {
    JsonLinesReader::new(sample_json().as_bytes(), "testdata").collect::<Result<_, _>>().unwrap()
}

#[test]
fn batch_headers() {
    let header = BatchHeader {
        domain: Domain::new("alma").unwrap(),
        source: SourceName::new("CONTROL/DV01").unwrap(),
        incarnation: Incarnation { boot: 1, pid: 2, start: 3 },
        stream: 4,
        first: u64::MAX - 7,
        count: 6,
        type_id: 2,
        type_version: 1,
        acquired: Time(8),
        sent: Time(9),
        clock: ClockState::Stepped,
        tai_offset: -37,
        flags: 1,
    };
    let mut bytes = Vec::new();
    header.encode(5, &mut bytes);
    bytes.extend_from_slice(b"12345");
    run(demands::batch_header, &[bytes], &[b"TB\x01", &[0xff; 8], &[0; 8]]);
}

#[test]
fn log_batches() {
    let records = samples();
    let inputs = [encode_records(&records).unwrap(), encode_records(&records[..1]).unwrap()];
    run(demands::log_batch, &inputs, &[&[0, 9, 0, 0], &[0xff; 4], &[0; 4], &[1, 0, 0, 0]]);
}

/// The bytes under testdata whose names begin so.
fn vectors(start: &str) -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/event");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wanted = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(start));
    let read = |path: std::path::PathBuf| {
        let digits: String = std::fs::read_to_string(path).unwrap().split_whitespace().collect();
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    };
    wanted.map(read).collect()
}

#[test]
fn events() {
    let mut inputs = vectors("v1-");
    inputs.retain(|bytes| tampu_types::event::EventView::parse(bytes).is_ok());
    assert!(inputs.len() >= 18);
    run(demands::event, &inputs, &[&[0, 9, 0, 0], &[0xff; 4], &[0; 4], &[1, 0, 0, 0], &[11], &[13]]);
}

#[test]
fn kept_events() {
    let inputs = vectors("kept-v1-");
    assert_eq!(inputs.len(), 1);
    run(demands::kept_event, &inputs, &[&[0, 9, 0, 0], &[0xff; 4], &[0; 8], &[1, 0, 0, 0]]);
}

#[test]
fn declarations() {
    run(demands::declaration, &vectors("v1-declaration"), &[&[0, 9, 0, 0], &[0xff; 4], &[0; 8], &[1, 0, 0, 0], b"/"]);
}

#[test]
fn acs_xml_files() {
    let mut writer = AcsXmlWriter::new(Vec::new(), "n", AcsXmlOptions::default()).unwrap();
    samples().iter().for_each(|record| writer.record(record).unwrap());
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><Log><Info TimeStamp='2005-02-01T15:33:09.592' Host='\xe9'>\xe9</Info>\n\
        <l:Archive TimeStamp='2005-02-01T15:33:09.592' Object='o' Priority='7'><b>x</b><Data Name='n'>N/A</Data></l:Archive></Log>";
    let pieces: [&[u8]; 16] = [
        b"<",
        b">",
        b"\"",
        b"]]>",
        b"<![CDATA[",
        b"<!--",
        b"-->",
        b"&",
        b"&#0;",
        b"</Info>",
        b"\0",
        b"\xff",
        b"<?",
        b"\r",
        b"<Info TimeStamp='2005-02-01T15:33:09.592'>",
        b" Escapes=\"backslash\"",
    ];
    run(demands::acs_xml, &[writer.finish().unwrap(), latin.to_vec()], &pieces);
}

#[test]
fn json_lines_files() {
    run(
        demands::json_lines,
        &[sample_json().into_bytes()],
        &[b"{", b"\"", b"\n", b"\\u0000", b"\\ud800", b",", b":", b"\xff", b"1e999"],
    );
}

fn seed(file: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../fuzz/seeds/{file}/examples", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn syslog_streams() {
    let pieces: [&[u8]; 12] =
        [b"<", b">", b"[", b"]", b"\"", b"\\", b" ", b"\n", b"<13>1 - - - - - -", b"12 <", b"\xff", b"Feb 29 23:59:60 "];
    run(demands::syslog_stream, &[seed("syslog_stream")], &pieces);
}

#[test]
fn epics_streams() {
    let pieces: [&[u8]; 8] = [b"\n", b"sevr=", b"=", b" ", b"\x1b[", b"a:1 Sun May 12 15:26:47 2024 ", b"\xff", b"fac="];
    run(demands::epics_stream, &[seed("epics_stream")], &pieces);
}

#[test]
fn wildcards() {
    let inputs = [&b"CONTROL/*\nCONTROL/DV01"[..], b"**/a/**/b\nx/a/y/b", b"*a?c*\nxxabcx"].map(<[u8]>::to_vec);
    run(demands::wildcards, &inputs, &[b"*", b"**/", b"?", b"/", b"\n", "\u{130}".as_bytes(), "\u{df}".as_bytes()]);
}

#[test]
fn units_and_times() {
    let inputs =
        [&b"64MiB"[..], b"1h30m", b"1.5h", b"2026-11-21T08:15:30.123456789Z", b"2008-09-10T00:20:50.123"].map(<[u8]>::to_vec);
    run(demands::units, &inputs, &[b"9", b".", b"w", b"ns", b"-", b"+23:59", b"18446744073709551615", b"60", b":"]);
}

#[test]
fn frames_of_the_gateway() {
    let read = |side: &str| std::fs::read(format!("{}/../../fuzz/seeds/gateway/{side}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    run(gateway::gateway, &[read("client"), read("hub")], &[&[0; 4], &[0xff; 4], b"{\"", b"\":", b"null", &[16, 0, 0, 0]]);
}
