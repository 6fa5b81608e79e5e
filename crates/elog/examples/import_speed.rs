//! Measures the import of a folder of ELOG's logbooks: `cargo run -p tampu-elog --release --example import_speed -- LOGBOOKS`.
//!
//! Imports twice, the second time into the logbooks of the first, and prints the seconds of each. Figures mean something on a quiet machine only.

use std::{path::Path, time::Instant};

use book_speed::memory;
use tampu_elog::import::{ImportSource, import_elog};
use tampu_logbook::store::sqlite::SqliteStore;

type Failed = Box<dyn std::error::Error>;

#[allow(dead_code, reason = "its main is another example's")]
#[path = "../../logbook/examples/book_speed.rs"]
mod book_speed;

/// Imports a folder of ELOG's logbooks.
fn import(logbooks: &Path) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path())?;
    let source = ImportSource { logbooks: logbooks.to_owned(), ..ImportSource::default() };
    for pass in ["first", "again"] {
        let begun = Instant::now();
        let report = import_elog(&store, &source, &mut |_, _| true)?;
        let took = begun.elapsed().as_secs_f64();
        for book in report.books {
            let told = (book.entries, book.new, book.same, book.attachments, book.faults.len());
            println!("{pass}: {} (entries, new, same, attachments, faults) {told:?}, {took:.1} s; {}", book.book, memory());
        }
    }
    Ok(())
}

fn main() -> Result<(), Failed> {
    let logbooks = std::env::args().nth(1).ok_or("give the directory of ELOG's logbooks")?;
    import(Path::new(&logbooks))
}
