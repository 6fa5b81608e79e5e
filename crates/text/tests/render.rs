//! Every type with every spec, held against what `format!` gives for the same; sites as bytes; and payloads that lie.

use proptest::prelude::*;
use tampu_text::{BadPayload, Piece, Rendered, Site, Spec, memory::Memory, statement};

/// The message of the one call of a memory, from its bytes alone.
fn rendered(memory: &Memory) -> String {
    let call = memory.calls().remove(0);
    let mut bytes = Vec::new();
    call.site.encode(&mut bytes);
    let mut rendered = Rendered::default();
    rendered.render(&Site::decode(&bytes).unwrap(), &call.payload).unwrap();
    rendered.message().to_owned()
}

/// These values under each of these specs. The value is stored and not formatted at the call, or the test would show
/// nothing.
macro_rules! same {
    ($value:expr; $($spec:literal)+) => {$({
        let memory = Memory::default();
        let value = $value;
        statement!(4, memory, $spec, value);
        assert_ne!(memory.calls()[0].payload[0], 16, "{} was formatted at the call", $spec);
        prop_assert_eq!(rendered(&memory), format!($spec, value), "{}", $spec);
    })+};
}

macro_rules! as_integer {
    ($value:expr) => {
        same!($value;
            "{}" "{:?}" "{:x}" "{:X}" "{:o}" "{:b}" "{:e}" "{:E}" "{:x?}" "{:X?}" "{:#?}" "{:+}" "{:-}" "{:+?}" "{:+x}" "{:+e}"
            "{:#x}" "{:#X}" "{:#o}" "{:#b}" "{:#x?}" "{:#X?}" "{:#010x}" "{:#012X?}" "{:010}" "{:+010}" "{:08x}" "{:08b}" "{:08o}"
            "{:8}" "{:<8}" "{:^8}" "{:>8}" "{:*<9}" "{:é^9}" "{:->30}" "{:<08}" "{:*^+#011x}" "{:.3}" "{:8.3}" "{:.2e}" "{:.0E}"
            "{:12.2e}" "{:<12.2e}" "{:012.2e}" "{:+012e}" "{:*^14E}" "{:0}" "{:1}" "{:40}" "{:040}" "{:>8?}" "{:08?}" "{:#}"
        );
    };
}

macro_rules! as_float {
    ($value:expr) => {
        same!($value;
            "{}" "{:?}" "{:e}" "{:E}" "{:#?}" "{:x?}" "{:+}" "{:+?}" "{:+e}" "{:.0}" "{:.1}" "{:.3}" "{:.17}" "{:.3?}" "{:.0?}" "{:.3e}"
            "{:.0E}" "{:10}" "{:<10}" "{:^10}" "{:*>10}" "{:é^+10}" "{:010}" "{:+010}" "{:010.2}" "{:+010.2}" "{:<010.2}" "{:10.2}"
            "{:<12.3e}" "{:012.3e}" "{:+012.3E}" "{:012?}" "{:*^12.1?}" "{:0}" "{:400}" "{:0400}" "{:#}" "{:-}" "{:>8.3}" "{:08.3}"
        );
    };
}

macro_rules! as_text {
    ($value:expr) => {
        same!($value;
            "{}" "{:?}" "{:#?}" "{:x?}" "{:8}" "{:<8}" "{:^8}" "{:>8}" "{:*^9}" "{:é>9}" "{:.0}" "{:.2}" "{:.5}" "{:8.2}" "{:*>8.2}"
            "{:08}" "{:+}" "{:#}" "{:8?}" "{:*>12?}" "{:.2?}" "{:<08}" "{:1}"
        );
    };
}

macro_rules! as_option {
    ($value:expr) => {
        same!(Some($value);
            "{:?}" "{:#?}" "{:8?}" "{:<8?}" "{:*^9?}" "{:08?}" "{:+?}" "{:x?}" "{:#X?}" "{:.2?}" "{:#12?}" "{:+010.3?}"
        );
        let mut absent = Some($value);
        absent.take();
        same!(absent.clone(); "{:?}" "{:#?}" "{:8?}" "{:08x?}" "{:.1?}");
    };
}

/// Floats of every magnitude, infinity and NaN.
fn floats() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        -1e6..1e6f64,
        (-1000i32..1000).prop_map(f64::from),
        Just(f64::NAN),
        Just(-f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(0.0),
        Just(-0.0),
        Just(f64::MIN_POSITIVE),
        Just(1e16),
        Just(1e-5),
        Just(0.5),
        Just(2.5),
    ]
}

fn integers() -> impl Strategy<Value = i128> {
    prop_oneof![any::<i128>(), any::<i64>().prop_map(i128::from), -300..300i128, Just(i128::MIN), Just(i64::MIN.into()), Just(-1)]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,12}", ".{0,8}", "[é\u{301}\u{1f600}\\n\"'\\\\\u{0}]{0,6}", "[ -~]{15,70}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn integers_read_as_format_writes_them(number in integers()) {
        as_integer!(number as u8);
        as_integer!(number as u16);
        as_integer!(number as u32);
        as_integer!(number as u64);
        as_integer!(number as u128);
        as_integer!(number as usize);
        as_integer!(number as i8);
        as_integer!(number as i16);
        as_integer!(number as i32);
        as_integer!(number as i64);
        as_integer!(number);
        as_integer!(number as isize);
        as_integer!(&&(number as i16));
    }

    #[test]
    fn floats_read_as_format_writes_them(number in floats()) {
        as_float!(number);
        as_float!(number as f32);
        as_float!(&number);
    }

    #[test]
    fn texts_read_as_format_writes_them(text in texts(), character in any::<char>(), truth in any::<bool>()) {
        as_text!(text.as_str());
        as_text!(text.clone());
        as_text!(&text);
        as_text!(text.clone().into_boxed_str());
        as_text!(std::borrow::Cow::Borrowed(text.as_str()));
        as_text!(character);
        as_text!(truth);
    }

    #[test]
    fn options_read_as_format_writes_them(number in integers(), float in floats(), text in texts(), character in any::<char>()) {
        as_option!(number);
        as_option!(number as i8);
        as_option!(number as u64);
        as_option!(float);
        as_option!(float as f32);
        as_option!(text.as_str());
        as_option!(&text);
        as_option!(text.clone());
        as_option!(character);
        as_option!(number > 0);
    }

    #[test]
    fn whole_statements_read_as_format_writes_them(
        (a, b, c, d) in (any::<u32>(), any::<i64>(), texts(), floats()),
        (width, precision) in (0..40usize, 0..20usize),
    ) {
        macro_rules! statement_and_format {
            ($($tokens:tt)+) => {{
                let memory = Memory::default();
                statement!(4, memory, $($tokens)+);
                prop_assert_eq!(rendered(&memory), format!($($tokens)+));
            }};
        }
        statement_and_format!("az {a} el {b:+} of {c:?} at {d:e}, {2:>width$}|{:.*}|{n:é^w$.p$?}", precision, d, c, n = d * 2.0, w = width, p = precision);
        statement_and_format!("{3}{2:?}{1:#x}{0:08.3}{3:.1}{2}", d, b, c, c);
    }

    #[test]
    fn sites_lead_back_to_themselves(
        level in any::<u8>(), line in any::<u32>(), file in texts(), module in texts(), literal in texts(), names in prop::collection::vec(texts(), 0..3),
        specs in prop::collection::vec(spec(), 0..6),
    ) {
        let arguments = (specs.len() + names.len()) as u16;
        let mut pieces: Vec<Piece> = specs.into_iter().enumerate().map(|(index, spec)| Piece::Argument { index: index as u16, spec }).collect();
        pieces.insert(pieces.len() / 2, Piece::Text(literal.into()));
        let names: Vec<_> = names.into_iter().map(Into::into).collect();
        let site = Site { level, line, file: file.into(), module: module.into(), pieces: pieces.into(), arguments, names: names.into(), ..Site::default() };
        let mut bytes = Vec::new();
        site.encode(&mut bytes);
        for end in 0..bytes.len() {
            prop_assert!(Site::decode(&bytes[..end]).is_err(), "cut at {}", end);
        }
        prop_assert_eq!(Site::decode(&bytes), Ok(site.clone()));
        bytes.extend(b"what a later release appends");
        prop_assert_eq!(Site::decode(&bytes), Ok(site));
    }

    #[test]
    fn any_bytes_are_rendered_or_refused(
        description in prop::collection::vec(any::<u8>(), 0..200), payload in prop::collection::vec(any::<u8>(), 0..64),
        tags in prop::collection::vec(0..20u8, 0..9), specs in prop::collection::vec((0..9u16, spec()), 0..6),
    ) {
        let _ = Site::decode(&description);
        let pieces: Vec<Piece> = specs.into_iter().map(|(index, spec)| Piece::Argument { index, spec }).collect();
        let site = Site { arguments: tags.len() as u16, pieces: pieces.into(), ..Site::default() };
        let mut bytes = tags;
        bytes.resize(bytes.len().div_ceil(8) * 8, 0);
        bytes.extend(payload);
        for dialect in [tampu_text::Dialect::Rust, tampu_text::Dialect::Fmt] {
            let _ = Rendered::default().render(&Site { dialect, ..site.clone() }, &bytes);
        }
    }
}

fn spec() -> impl Strategy<Value = Spec> {
    use tampu_text::{Align, Kind, Sign};
    let align = prop::sample::select(vec![None, Some(Align::Left), Some(Align::Center), Some(Align::Right)]);
    let sign = prop::sample::select(vec![Sign::None, Sign::Plus, Sign::Space]);
    let kind = prop::sample::select(Kind::ALL.to_vec());
    let parts =
        (any::<char>(), align, sign, any::<(bool, bool)>(), prop::option::of(0..300u16), prop::option::of(0..300u16), kind);
    parts.prop_map(|(fill, align, sign, (alternate, zero), width, precision, kind)| Spec {
        fill,
        align,
        sign,
        alternate,
        zero,
        width,
        precision,
        kind,
    })
}

/// A site of one or more plain arguments.
fn plain(count: u16) -> Site {
    let pieces: Vec<Piece> = (0..count).map(|index| Piece::Argument { index, spec: Spec::PLAIN }).collect();
    Site { arguments: count, pieces: pieces.into(), ..Site::default() }
}

#[test]
fn payloads_that_lie_are_told_and_what_came_before_is_shown() {
    let cases: [(u16, &[u8], BadPayload, &str); 8] = [
        (1, &[], BadPayload::Truncated { at: 0, argument: 0 }, ""),
        (1, &[3, 0, 0, 0, 0, 0, 0], BadPayload::Truncated { at: 7, argument: 0 }, ""),
        (2, &[3, 6, 0, 0, 0, 0, 0, 0, 7, 1], BadPayload::Truncated { at: 10, argument: 1 }, "7"),
        (2, &[3, 0, 0, 0, 0, 0, 0, 0, 7], BadPayload::UnknownTag { argument: 1, tag: 0 }, "7"),
        (1, &[3, 3, 0, 0, 0, 0, 0, 0, 7, 8], BadPayload::Count { expected: 1 }, ""),
        (1, &[17, 0, 0, 0, 0, 0, 0, 0], BadPayload::UnknownTag { argument: 0, tag: 17 }, ""),
        (1, &[0x83, 0, 0, 0, 0, 0, 0, 0, 2, 7], BadPayload::Presence { argument: 0, value: 2 }, ""),
        (1, &[15, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, b'a'], BadPayload::Truncated { at: 13, argument: 0 }, ""),
    ];
    for (count, payload, error, shown) in cases {
        let mut rendered = Rendered::default();
        assert_eq!(rendered.render(&plain(count), payload), Err(error), "{payload:?}");
        assert_eq!(rendered.message(), shown);
    }
}

#[test]
fn characters_and_texts_that_are_none_are_shown_as_far_as_they_go() {
    let mut rendered = Rendered::default();
    rendered.render(&plain(2), &[2, 15, 0, 0, 0, 0, 0, 0, 0, 0xd8, 0, 0, 3, 0, 0, 0, b'a', 0xff, b'b']).unwrap();
    assert_eq!(rendered.message(), "\u{fffd}a\u{fffd}b");
}

#[test]
fn a_few_bytes_do_not_become_gigabytes() {
    let pieces = vec![Piece::Argument { index: 0, spec: Spec { width: Some(u16::MAX), ..Spec::PLAIN } }; 10_000];
    let site = Site { arguments: 1, pieces: pieces.into(), ..Site::default() };
    let mut rendered = Rendered::default();
    let told = rendered.render(&site, &[3, 0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(told, Err(BadPayload::TooLong(tampu_text::render::RENDERED_MAX)));
    assert!(rendered.message().len() < 2 * tampu_text::render::RENDERED_MAX);
}

#[test]
fn a_call_shows_an_argument_its_statement_does_not_have() {
    let site = Site { pieces: vec![Piece::Argument { index: 3, spec: Spec::PLAIN }].into(), ..plain(1) };
    let told = Rendered::default().render(&site, &[3, 0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(told, Err(BadPayload::NoSuchArgument { index: 1, count: 1 }));
    let named = Site { names: vec!["a".into(), "b".into()].into(), ..plain(1) };
    assert_eq!(Rendered::default().render(&named, &[3, 0, 0, 0, 0, 0, 0, 0, 7]), Err(BadPayload::Count { expected: 1 }));
}
