//! The vectors of `spec/wire/control.md`, `spec/wire/announced.md` and `spec/wire/group.md`, held against the code.

#[path = "../../types/tests/support/page.rs"]
mod page;

use bytes::BytesMut;
use page::hex_dump;
use tampu_bus::group::datagram::{Content, Key, Piece as GroupPiece, Report, Seal};
use tampu_bus::wire::{
    announced::{AnnouncedKeys, AskForKeys, KeyChange},
    batch::{FLAG_ELSEWHERE, Loaned, Piece, elsewhere, put_loaned, put_sample, sample_at},
    control::{Acknowledgement, Control, Heartbeat, Mark, Offer, SenderState},
    refetch::{Refetch, Shelf},
};
use tampu_types::{BatchHeader, ClockState, Domain, Incarnation, SourceName, Time};

const PAGE: &str = "wire/control.md";

fn incarnation() -> Incarnation {
    Incarnation { boot: 0x1a2b_3c4d, pid: 4711, start: 1_795_248_000_123_456_789 }
}

fn same(written: &[u8], dump: &[u8]) {
    let print = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    assert_eq!(print(written), print(dump), "left: written now; right: the page's");
}

#[test]
fn heartbeats() {
    let offer = Offer {
        reader: 1,
        stream: 2,
        start: 1_000_000,
        lowest: 999_000,
        next: 1_000_003,
        credit: 1 << 20,
        type_id: 2,
        type_version: 1,
        answer_now: true,
        watches: false,
        announces: false,
        ends: false,
        topic: "log/warning".to_owned(),
        partition: ".operator.".to_owned(),
    };
    let heartbeat = Heartbeat {
        from: incarnation(),
        source: "CONTROL/DV01".to_owned(),
        direct: String::new(),
        state: SenderState::Present,
        offers: vec![offer],
    };
    let dump = hex_dump(PAGE, 0);
    same(&heartbeat.encode(), &dump);
    assert_eq!(Control::decode(&dump), Ok(Control::Heartbeat(heartbeat)));
}

#[test]
fn acknowledgements() {
    let mark = Mark {
        reader: 1,
        stream: 2,
        next: 1_000_003,
        needs_copies: true,
        leaving: false,
        linked: true,
        attached: false,
        grouped: false,
        slot: 3,
        received: 0,
    };
    let acknowledgement = Acknowledgement { from: incarnation(), marks: vec![mark] };
    let dump = hex_dump(PAGE, 1);
    same(&acknowledgement.encode(), &dump);
    assert_eq!(Control::decode(&dump), Ok(Control::Acknowledgement(acknowledgement)));

    let mark = Mark { reader: 1, stream: 2, next: 1_000_003, received: 1_000_005, ..Mark::default() };
    let acknowledgement = Acknowledgement { from: incarnation(), marks: vec![mark] };
    let dump = hex_dump(PAGE, 2);
    same(&acknowledgement.encode(), &dump);
    assert_eq!(Control::decode(&dump), Ok(Control::Acknowledgement(acknowledgement)));
}

#[test]
fn refetches_and_shelves() {
    let refetch = Refetch { stream: 2, from: 999_500, to: 1_000_000, limit: 4 << 20 };
    let dump = hex_dump(PAGE, 3);
    same(&refetch.encode(), &dump);
    assert_eq!(Refetch::decode(&dump), Ok(refetch));

    let shelf = Shelf { stream: 2, lowest: 999_000, next: 1_000_003 };
    let dump = hex_dump(PAGE, 4);
    same(&shelf.encode(), &dump);
    assert_eq!(Shelf::decode(&dump), Some(shelf));
}

#[test]
fn batches_elsewhere() {
    let header = BatchHeader {
        domain: Domain::new("d").unwrap(),
        source: SourceName::new("s").unwrap(),
        incarnation: incarnation(),
        stream: 2,
        first: 1_000_000,
        count: 3,
        type_id: 1,
        type_version: 1,
        acquired: Time(0),
        sent: Time(0),
        clock: ClockState::Unknown,
        tai_offset: 0,
        flags: 0,
    };
    let mut batch = Vec::new();
    header.encode(8112, &mut batch);
    batch.resize(8192, 7);
    let place = Loaned { position: 1 << 33, place: 2048, length: 8192 };
    let dump = hex_dump(PAGE, 6);
    same(&elsewhere(&batch, place), &dump);
    let (found, body) = BatchHeader::decode(&dump).unwrap();
    assert_eq!(found, BatchHeader { flags: FLAG_ELSEWHERE, ..header });
    assert_eq!(Loaned::decode(body), Ok(place));
}

#[test]
fn bodies() {
    let lent = Loaned { position: 1 << 33, place: 2048, length: 1_048_576 };
    let mut body = BytesMut::new();
    put_sample(&mut body, b"hello");
    put_loaned(&mut body, lent);
    let dump = hex_dump(PAGE, 5);
    same(&body, &dump);
    assert_eq!(sample_at(&dump, 0), Ok((Piece::Bytes(b"hello"), 12)));
    assert_eq!(sample_at(&dump, 12), Ok((Piece::Loaned(lent), dump.len())));
}

#[test]
fn announced_keys() {
    let page = "wire/announced.md";
    let asked = AskForKeys { table: 7, has: 42 };
    same(&asked.encode(), &hex_dump(page, 0));
    let change = |key: &str, here| KeyChange { key: key.to_owned(), here };
    let (process, node) = ("p/mast/1a2b3c4d-00001267-18ea008b6316cd15/4456", "n/mast/1a2b3c4d");
    for (number, is_whole, changes) in
        [(1, true, vec![change(node, true)]), (2, false, vec![change(process, true), change(node, false)])]
    {
        let news = AnnouncedKeys { table: 7, from: 42, is_whole, changes };
        let dump = hex_dump(page, number);
        same(&news.encode(), &dump);
        assert_eq!(AnnouncedKeys::decode(&dump), Ok(news));
    }
}

#[test]
fn datagrams_of_groups() {
    let seal = Seal::new(&Key { epoch: 0x0123_4567_89ab_cdef, secret: [7; 32] }).unwrap();
    let page = "wire/group.md";
    let piece = GroupPiece { index: 1, offset: 1392, total: 1397, bytes: b"hello" };
    let report = Report { seen: 42, lost: 3, room: 1 << 20, longest: 1472, missing: vec![(30, 2), (40, 1)] };
    for (number, written, content) in [
        (0, seal.piece(41, &piece), Content::Piece(41, piece)),
        (1, seal.beacon(9, 42, 0, 0), Content::Beacon { next: 42, lowest: 0 }),
        (2, seal.report(5, 6, &report), Content::Report(5, report.clone())),
    ] {
        let mut dump = hex_dump(page, number);
        same(&written, &dump);
        assert_eq!(seal.open(&mut dump), Ok(content));
    }
}
