//! Files of limited size and number: `x.log` is the current one, `x.log.1` the one before, and so on.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{
    bundle::{Bundle, Out},
    settings::Format,
    shape,
};

pub(super) struct File {
    path: PathBuf,
    format: Format,
    /// Maximum size of a file in bytes; a longer record gets a file of its own.
    limit: u64,
    /// Number of files.
    count: u32,
    open: Option<(fs::File, u64)>,
}

impl File {
    pub fn new(path: PathBuf, format: Format, limit: u64, count: u32) -> File {
        File { path, format, limit, count, open: None }
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        if number > 0 {
            path.push(format!(".{number}"));
        }
        path.into()
    }

    /// Returns the current file and its length.
    fn current(&mut self) -> io::Result<&mut (fs::File, u64)> {
        if self.open.is_none() {
            if let Some(directory) = self.path.parent() {
                fs::create_dir_all(directory)?;
            }
            let length = fs::metadata(&self.path).map_or(0, |data| data.len());
            // A file of an earlier run has its end already, or will never have one.
            if length > 0 && self.format == Format::Acs {
                self.shift()?;
            }
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            let mut length = file.metadata()?.len();
            if length == 0 {
                let beginning = shape::beginning(self.format);
                file.write_all(beginning.as_bytes())?;
                length = beginning.len() as u64;
            }
            self.open = Some((file, length));
        }
        self.open.as_mut().ok_or_else(|| io::Error::other("no file"))
    }

    /// Rotates the files and removes the oldest.
    fn shift(&self) -> io::Result<()> {
        for number in (1..self.count).rev() {
            rename(&self.numbered(number - 1), &self.numbered(number))?;
        }
        if self.count == 1 {
            fs::remove_file(&self.path)?;
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((mut file, _)) => file.write_all(shape::end(self.format).as_bytes()),
            None => Ok(()),
        }
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        let limit = self.limit;
        let (_, length) = self.current()?;
        if *length > 0 && *length + text.len() as u64 > limit && *length > shape::beginning(self.format).len() as u64 {
            self.close()?;
            self.shift()?;
        }
        let (file, length) = self.current()?;
        match file.write_all(text.as_bytes()) {
            Ok(()) => *length += text.len() as u64,
            Err(error) => {
                // Half a record must not stay in the middle of the file; if truncating fails, the next write fails, too.
                let _ = file.set_len(*length);
                return Err(error);
            }
        }
        Ok(())
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Out for File {
    fn write(&mut self, bundle: &Bundle, from: usize) -> Result<(), (usize, String)> {
        for (written, text) in bundle.records(from).enumerate() {
            self.put(text).map_err(|error| (written, format!("{}: {error}", self.path.display())))?;
        }
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // If closing fails, the next run treats the file as one of an earlier run.
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{Level, LogRecord, xml::AcsXmlReader};

    use super::*;

    fn bundle(format: Format, numbers: std::ops::Range<u32>) -> Bundle {
        let mut bundle = Bundle::default();
        for number in numbers {
            shape::append(format, &LogRecord::new(Level::Info, format!("{number:03}\n<")), &mut bundle.text);
            bundle.ends.push(bundle.text.len());
        }
        bundle
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_bounded_in_size_and_number() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sub/x.log");
        let mut file = File::new(path.clone(), Format::Plain, 500, 3);
        file.write(&bundle(Format::Plain, 0..100), 0).unwrap();
        assert_eq!(names(&directory.path().join("sub")), ["x.log", "x.log.1", "x.log.2"]);
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let all = [file.numbered(2), file.numbered(1), path.clone()].map(|path| read(&path));
        assert!(all.iter().all(|text| text.len() <= 500 && text.lines().all(|line| line.ends_with(r"\n<"))));
        assert!(all[2].contains(": 099") && all.concat().lines().count() < 100);
        // The next run continues at the same place.
        drop(file);
        let mut file = File::new(path.clone(), Format::Plain, 500, 3);
        file.write(&bundle(Format::Plain, 100..101), 0).unwrap();
        assert!(read(&path).contains(": 099") && read(&path).contains(": 100"));
    }

    #[test]
    fn acs_files_are_whole_whatever_life_wrote_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.xml");
        for life in 0..2 {
            let mut file = File::new(path.clone(), Format::Acs, 100_000, 5);
            file.write(&bundle(Format::Acs, life * 10..life * 10 + 3), 0).unwrap();
        }
        for (name, first) in [("x.xml.1", "000\n<"), ("x.xml", "010\n<")] {
            let text = fs::read(directory.path().join(name)).unwrap();
            let records: Vec<LogRecord> = AcsXmlReader::new(&text[..], name).map(Result::unwrap).collect();
            assert_eq!((records.len(), records[0].message.as_str()), (3, first));
            assert!(text.ends_with(b"</Log>\n"));
        }
    }
}
