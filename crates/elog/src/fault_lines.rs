//! The lines of faults, counted once for each file that has faults.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::FileFault;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Fills in the lines of faults. A file that cannot be read leaves them unknown.
pub fn number_lines(faults: &mut [FileFault]) {
    let mut files: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    for (place, fault) in faults.iter().enumerate().filter(|(_, fault)| fault.line == 0) {
        files.entry(fault.file.clone()).or_default().push(place);
    }
    for (path, mut places) in files {
        // A folder has no lines, and reading a device or a pipe may never end.
        if !std::fs::metadata(&path).is_ok_and(|file| file.is_file()) {
            continue;
        }
        places.sort_by_key(|place| faults[*place].at);
        let wanted: Vec<u64> = places.iter().map(|place| faults[*place].at).collect();
        let lines = lines_of(&path, &wanted).unwrap_or_default();
        places.iter().zip(lines).for_each(|(place, line)| faults[*place].line = line);
    }
}

/// Returns the line of each of these ascending positions.
fn lines_of(path: &Path, wanted: &[u64]) -> io::Result<Vec<u64>> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; PIECE]);
    let (mut lines, mut base, mut line) = (Vec::with_capacity(wanted.len()), 0_u64, 1_u64);
    while lines.len() < wanted.len() {
        let read = file.read(&mut piece)?;
        let mut from = 0;
        while let Some(at) = wanted.get(lines.len()).filter(|at| read == 0 || **at < base + read as u64) {
            let to = usize::try_from(at.saturating_sub(base)).unwrap_or(read).clamp(from, read);
            line += memchr::memchr_iter(b'\n', &piece[from..to]).count() as u64;
            from = to;
            lines.push(line);
        }
        line += memchr::memchr_iter(b'\n', &piece[from..read]).count() as u64;
        base += read as u64;
        if read == 0 {
            break;
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_have_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let long = "x".repeat(PIECE);
        std::fs::write(file.path(), format!("a\nb\n{long}\n\nend")).unwrap();
        let fault = |at: u64| FileFault { file: file.path().to_owned(), at, what: String::new(), line: 0 };
        let end = PIECE as u64 + 6;
        let mut faults: Vec<FileFault> = [end, 0, 2, 1, 4 + PIECE as u64, 1 << 40].into_iter().map(fault).collect();
        faults.push(FileFault { file: "/".into(), ..fault(7) });
        number_lines(&mut faults);
        assert_eq!(faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [5, 1, 2, 1, 3, 5, 0]);
    }
}
