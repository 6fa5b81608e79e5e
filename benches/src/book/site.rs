//! An ELOG site's files: one logbook of shift reports, in ELOG's own layout. The same number of entries always gives
//! the same files.

use std::{fmt::Write, fs, path::Path};

/// The logbook's name.
pub const BOOK: &str = "Shift";
/// The rare author that searches look for: one entry in two hundred.
pub const RARE: &str = "Zoe Quartz";

const SYSTEMS: [&str; 12] =
    ["VELO", "RICH1", "RICH2", "ECAL", "HCAL", "MUON", "L0", "HLT", "DAQ", "Cooling", "Magnet", "PRS/SPD"];
const TYPES: [&str; 6] = ["Routine", "Shift summary", "Problem", "Problem Fixed", "Calibration", "Information"];
const FIRST: [&str; 12] =
    ["Anna", "Boris", "Carla", "Dmitri", "Elena", "Franz", "Giulia", "Hans", "Irene", "José", "Katya", "Loïc"];
const LAST: [&str; 10] = ["Almeida", "Bauer", "Costa", "Dupont", "Eriksson", "Müller", "Lefèvre", "Novak", "Olsen", "Petrov"];
/// Entries on each day.
const A_DAY: u32 = 29;
/// The first day: 2008-09-10, in days since 1970.
const BEGIN: i64 = 14_132;

/// A generator of numbers that only have to differ.
pub struct Chance(pub u64);

impl Chance {
    /// Returns a number below an end.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Returns one of a list.
    pub fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }
}

/// The name of one of the systems, as it stands in the texts.
pub fn system(chance: &mut Chance) -> &'static str {
    chance.of(&SYSTEMS)
}

/// Writes a shift's report of 500 to 1200 characters.
pub fn text(chance: &mut Chance, number: u32) -> String {
    let mut text = String::new();
    while text.len() < 500 + (number as usize * 37) % 700 {
        let (system, channel, value) = (chance.of(&SYSTEMS), chance.below(1600), 10 + chance.below(980));
        let clock = format!("{:02}:{:02}", chance.below(24), chance.below(60));
        // Writing to a string does not fail.
        let _ = match chance.below(8) {
            0 => write!(
                text,
                "{system} HV tripped on channel {channel} at {clock}, current was {value} uA; recovered after a reset."
            ),
            1 => write!(text, "The rate on L0 went up to {value} kHz, then came back to nominal."),
            2 => write!(text, "FSM node {system}_DAQ stayed in ERROR; sent RECOVER, then CONFIGURE and it went READY."),
            3 => write!(text, "TELL1 board {channel} of {system} lost the clock lock, re-took the pedestals."),
            4 => write!(text, "Run {} started with the PHYSICS partition.", 80_000 + 2 * number),
            5 => write!(text, "The farm node hlt{channel:04} is out of memory; excluded from the partition."),
            6 => write!(text, "Dump at {clock}, cause: quench heater firing in S34. Ramp down of {system}."),
            _ => write!(text, "Device LHC:MAG-{:02}/cur reads {value} A, field map as expected.", chance.below(60)),
        };
        text.push(if chance.below(3) == 0 { '\n' } else { ' ' });
    }
    text
}

/// Returns the attributes of an entry: author, type, system, subject.
pub fn attributes(chance: &mut Chance, number: u32) -> [(&'static str, String); 4] {
    let is_rare = chance.below(200) == 0 || number == 1;
    let author = if is_rare { RARE.to_owned() } else { format!("{} {}", chance.of(&FIRST), chance.of(&LAST)) };
    let system = chance.of(&SYSTEMS);
    let subject = format!("{system}: {} {}", chance.of(&["HV trip", "restart", "access"]), chance.below(9999));
    [("Author", author), ("Type", chance.of(&TYPES).to_owned()), ("System", system.to_owned()), ("Subject", subject)]
}

/// Converts a day since 1970 to year, month and day.
fn civil(day: i64) -> (i64, i64, i64) {
    let z = day + 719_468;
    let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let month_of_year = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month_of_year <= 2), month_of_year, of_year - (153 * month + 2) / 5 + 1)
}

/// Writes the site: `elogd.cfg` and `logbooks/` in a directory.
pub fn write(directory: &Path, entries: u32) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let config = format!("[{BOOK}]\nAttributes = Author, Type, System, Subject\n");
    fs::create_dir_all(directory).map_err(failed)?;
    fs::write(directory.join("elogd.cfg"), config).map_err(failed)?;
    let book = directory.join("logbooks").join(BOOK);
    fs::create_dir_all(&book).map_err(failed)?;
    let mut chance = Chance(u64::from(entries));
    let mut number = 1;
    while number <= entries {
        let day = BEGIN + i64::from((number - 1) / A_DAY);
        let (year, month, of_month) = civil(day);
        let folder = book.join(year.to_string());
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut file = String::new();
        for nth in 0..A_DAY.min(entries + 1 - number) {
            let name_of_day = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][day.rem_euclid(7) as usize];
            let name_of_month =
                ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][month as usize - 1];
            let (hour, minute) = (nth * 49 / 60, nth * 49 % 60);
            let _ = write!(
                file,
                "$@MID@$: {number}\nDate: {name_of_day}, {of_month:02} {name_of_month} {year} {hour:02}:{minute:02}:00 +0000\n"
            );
            for (name, value) in attributes(&mut chance, number) {
                let _ = writeln!(file, "{name}: {value}");
            }
            let _ = write!(file, "Attachment: \nEncoding: plain\n{}\n{}\n", "=".repeat(40), text(&mut chance, number));
            number += 1;
        }
        let name = format!("{:02}{month:02}{of_month:02}a.log", year % 100);
        fs::write(folder.join(name), file).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        assert_eq!(civil(BEGIN), (2008, 9, 10));
        assert_eq!((civil(0), civil(11_016), civil(-1)), ((1970, 1, 1), (2000, 2, 29), (1969, 12, 31)));
    }

    #[test]
    fn a_site_has_so_many_entries() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), 100).unwrap();
        let year = directory.path().join("logbooks").join(BOOK).join("2008");
        let files: Vec<_> = fs::read_dir(year).unwrap().map(|file| file.unwrap().path()).collect();
        let all: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        assert_eq!((files.len(), all.matches("$@MID@$: ").count()), (4, 100));
        assert!(all.contains(RARE) && all.contains("Date: Wed, 10 Sep 2008 00:00:00 +0000"));
    }
}
