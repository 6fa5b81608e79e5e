//! The vectors of `spec/log-call.md`, read out of the page and held against the code.

#[path = "../../types/tests/support/page.rs"]
mod page;

use page::{hex_dump, table};
use tampu_text::{Kind, Piece, Rendered, Site, Spec, memory::Memory, statement, tag::Tag};

const PAGE: &str = "log-call.md";

fn print(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn tags_and_kinds() {
    let numbered = |title: &str| -> Vec<(u8, String)> {
        table(PAGE, title).into_iter().map(|row| (row[0].parse().unwrap(), row[1].clone())).collect()
    };
    let tags: Vec<_> = Tag::ALL.into_iter().map(|tag| (tag as u8, format!("{tag:?}"))).collect();
    assert_eq!(numbered("tag"), tags);
    let kinds: Vec<_> = Kind::ALL.into_iter().map(|kind| (kind as u8, format!("{kind:?}"))).collect();
    assert_eq!(numbered("spec kind"), kinds);
}

#[test]
fn the_letters_of_kinds_in_cpp() {
    for row in table(PAGE, "spec kind").into_iter().filter(|row| !row[3].is_empty()) {
        let site = Site::parse(&format!("{{:{}}}", row[3])).unwrap();
        let Piece::Argument { spec, .. } = &site.pieces[0] else { panic!("{site:?}") };
        assert_eq!(format!("{:?}", spec.kind), row[1]);
    }
}

#[test]
fn a_statement_byte_for_byte() {
    let memory = Memory::default();
    statement!(4, memory, "az {:08.3} of {name:?}", -7.5f64, name = "DV01"; scan = 7u8);
    let call = memory.calls().remove(0);
    assert_eq!(print(&call.payload), print(&hex_dump(PAGE, 1)), "left: written now; right: the page's");

    // The page's statement has another location in the source than this one.
    let site = Site { file: "a.rs".into(), line: 7, module: "m".into(), routine: "m::f".into(), ..call.site };
    let mut written = Vec::new();
    site.encode(&mut written);
    let dump = hex_dump(PAGE, 0);
    assert_eq!(print(&written), print(&dump), "left: written now; right: the page's");
    assert_eq!(Site::decode(&dump), Ok(site.clone()));

    let mut rendered = Rendered::default();
    rendered.render(&site, &hex_dump(PAGE, 1)).unwrap();
    assert_eq!(rendered.message(), "az -007.500 of \"DV01\"");
    assert_eq!(rendered.values().collect::<Vec<_>>(), [("scan", "7")]);
}

#[test]
fn payloads_of_one_argument() {
    let memory = Memory::default();
    macro_rules! rows {
        ($($argument:expr),*) => {[$({
            statement!(4, memory, "{:?}", $argument);
            (stringify!($argument), format!("{:?}", $argument))
        }),*]};
    }
    let rows = rows!(true, 'é', -2i16, 1u128, 1.5f32, Some(7u32), None::<&str>, [1, 2]);
    let table = table(PAGE, "argument");
    assert_eq!(table.len(), rows.len());
    let pieces = vec![Piece::Argument { index: 0, spec: Spec { kind: Kind::Debug, ..Spec::PLAIN } }];
    let site = Site { arguments: 1, pieces: pieces.into(), ..Site::default() };
    for ((row, call), (argument, shown)) in table.iter().zip(memory.calls()).zip(rows) {
        assert_eq!(row[..], [argument.to_owned(), print(&call.payload), shown.clone()]);
        let bytes: Vec<u8> = row[1].split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        let mut rendered = Rendered::default();
        rendered.render(&site, &bytes).unwrap();
        assert_eq!(rendered.message(), shown);
    }
}
