//! Prints the records of LogBatch files as JSON lines: `cargo run -p tampu-types --example log_batch_json FILE...`.

use std::io::{Write, stdout};

use tampu_types::{json_lines::JsonLinesWriter, log_batch::LogBatchView};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = JsonLinesWriter::new(stdout().lock());
    for file in std::env::args().skip(1) {
        let bytes = std::fs::read(&file)?;
        for record in LogBatchView::parse(&bytes)?.records() {
            out.record(&record?.to_record())?;
        }
    }
    out.finish()?.flush()?;
    Ok(())
}
