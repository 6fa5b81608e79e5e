//! Reads ACS log files and prints what is in them: `cargo run --release -p tampu-types --example acs_xml_check
//! FILE...`.

use std::{collections::BTreeMap, fs::File};

use tampu_types::xml::{AcsXmlOptions, AcsXmlReader, AcsXmlWriter};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in std::env::args().skip(1) {
        let mut counts: BTreeMap<_, u64> = BTreeMap::new();
        let mut records = Vec::new();
        for item in AcsXmlReader::new(File::open(&file)?, &file) {
            match item {
                Ok(record) => {
                    *counts.entry(record.level).or_default() += 1;
                    records.push(record);
                }
                Err(bad) => println!("{bad}"),
            }
        }
        println!("{file}: {} records, {counts:?}", records.len());

        let options = AcsXmlOptions { nanoseconds: false, identity: true, received: false, one_line: false };
        let mut writer = AcsXmlWriter::new(Vec::new(), "NameForXmlDocument", options)?;
        for record in &records {
            writer.record(record)?;
        }
        let text = writer.finish()?;
        let again: Vec<_> = AcsXmlReader::new(&text[..], "written again").collect::<Result<_, _>>()?;
        println!("written and read again: {}", if again == records { "identical" } else { "DIFFERENT" });
    }
    Ok(())
}
