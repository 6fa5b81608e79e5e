//! Tests of the viewer without a terminal: keys in, state and a drawn buffer out.

use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    layout::Rect,
    style::{Color, Modifier},
};
use tampu_types::{Datum, Level, LogRecord, Time};

use super::{
    draw,
    keys::HELP,
    state::{Effect, Kind, Link, Panel, Viewer},
    theme::Theme,
};
use crate::output::column::Column;

/// A viewer of ten rows, of two sources and several levels.
fn viewer() -> Viewer {
    let mut viewer = Viewer::new("live 'test'".into(), 100, true);
    viewer.resize(6);
    viewer.take((0..10).map(row).collect());
    viewer
}

fn row(number: i64) -> LogRecord {
    let level = [Level::Info, Level::Debug, Level::Warning, Level::Error, Level::Info][number as usize % 5];
    let mut row = LogRecord::new(level, format!("message {number}"));
    row.time = Time(1_795_248_000_000_000_000 + number * 1_000_000_000);
    row.source_object = format!("CONTROL/DV0{}", number % 2);
    row
}

fn press(viewer: &mut Viewer, keys: &str) -> Option<Effect> {
    let mut last = None;
    for character in keys.chars() {
        let code = match character {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            other => KeyCode::Char(other),
        };
        last = viewer.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    last
}

fn control(viewer: &mut Viewer, character: char) -> Option<Effect> {
    viewer.key(KeyEvent::new(KeyCode::Char(character), KeyModifiers::CONTROL))
}

fn current(viewer: &Viewer) -> &str {
    viewer.current().map_or("", |row| row.message.as_str())
}

fn shown(viewer: &Viewer) -> Vec<String> {
    viewer.rows.all_shown().map(|row| row.message.strip_prefix("message ").unwrap_or(&row.message).to_owned()).collect()
}

fn screen(viewer: &mut Viewer, (width, height): (u16, u16), colour: bool) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    viewer.resize(draw::page(viewer, Rect::new(0, 0, width, height)));
    terminal.draw(|frame| draw::draw(viewer, Theme { colour }, frame)).unwrap();
    terminal
}

fn lines(viewer: &mut Viewer, size: (u16, u16)) -> Vec<String> {
    let terminal = screen(viewer, size, true);
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..size.1).map(line).collect()
}

#[test]
fn the_cursor_follows_the_log_until_it_is_moved_and_again_at_the_end() {
    let mut viewer = viewer();
    assert_eq!(current(&viewer), "message 9");
    press(&mut viewer, "kk");
    viewer.take(vec![row(10)]);
    assert_eq!(current(&viewer), "message 7");
    press(&mut viewer, "g");
    assert_eq!((current(&viewer), viewer.top), ("message 0", 0));
    press(&mut viewer, "G");
    viewer.take(vec![row(11)]);
    assert_eq!((current(&viewer), viewer.top), ("message 11", 6));
    viewer.key(KeyEvent::new(KeyCode::PageUp, KeyModifiers::NONE));
    assert_eq!((current(&viewer), viewer.top, viewer.follow), ("message 5", 5, false));
    // Removing old rows from memory does not move the cursor's row.
    (12..106).for_each(|number| viewer.take(vec![row(number)]));
    assert_eq!((current(&viewer), viewer.rows.dropped()), ("message 6", 6));
}

#[test]
fn a_pause_counts_what_waits_and_what_has_no_room() {
    let mut viewer = viewer();
    press(&mut viewer, " ");
    (10..115).for_each(|number| viewer.take(vec![row(number)]));
    assert_eq!((viewer.rows.shown(), current(&viewer)), (10, "message 9"));
    let title = lines(&mut viewer, (140, 10)).remove(0);
    assert!(title.ends_with("PAUSED, 100 WAITING, 5 OLDER ONES DROPPED BEYOND 100"), "{title}");
    press(&mut viewer, " ");
    assert_eq!((viewer.rows.shown(), current(&viewer)), (100, "message 114"));
    assert_eq!(viewer.message, "100 came while paused, 5 older ones had no room (--keep)");
}

#[test]
fn values_and_texts_filter_and_every_filter_is_taken_back() {
    let mut viewer = viewer();
    press(&mut viewer, "gf");
    assert_eq!(shown(&viewer), ["0", "2", "4", "6", "8"], "only the source under the cursor");
    press(&mut viewer, "hx");
    assert_eq!(shown(&viewer), ["2", "6", "8"], "without the level under the cursor, Info");
    press(&mut viewer, "o8\n");
    assert_eq!(shown(&viewer), ["2", "6"]);
    press(&mut viewer, "ime.*2\n");
    assert!(shown(&viewer).is_empty(), "a text is no expression");
    press(&mut viewer, "ui");
    control(&mut viewer, 'r');
    press(&mut viewer, "e.*2$\n");
    assert_eq!(shown(&viewer), ["2"]);
    assert_eq!(viewer.filter.text(), "+SourceObject=CONTROL/DV00  -Level=Info  -'8'  +/e.*2$/");
    // In the list: off and on, inverted, deleted.
    press(&mut viewer, "F ");
    assert_eq!(shown(&viewer), ["2"], "the row shown came from this source anyway");
    press(&mut viewer, " jj!");
    assert!(shown(&viewer).is_empty());
    press(&mut viewer, "dkkd\x1b");
    assert_eq!(viewer.panel, Panel::None);
    assert_eq!(viewer.filter.text(), "-Level=Info  +/e.*2$/");
    press(&mut viewer, "U");
    assert_eq!(shown(&viewer).len(), 10);
    press(&mut viewer, "hhf");
    assert!(viewer.message.contains("--since"), "{}", viewer.message);
}

#[test]
fn levels_and_modes() {
    let mut viewer = viewer();
    press(&mut viewer, "+++++");
    assert_eq!(shown(&viewer), ["2", "3", "7", "8"]);
    press(&mut viewer, "----m");
    assert_eq!((viewer.filter.level, viewer.message.as_str()), (Level::Delouse, "mode operator"));
    assert_eq!(shown(&viewer), ["2", "3", "7", "8"]);
    press(&mut viewer, "m");
    assert!(shown(&viewer).is_empty());
    press(&mut viewer, "m");
    assert_eq!(shown(&viewer).len(), 10);
}

#[test]
fn searching_goes_both_ways_and_over_the_end() {
    let mut viewer = viewer();
    press(&mut viewer, "g/MESSAGE 3\n");
    assert_eq!(current(&viewer), "message 3");
    press(&mut viewer, "n");
    assert_eq!((current(&viewer), viewer.message.as_str()), ("message 3", "no other 'MESSAGE 3'"));
    press(&mut viewer, "/");
    control(&mut viewer, 'r');
    press(&mut viewer, "[27]$\n");
    assert_eq!(current(&viewer), "message 7");
    press(&mut viewer, "n");
    assert_eq!((current(&viewer), viewer.message.as_str()), ("message 2", "match 1 of 2, from the top"));
    press(&mut viewer, "N");
    assert_eq!((current(&viewer), viewer.message.as_str()), ("message 7", "match 2 of 2, from the bottom"));
    press(&mut viewer, "\\\n");
    assert_eq!(current(&viewer), "message 2");
    press(&mut viewer, "N");
    assert_eq!(current(&viewer), "message 7");
    press(&mut viewer, "/");
    control(&mut viewer, 't');
    press(&mut viewer, "MESS\n");
    assert_eq!(viewer.message, "no /MESS/");
    press(&mut viewer, "/(\n");
    assert!(viewer.message.contains("invalid regular expression '('") && viewer.prompt.is_some(), "{}", viewer.message);
    press(&mut viewer, "\x1bge");
    assert_eq!(current(&viewer), "message 3", "the next error");
    press(&mut viewer, "eE");
    assert_eq!(current(&viewer), "message 3");
}

#[test]
fn around_a_row_stands_what_the_filter_hides() {
    let mut viewer = viewer();
    viewer.has_archive = true;
    press(&mut viewer, "g/message 3\n+++++");
    assert_eq!(shown(&viewer), ["2", "3", "7", "8"]);
    let effect = press(&mut viewer, "c");
    let Some(Effect::Ask(question)) = effect else { panic!("{effect:?}") };
    assert_eq!((question.kind, current(&viewer), viewer.in_front().len()), (Kind::Context, "message 3", 10));
    let title = lines(&mut viewer, (120, 14)).remove(0);
    assert!(title.contains("10 rows, unfiltered, asking the archive"), "{title}");
    press(&mut viewer, "k");
    assert_eq!(current(&viewer), "message 2");
    viewer.answered(Kind::Context, &question.row, vec![row(-1), row(3)]);
    assert_eq!((current(&viewer), viewer.in_front().len()), ("message 2", 11));
    press(&mut viewer, "\x1b");
    assert_eq!((current(&viewer), viewer.in_front().len()), ("message 3", 4));
    // A terminal sends an Esc and the next key as one key with Alt.
    press(&mut viewer, "c");
    viewer.key(KeyEvent::new(KeyCode::Char('g'), KeyModifiers::ALT));
    assert_eq!((current(&viewer), viewer.side.is_none()), ("message 2", true));
    press(&mut viewer, "t");
    assert_eq!(viewer.message, "this row belongs to no error chain: it has no StackId");
}

#[test]
fn sorting_and_columns() {
    let mut viewer = viewer();
    press(&mut viewer, "hs");
    assert_eq!(shown(&viewer), ["1", "6", "0", "4", "5", "9", "2", "7", "3", "8"]);
    assert_eq!(current(&viewer), "message 8", "it follows the last row");
    press(&mut viewer, "gs");
    assert_eq!((shown(&viewer)[0].as_str(), current(&viewer)), ("3", "message 1"));
    viewer.take(vec![LogRecord::new(Level::Alert, "gravest")]);
    assert_eq!((shown(&viewer)[0].as_str(), current(&viewer)), ("gravest", "message 1"));
    press(&mut viewer, "s");
    assert_eq!(shown(&viewer)[0], "0");
    // In the chooser SourceObject is removed, and Logger is moved before it.
    press(&mut viewer, "vjj jj KK\x1b");
    assert_eq!(viewer.shown_columns(), [Column::Time, Column::Level, Column::Logger, Column::Message]);
}

#[test]
fn the_last_column_stays() {
    let mut viewer = viewer();
    press(&mut viewer, "v j j j ");
    assert_eq!((viewer.shown_columns(), viewer.message.as_str()), (vec![Column::Message], "one column has to stay"));
    press(&mut viewer, "\x1bll");
    assert_eq!(viewer.column, 0);
}

#[test]
fn the_screen_in_words() {
    let mut viewer = viewer();
    press(&mut viewer, "+++++");
    assert_eq!(
        lines(&mut viewer, (100, 9)),
        [
            &format!("{:<90}following", " live 'test'  4 of 10 rows"),
            "TIME (UTC)               LEVEL      SOURCE                  MESSAGE",
            "2026-11-21T08:00:02.000  Warning    CONTROL/DV00            message 2",
            "2026-11-21T08:00:03.000  Error      CONTROL/DV01            message 3",
            "2026-11-21T08:00:07.000  Warning    CONTROL/DV01            message 7",
            "2026-11-21T08:00:08.000  Error      CONTROL/DV00            message 8",
            "",
            " showing Warning and above",
            " ? help  space pause  / search  n next  f x by source  Enter details  c context  q quit",
        ]
    );
    press(&mut viewer, "k/mess");
    let drawn = lines(&mut viewer, (100, 9));
    assert!(drawn[8].starts_with(" search: mess  ^R regex off  ^T case off"), "{}", drawn[8]);
    viewer.linked(Link::Lost);
    press(&mut viewer, "\x1b");
    assert!(lines(&mut viewer, (100, 9))[0].ends_with("HUB LOST, TRYING AGAIN"));
    viewer.linked(Link::Up);
    assert_eq!(lines(&mut viewer, (100, 9))[8], " the hub is back");
    // It does not fail at any size.
    for size in [(1, 1), (19, 30), (100, 4), (20, 5), (300, 100)] {
        for keys in ["\n", "?", "\x1bv", "\x1bF", "\x1b/x"] {
            press(&mut viewer, keys);
            lines(&mut viewer, size);
        }
        press(&mut viewer, "\x1b\x1b\x1b");
    }
}

#[test]
fn on_80_columns_the_message_can_be_read() {
    let mut viewer = viewer();
    let mut long = row(42);
    long.source_object = "CONTROL/DV01/FrontEnd/LO1".into();
    long.message = "LO1 lost its lock at 84.5 GHz and is relocking".into();
    viewer.take(vec![long]);
    viewer.resize(20);
    press(&mut viewer, "G");
    let drawn = lines(&mut viewer, (80, 24));
    assert_eq!(drawn[1], "TIME          LEVEL  SOURCE            MESSAGE");
    assert!(
        drawn.iter().any(|line| line == "08:00:42.000  Warni  …01/FrontEnd/LO1  LO1 lost its lock at 84.5 GHz and is rel…"),
        "{drawn:#?}"
    );
    assert!(drawn[23].ends_with("q quit") && drawn[23].contains("f x by source"), "{}", drawn[23]);
    press(&mut viewer, "?");
    let top = lines(&mut viewer, (80, 24)).join("\n");
    press(&mut viewer, "jjjj");
    let below = lines(&mut viewer, (80, 24)).join("\n");
    assert!(!top.contains("Ctrl-C") && below.contains("Ctrl-C"), "{below}");
}

#[test]
fn levels_have_colours_matches_stand_out_and_without_colour_neither_has() {
    let mut viewer = viewer();
    press(&mut viewer, "g/ge 2\n");
    for colour in [true, false] {
        let terminal = screen(&mut viewer, (100, 12), colour);
        let buffer = terminal.backend().buffer();
        let level = &buffer[(25, 3)];
        assert_eq!(level.symbol(), "D");
        assert_eq!(level.fg, if colour { Color::Cyan } else { Color::Reset });
        let found = &buffer[(65, 4)];
        assert_eq!(found.symbol(), "g");
        assert_eq!((found.bg == Color::Yellow, found.modifier.contains(Modifier::UNDERLINED)), (colour, !colour));
        let coloured = buffer.content().iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset);
        assert_eq!(coloured, colour);
    }
}

#[test]
fn details_show_every_field_and_nothing_drives_the_terminal() {
    let mut viewer = viewer();
    let mut all = row(42);
    all.message = "first\nsecond \x1b[2J".into();
    all.file = "Mount.cpp".into();
    all.line = Some(52);
    all.trace_id = Some([0xab; 16]);
    all.data.push(Datum::new("angle", "269.9"));
    all.attributes.push(Datum::new("Extra", "kept"));
    viewer.take(vec![all]);
    press(&mut viewer, "\n");
    let text = lines(&mut viewer, (100, 40)).join("\n");
    for part in ["│first ", "│second \\x1b[2J", "Mount.cpp", "Line", &"ab".repeat(16), "│  angle = 269.9", "│  Extra = kept"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    press(&mut viewer, "\x1b");
    assert!(!lines(&mut viewer, (100, 40)).join("\n").contains("Mount.cpp"));
}

#[test]
fn every_key_of_the_help_does_something() {
    for (keys, does) in HELP {
        for key in keys.split_whitespace().filter(|key| key.chars().count() == 1) {
            let mut before = viewer();
            press(&mut before, "+gjj");
            before.detail = (*does).contains("scroll").then_some(3);
            // Keys that undo, jump or close.
            if "uUnN".contains(key) {
                press(&mut before, "imess\n/age\njj");
            }
            before.message.clear();
            let state = format!("{before:?}");
            let code = match key {
                "↑" => KeyCode::Up,
                "↓" => KeyCode::Down,
                "←" => KeyCode::Left,
                "→" => KeyCode::Right,
                key => KeyCode::Char(key.chars().next().unwrap()),
            };
            let mut after = before;
            let effect = after.key(KeyEvent::new(code, KeyModifiers::NONE));
            assert!(effect.is_some() || state != format!("{after:?}"), "{key} ({does}) does nothing");
        }
    }
    let mut viewer = viewer();
    assert_eq!(control(&mut viewer, 'c'), Some(Effect::Quit));
    press(&mut viewer, "?");
    assert!(matches!(viewer.panel, Panel::Help { .. }));
    let text = lines(&mut viewer, (120, 40)).join("\n");
    assert!(HELP.iter().all(|(keys, does)| text.contains(keys) && text.contains(does)), "{text}");
    press(&mut viewer, "q");
    assert_eq!((viewer.panel, press(&mut viewer, "q")), (Panel::None, Some(Effect::Quit)));
    assert_eq!(press(&mut viewer, "wnight.xml\n"), Some(Effect::Save("night.xml".into())));
}
