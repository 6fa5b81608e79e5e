#![no_main]

// As it stands in `crates/bulk`: the crate would bring the engine along.
#[allow(dead_code)]
#[path = "../../crates/bulk/src/file.rs"]
mod file;

use file::FileLabel;

// A name never leads out of the directory, and what was read is the same when it is written and read again.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(label)) = FileLabel::parse(bytes) else { return };
    let (directories, own) = label.file.split();
    for part in directories.chain([own]) {
        assert!(!part.is_empty() && part != "." && part != ".." && !part.contains(['/', '\0']));
    }
    assert_eq!(FileLabel::parse(&label.encode()), Ok(Some(label)));
});
