//! Tests of the exported functions through their C interface. A child process logs and dies; the test reads its records
//! from its rings.

use std::{
    collections::BTreeSet,
    ffi::{CStr, CString, c_char},
    path::Path,
    process::Command,
    ptr,
};

use proptest::prelude::*;
use tampu_ring::{EntryContent, Kind, recover};
use tampu_text::{Rendered, Site};

use crate::{derive::*, failure::*, front::*, handle::*, level::*, statement::*, stats::*, write::*};

fn last_error() -> String {
    // SAFETY: the pointer is always a C string, valid until the next failure of this thread.
    unsafe { CStr::from_ptr(tampu_log_last_error()) }.to_str().unwrap().to_owned()
}

fn site(text: &CStr, arguments: usize, names: &[*const c_char]) -> SiteOfC {
    SiteOfC {
        level: 6,
        line: 9,
        file: c"mount.cpp".as_ptr(),
        module: ptr::null(),
        routine: c"slew".as_ptr(),
        text: text.as_ptr(),
        arguments,
        names: names.as_ptr(),
        names_count: names.len(),
    }
}

/// Returns the functions of this prefix in the lines that contain `before`.
fn functions(text: &str, before: &str, prefix: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.starts_with(['/', ' ', '#']) && line.contains(before));
    let name = |line: &str| {
        let (name, _) = line.split_once('(')?;
        let begin = name.rfind(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
        name[begin..].starts_with(prefix).then(|| name[begin..].to_owned())
    };
    lines.filter_map(name).collect()
}

#[test]
fn the_headers_declare_what_is_exported() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let headers = [("tampu_log_", "tampu_log.h", 15), ("tampu_bulk_", "tampu_bulk.h", 15), ("tampu_event_", "tampu_event.h", 20)];
    for (prefix, header, least) in headers {
        let mut exported = BTreeSet::new();
        for folder in ["src", "src/bulk", "src/event"] {
            let files = std::fs::read_dir(root.join(folder)).unwrap().map(|file| file.unwrap().path());
            for file in files.filter(|file| file.is_file()) {
                exported.extend(functions(&std::fs::read_to_string(file).unwrap(), "extern \"C\" fn", prefix));
            }
        }
        let mut declared = functions(&std::fs::read_to_string(root.join("include").join(header)).unwrap(), prefix, prefix);
        for own in [
            "tampu_log_printf",
            "tampu_event_push_scalar",
            "tampu_event_push_double",
            "tampu_event_push_long",
            "tampu_event_push_string",
        ] {
            assert_eq!(declared.remove(own), own.starts_with(prefix), "{own} is the header's own");
        }
        assert_eq!(exported, declared);
        assert!(exported.len() > least, "{exported:?}");
    }
}

#[test]
fn null_is_told_and_harmless() {
    let null = ptr::null_mut();
    // SAFETY: all functions accept NULL.
    unsafe {
        assert!(tampu_log_open(ptr::null()).is_null());
        assert_eq!(last_error(), "the source's name is NULL");
        assert!(tampu_log_open(c"".as_ptr()).is_null());
        assert!(last_error().contains("name"), "{}", last_error());
        assert!(tampu_log_clone(null).is_null() && tampu_log_named(null, c"a".as_ptr()).is_null());
        assert!(tampu_log_for_audiences(null, ptr::null(), 3).is_null());
        assert_eq!(last_error(), "the logger is NULL");
        assert_eq!((tampu_log_flush(null, 1), tampu_log_set_level(null, 4), tampu_log_set_local_level(null, 4)), (-1, -1, -1));
        assert_eq!((tampu_log_enabled(null, 11), *tampu_log_threshold(null), tampu_log_dropped(null)), (0, u8::MAX, 0));
        assert_eq!(tampu_log_write(null, 4, ptr::null(), 0, ptr::null(), ptr::null()), -1);
        assert!(tampu_log_define(ptr::null()).is_null());
        assert_eq!(last_error(), "the statement's description is NULL");
        assert!(tampu_log_claim(null, ptr::null(), 8, ptr::null_mut()).is_null());
        assert!(
            tampu_log_in_stack(null, c"a".as_ptr(), 1).is_null()
                && tampu_log_for_antenna(null, ptr::null(), ptr::null()).is_null()
        );
        let (mut stats, size) = (StatisticsOfC::default(), size_of::<StatisticsOfC>());
        assert_eq!((tampu_log_stats(null, &mut stats, size), tampu_log_stats(null, ptr::null_mut(), size)), (-1, -1));
        let none = c"".as_ptr();
        assert_eq!(tampu_log_write_data(null, 4, none, 0, none, none, 0, ptr::null(), 2), -1);
        assert_eq!(last_error(), "the list of data is NULL");
        let mut front = FrontOfC { pool: 7, ..FrontOfC::NONE };
        assert_eq!(
            (tampu_log_front_of(null, 1, &mut front), front, tampu_log_front_of(null, 1, ptr::null_mut())),
            (0, FrontOfC::NONE, 0)
        );
        assert_eq!(tampu_log_number(null, ptr::null()), 0);
        tampu_log_wake(null);
        tampu_log_commit(ptr::null_mut());
        tampu_log_discard(ptr::null_mut());
        tampu_log_close(null);
    }
}

#[test]
fn what_panics_is_told_and_does_not_unwind() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let value = guarded(-1, || -> Result<i32, Failure> { panic!("at the border") });
    std::panic::set_hook(hook);
    assert_eq!((value, &*last_error()), (-1, "the library has a bug: at the border"));
}

#[test]
fn a_statement_is_what_its_description_says() {
    let names = [c"scan".as_ptr()];
    // SAFETY: the description's strings live as long as the call.
    let made = unsafe { &*tampu_log_define(&site(c"az {:.3f}", 2, &names)) }.site();
    assert_eq!((made.level, made.line, &*made.file, &*made.routine), (6, 9, "mount.cpp", "slew"));
    assert_eq!((made.arguments, &*made.names), (2, &["scan".into()][..]));
    for (wrong, why) in [
        (SiteOfC { level: 7, ..site(c"", 0, &[]) }, "7 is not a level"),
        (site(c"", 0, &names), "has only 0 arguments"),
        (site(c"", 65, &[]), "64 at most"),
        (SiteOfC { names: ptr::null(), names_count: 1, ..site(c"", 1, &[]) }, "the list of names is NULL"),
    ] {
        // SAFETY: as above.
        assert!(unsafe { tampu_log_define(&wrong) }.is_null());
        assert!(last_error().contains(why), "{}", last_error());
    }
}

#[test]
fn a_wrong_format_text_loses_no_argument() {
    let names = [c"scan".as_ptr()];
    for (text, why) in [(c"az {", "is not closed"), (c"{} {}", "asks for 2 arguments and is given 1")] {
        // SAFETY: the description's strings live as long as the call.
        let made = unsafe { &*tampu_log_define(&site(text, 2, &names)) }.site();
        assert!(last_error().contains(why), "{}", last_error());
        let mut rendered = Rendered::default();
        rendered.render(&made, &[3, 3, 0, 0, 0, 0, 0, 0, 41, 42]).unwrap();
        assert!(
            rendered.message().starts_with(text.to_str().unwrap()) && rendered.message().contains(why),
            "{}",
            rendered.message()
        );
        assert_eq!(rendered.values().collect::<Vec<_>>(), [("0", "41"), ("scan", "42")]);
    }
}

proptest! {
    #[test]
    fn any_description_makes_a_statement_that_shows_all_its_arguments(text in "[a-z{}:0-9.<x ]{0,12}", shown in 0usize..4, named in 0usize..3) {
        let text = CString::new(text).unwrap();
        let names = vec![c"name".as_ptr(); named];
        // SAFETY: the description's strings live as long as the call.
        let made = unsafe { &*tampu_log_define(&site(&text, shown + named, &names)) }.site();
        let mut payload = vec![0; 8 * (shown + named).div_ceil(8)];
        payload[..shown + named].fill(3);
        payload.extend(vec![7; shown + named]);
        let mut rendered = Rendered::default();
        prop_assert_eq!(rendered.render(&made, &payload), Ok(()));
        prop_assert!(rendered.values().count() == named || rendered.values().count() == shown + named);
    }
}

/// Names the directory of the rings for the process that is to die.
const DYING: &str = "TAMPU_C_TEST_DYING";

/// The body of the child process of `what_was_said_survives_the_process`, and not a test itself.
#[test]
fn dying() {
    if std::env::var_os(DYING).is_none() {
        return;
    }
    // SAFETY: handles from the functions themselves, and literals.
    unsafe {
        let logger = tampu_log_open(c"CONTROL/DV01".as_ptr());
        assert!(!logger.is_null(), "{}", last_error());
        assert_eq!(tampu_log_survives(logger), 1, "{}", last_error());
        let audiences = [c"Operator".as_ptr(), c"SysAdmin".as_ptr()];
        let derived = tampu_log_for_audiences(tampu_log_named(logger, c"mount".as_ptr()), audiences.as_ptr(), 2);
        let derived = tampu_log_in_run(tampu_log_in_context(derived, c"scan".as_ptr()), c"r7".as_ptr());
        assert_eq!(tampu_log_write(derived, 4, c"a.c".as_ptr(), 3, c"main".as_ptr(), c"plain {}".as_ptr()), 0);
        assert_eq!(tampu_log_write_bytes(derived, 5, ptr::null(), 0, ptr::null(), b"ab\0cd".as_ptr().cast(), 5), 0);
        // A level below that of the process, and an invalid level.
        assert_eq!(tampu_log_write(derived, 1, ptr::null(), 0, ptr::null(), c"too low".as_ptr()), 0);
        assert_eq!(tampu_log_write(derived, 7, ptr::null(), 0, ptr::null(), c"none".as_ptr()), -1);
        assert_eq!((tampu_log_enabled(derived, 4), tampu_log_set_level(derived, 5), tampu_log_enabled(derived, 4)), (1, 0, 0));

        let statement = tampu_log_define(&site(c"{} of {:>4}", 2, &[]));
        let payload = [3, 3, 0, 0, 0, 0, 0, 0, 5, 6];
        for kept in [false, true] {
            let mut slot = std::mem::MaybeUninit::uninit();
            let place = tampu_log_claim(derived, statement, payload.len(), slot.as_mut_ptr());
            ptr::copy_nonoverlapping(payload.as_ptr(), place, payload.len());
            if kept { tampu_log_commit(slot.as_mut_ptr()) } else { tampu_log_discard(slot.as_mut_ptr()) }
        }
        assert!(tampu_log_claim(derived, statement, usize::MAX, std::mem::MaybeUninit::uninit().as_mut_ptr()).is_null());
        let data = [
            DatumOfC { name: c"scan".as_ptr(), value: c"7".as_ptr() },
            DatumOfC { name: c"az".as_ptr(), value: c"1.5".as_ptr() },
        ];
        assert_eq!(tampu_log_write_data(derived, 8, c"b.c".as_ptr(), 4, c"f".as_ptr(), c"text".as_ptr(), 4, data.as_ptr(), 2), 0);
        // A count that no list can have is refused before the list is looked at.
        for count in [usize::MAX, isize::MAX as usize / size_of::<DatumOfC>() + 1] {
            let text = c"text".as_ptr();
            assert_eq!(tampu_log_write_data(derived, 8, text, 4, text, text, 4, data.as_ptr(), count), -1);
        }
        let chained =
            tampu_log_in_stack(tampu_log_for_antenna(derived, c"DV01".as_ptr(), c"Array001".as_ptr()), c"chain".as_ptr(), 2);
        assert_eq!(tampu_log_write(chained, 8, c"c.c".as_ptr(), 5, c"g".as_ptr(), c"chained".as_ptr()), 0);
        let mut front = FrontOfC::NONE;
        assert_eq!((tampu_log_front_of(derived, 1, &mut front), tampu_log_front_of(chained, 1, &mut front)), (1, 0));
        assert_eq!((tampu_log_front_of(derived, 2, &mut front), front), (0, FrontOfC::NONE), "a layout of a later release");
        assert_ne!(tampu_log_number(derived, statement), 0);
        let mut stats = StatisticsOfC { dropped: 9, ..StatisticsOfC::default() };
        assert_eq!((tampu_log_stats(derived, &mut stats, 8), stats), (0, StatisticsOfC::default()), "no more than is known");
        // Closing a handle does not affect the others.
        tampu_log_close(logger);
        assert_eq!(tampu_log_dropped(derived), 0);
    }
    std::process::abort();
}

#[test]
fn what_was_said_survives_the_process() {
    let run = tempfile::tempdir().unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "tests::dying", "--nocapture"]);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TAMPU_")) {
        program.env_remove(name);
    }
    program.env("TAMPU_RUN_DIR", run.path()).env("TAMPU_DOMAIN", "c").env(DYING, "yes");
    let said = program.output().unwrap();
    assert!(std::os::unix::process::ExitStatusExt::signal(&said.status) == Some(6), "{said:?}");

    let rings = run.path().join("c/rings");
    let life = std::fs::read_dir(rings).unwrap().next().unwrap().unwrap().path();
    let mut recovery = recover(&life).unwrap();
    let (definitions, mut found, mut made, mut data) = (&recovery.definitions, Vec::new(), Vec::new(), Vec::new());
    for ring in &mut recovery.rings {
        while let Some(entry) = ring.next_entry() {
            let EntryContent::Record { site, voice, payload } = entry.unwrap().what else { panic!("nothing was lost") };
            let site = definitions.get(site).unwrap();
            if site.kind == Kind::Made {
                made.extend(tampu_types::log_batch::decode_records(&payload[8..]).unwrap());
                continue;
            }
            let site = Site::decode(&site.bytes).unwrap();
            let mut rendered = Rendered::default();
            rendered.render(&site, payload).unwrap();
            data.extend(rendered.values().map(|(name, value)| format!("{name}={value}")));
            let voice = String::from_utf8(definitions.get(voice).unwrap().bytes.clone()).unwrap();
            found.push((site.level, rendered.message().to_owned(), site.file.to_string(), site.known_line(), voice));
        }
    }
    let voice = r#"{"logger":"mount","context":"scan","audiences":["Operator","SysAdmin"],"run_id":"r7"}"#;
    let said = |level, message: &str, file: &str, line| (level, message.to_owned(), file.to_owned(), line, voice.to_owned());
    let expected = [
        said(4, "plain {}", "a.c", Some(3)),
        said(5, "ab\0cd", "", None),
        said(6, "5 of    6", "mount.cpp", Some(9)),
        said(8, "text", "b.c", Some(4)),
    ];
    assert_eq!((found, data), (expected.to_vec(), vec!["scan=7".to_owned(), "az=1.5".to_owned()]));
    let [chained] = &made[..] else { panic!("{made:?}") };
    assert_eq!((&*chained.message, &*chained.stack_id, chained.stack_level), ("chained", "chain", Some(2)));
    assert_eq!((&*chained.antenna, &*chained.array, &*chained.file, chained.line), ("DV01", "Array001", "c.c", Some(5)));
}
