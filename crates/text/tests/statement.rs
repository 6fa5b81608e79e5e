//! Statements: evaluation, captured values and results of the macro, against `format!`.

use std::{borrow::Cow, cell::Cell, fmt};

use tampu_text::{Piece, Rendered, TEXT_MAX, memory::Memory, statement};

/// The one message of a memory.
fn message(memory: &Memory) -> String {
    let rendered = memory.rendered();
    assert_eq!(rendered.len(), 1);
    rendered[0].message().to_owned()
}

/// Renders a statement and holds it against `format!` with the same tokens.
macro_rules! same {
    ($($tokens:tt)+) => {{
        let memory = Memory::default();
        statement!(4, memory, $($tokens)+);
        assert_eq!(message(&memory), format!($($tokens)+));
        memory
    }};
}

/// A type nobody knows.
#[derive(Debug, Clone, Copy)]
struct Angle(f64);

impl Angle {
    fn tell(&self, memory: &Memory) {
        statement!(4, memory, "{self} {self:?}");
    }
}

impl fmt::Display for Angle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} deg", self.0)
    }
}

impl fmt::LowerHex for Angle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&(self.0 as u64), f)
    }
}

/// Tags of a memory's one call.
fn tags(memory: &Memory) -> Vec<u8> {
    let call = memory.calls().remove(0);
    call.payload[..call.site.arguments.into()].to_vec()
}

#[test]
fn values_of_known_types_are_stored_and_others_formatted() {
    let (text, owned): (&str, String) = ("a", "b".into());
    let boxed: Box<str> = "c".into();
    let cow: Cow<'_, str> = Cow::Borrowed("d");
    let memory = same!("{} {} {} {} {} {} {}", 1u8, -2i128, 3usize, 1.5f32, 2.5, true, 'x');
    assert_eq!(tags(&memory), [3, 12, 6, 13, 14, 1, 2]);
    let memory = same!("{} {} {} {} {} {}", text, owned, boxed, cow, &&owned, &mut owned.clone());
    assert_eq!(tags(&memory), [15; 6]);
    let memory = same!("{:?} {:?} {:?} {:?}", Some(5), None::<&str>, Some(&owned), &Some(Some(1)));
    assert_eq!(tags(&memory), [0x80 | 10, 0x80 | 15, 0x80 | 15, 16]);
    let memory = same!("{} {:?} {:x} {:>9}", Angle(1.0), Angle(2.0), Angle(255.0), format_args!("{}", 7));
    assert_eq!(tags(&memory), [16; 4]);
    let memory = same!("{:?} {:?} {}", [1, 2], (), std::num::NonZero::new(3u8).unwrap());
    assert_eq!(tags(&memory), [16; 3]);
    let memory = same!("nothing but {{text}}");
    assert_eq!(memory.calls()[0].payload, []);
}

#[test]
fn arguments_are_found_as_format_finds_them() {
    let (az, el, width, precision) = (12.3456, -7.5, 10, 2);
    same!("{az} {el:?} {az:.2}");
    same!("{1} {0} {} {}", "a", "b");
    same!("{a} {b} {a}", a = 1, b = "two");
    same!("{} {b} {0}", 1, b = 2);
    same!("{:width$.precision$}|{:>1$}|{:.*}|{el:^+width$.2e}", az, 12, 3, el);
    same!("{:>1$.2$} {0:x}", 5, 6, 7);
    same!("{:0$} {:02$}", 3, 4, 5);
    same!("{0:?} {0} {0:?}", "é\n");
    same!(
        "one \
           line\t\u{e9} \x41 {}",
        1
    );
    same!(r#"raw "{}" \n"#, 1);
    same!("{x:é^9}{x:{<4}|", x = 1);
    same!("{ } {0 }", 1);
    same!("{type}", r#type = 1);
    same!("{type:?} {}", 1, r#type = 2);
    same!(concat!("joined ", 1, " {}"), 2);
}

#[test]
fn methods_say_self() {
    let memory = Memory::default();
    Angle(1.0).tell(&memory);
    assert_eq!(message(&memory), "1.0 deg Angle(1.0)");
}

#[test]
fn equal_placeholders_share_what_is_stored() {
    let memory = same!("{0} {0} {0:?} {x} {x}", 1u8, x = 2u8);
    assert_eq!(memory.calls()[0].site.arguments, 3);
}

#[test]
fn a_pointer_is_the_values_own() {
    let value = 5;
    same!("{:p} {:p}", &value, &raw const value);
}

#[test]
fn each_argument_is_evaluated_once_in_order_and_none_when_disabled() {
    let (memory, order) = (Memory::from_level(5), Cell::new(0));
    let next = || {
        order.set(order.get() + 1);
        order.get()
    };
    statement!(4, memory, "{} {}", next(), next(); value = next());
    assert_eq!((order.get(), memory.calls().len()), (0, 0));
    statement!(5, memory, "{1} {0} {0:?} {1:x}", next(), next(); value = next());
    assert_eq!(order.get(), 3);
    let rendered = &memory.rendered()[0];
    assert_eq!(rendered.message(), "2 1 1 2");
    assert_eq!(rendered.values().collect::<Vec<_>>(), [("value", "3")]);
}

#[test]
fn the_programs_names_and_the_macros_do_not_meet() {
    let (logger, a0, v0, out, wanted) = (Memory::default(), 1, 2, 3, 4);
    const TAMPU_STATEMENT: u8 = 5;
    const TAMPU_LEVEL: u8 = 6;
    statement!(4, logger, "{a0} {v0} {out} {wanted} {} {TAMPU_LEVEL} {}", TAMPU_STATEMENT, logger.calls().len(); a0 = a0);
    assert_eq!(message(&logger), "1 2 3 4 5 6 0");
}

fn generic<T: fmt::Display + fmt::Debug>(memory: &Memory, value: T, reference: &T) {
    statement!(4, memory, "{value} {reference:>6} {:?}", Some(&value));
}

fn unsized_too<T: fmt::Display + ?Sized>(memory: &Memory, value: &T) {
    statement!(4, memory, "{value}");
}

#[test]
fn in_generic_functions_what_is_not_known_is_formatted() {
    let memory = Memory::default();
    generic(&memory, 1, &2);
    generic(&memory, "a", &"b");
    unsized_too(&memory, "c");
    let dynamic: &dyn fmt::Display = &7;
    statement!(4, memory, "{}", dynamic);
    let messages: Vec<String> = memory.rendered().iter().map(|rendered| rendered.message().to_owned()).collect();
    assert_eq!(messages, ["1      2 Some(1)", "a      b Some(\"a\")", "c", "7"]);
    let routine = memory.calls()[0].site.routine.clone();
    assert!(routine.ends_with("statement::generic"), "{routine}");
}

#[test]
fn closures_and_futures_log_and_can_be_sent() {
    fn sent<F: Future + Send>(future: F) -> F {
        future
    }
    async fn answer() -> u8 {
        42
    }
    let memory = Memory::default();
    let call = |number: u32| statement!(4, memory, "{number}");
    call(1);
    let mut future = Box::pin(sent(async {
        statement!(4, memory, "{} {}", answer().await, Angle(1.0));
    }));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_ready());
    let messages: Vec<String> = memory.rendered().iter().map(|rendered| rendered.message().to_owned()).collect();
    assert_eq!(messages, ["1", "42 1.0 deg"]);
    for call in memory.calls() {
        assert!(call.site.routine.ends_with("::closures_and_futures_log_and_can_be_sent"), "{}", call.site.routine);
    }
}

#[test]
fn control_flow_leaves_from_within_an_argument() {
    fn first(memory: &Memory, text: &str) -> Result<(), std::num::ParseIntError> {
        statement!(4, memory, "{}", text.parse::<u8>()?);
        Ok(())
    }
    let memory = Memory::default();
    assert!(first(&memory, "x").is_err());
    assert!(first(&memory, "7").is_ok());
    assert_eq!(message(&memory), "7");
}

#[test]
fn texts_come_through_other_macros() {
    macro_rules! passes {
        ($text:literal $(, $argument:expr)*) => { statement!(4, MEMORY.with(|memory| *memory), $text $(, $argument)*) };
        (expression $text:expr $(, $argument:expr)*) => { statement!(4, MEMORY.with(|memory| *memory), $text $(, $argument)*) };
    }
    thread_local!(static MEMORY: &'static Memory = Box::leak(Box::default()));
    let inline = 3;
    passes!("{} {inline} {:?}", 1, "two");
    passes!(expression "{} {:?}", 1, "two");
    let memory = MEMORY.with(|memory| *memory);
    let calls = memory.calls();
    assert_eq!(calls.iter().map(|call| call.site.arguments).collect::<Vec<_>>(), [3, 2], "the text was split");
    assert_eq!(memory.rendered()[0].message(), "1 3 \"two\"");
}

#[test]
fn a_statement_says_where_it_stands() {
    let memory = Memory::default();
    let line = line!() + 1;
    statement!(8, memory, "text"; r#type = 1, other = Angle(2.0),);
    let site = &memory.calls()[0].site;
    assert_eq!((site.level, site.line, &*site.file), (8, line, file!()));
    assert_eq!(site.module, module_path!());
    assert!(site.routine.ends_with("::a_statement_says_where_it_stands"), "{}", site.routine);
    assert_eq!(site.names.as_ref(), ["type", "other"]);
    assert_eq!(site.pieces.as_ref(), [Piece::Text("text".into())]);
    assert_eq!(memory.rendered()[0].values().collect::<Vec<_>>(), [("type", "1"), ("other", "2.0 deg")]);
}

#[test]
fn loggers_are_found_behind_pointers() {
    struct Owner {
        memory: std::sync::Arc<Memory>,
    }
    let owner = Owner { memory: std::sync::Arc::default() };
    statement!(4, owner.memory, "1");
    statement!(4, &owner.memory, "2");
    statement!(4, *owner.memory, "3");
    statement!(4, owner.memory.clone(), "4",);
    assert_eq!(owner.memory.calls().len(), 4);
}

#[test]
fn types_may_become_known_later() {
    let memory = Memory::default();
    let (integer, float, mut list) = (5, 1.5, Vec::new());
    let anything = Default::default();
    statement!(4, memory, "{integer} {float} {:?} {anything}", list.first());
    list.push(1u8);
    let _: (u64, f32, String) = (integer, float, anything);
    assert_eq!(tags(&memory), [6, 13, 0x80 | 3, 15]);
    assert_eq!(message(&memory), "5 1.5 None ");
}

#[test]
fn formatting_may_log() {
    struct Logs<'a>(&'a Memory);
    impl fmt::Display for Logs<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            statement!(4, self.0, "inner {}", Angle(1.0));
            f.write_str("outer")
        }
    }
    let memory = Memory::default();
    statement!(4, memory, "{} {}", Logs(&memory), Angle(2.0));
    let messages: Vec<String> = memory.rendered().iter().map(|rendered| rendered.message().to_owned()).collect();
    assert_eq!(messages, ["inner 1.0 deg", "outer 2.0 deg"]);
}

#[test]
fn texts_beyond_all_measure_are_cut_and_say_so() {
    let long = "é".repeat(TEXT_MAX);
    let memory = Memory::default();
    statement!(4, memory, "{long}");
    statement!(4, memory, "{}", format_args!("{long}"));
    statement!(4, memory, "{}", format_args!("x{long}y"));
    statement!(4, memory, "{}", &long[..TEXT_MAX]);
    let kept = &long[..TEXT_MAX];
    let expected = [
        format!("{kept} [... {TEXT_MAX} bytes cut]"),
        format!("{kept} [... {TEXT_MAX} bytes cut]"),
        format!("x{} [... {} bytes cut]", &kept[2..], TEXT_MAX + 3),
        kept.to_owned(),
    ];
    for (rendered, expected) in memory.rendered().iter().zip(expected) {
        assert!(rendered.message() == expected, "{}", &rendered.message()[TEXT_MAX - 4..]);
    }
}

#[test]
fn sixty_four_arguments_fit() {
    let memory = Memory::default();
    statement!(4, memory, "{0}{0:1}{0:2}{0:3}{0:4}{0:5}{0:6}{0:7}{0:8}{0:9}{0:10}{0:11}{0:12}{0:13}{0:14}{0:15}{0:16}{0:17}{0:18}{0:19}\
        {0:20}{0:21}{0:22}{0:23}{0:24}{0:25}{0:26}{0:27}{0:28}{0:29}{0:30}{0:31}{0:32}{0:33}{0:34}{0:35}{0:36}{0:37}{0:38}{0:39}\
        {0:40}{0:41}{0:42}{0:43}{0:44}{0:45}{0:46}{0:47}{0:48}{0:49}{0:50}{0:51}{0:52}{0:53}{0:54}{0:55}{0:56}{0:57}{0:58}{0:59}\
        {0:60}{0:61}{0:62}", 1u8; last = "value");
    let call = &memory.calls()[0];
    assert_eq!((call.site.arguments, call.payload.len()), (64, 64 + 63 + 9));
    let mut rendered = Rendered::default();
    rendered.render(&call.site, &call.payload).unwrap();
    assert_eq!(rendered.message().len(), 1 + (1..=62).sum::<usize>());
    assert_eq!(rendered.values().collect::<Vec<_>>(), [("last", "value")]);
}
