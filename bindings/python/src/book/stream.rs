//! Files of Python as streams. Their methods run in the thread that made the request, and their errors are kept.

use std::io::{self, Read, Write};

use pyo3::{
    prelude::*,
    types::{PyBytes, PyBytesMethods},
};

/// File of Python that is read.
pub struct PythonReader {
    file: Py<PyAny>,
    /// Bytes that were read and not used.
    rest: Vec<u8>,
    /// Exception of the file, for the caller.
    pub raised: Option<PyErr>,
}

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

fn kept(into: &mut Option<PyErr>, error: PyErr) -> io::Error {
    let text = error.to_string();
    *into = Some(error);
    io::Error::other(text)
}

impl PythonReader {
    /// Makes the reader of a file.
    pub fn new(file: Py<PyAny>) -> PythonReader {
        PythonReader { file, rest: Vec::new(), raised: None }
    }
}

impl Read for PythonReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let read = Python::attach(|py| {
                py.check_signals()?;
                let piece = self.file.bind(py).call_method1("read", (PIECE,))?;
                Ok::<_, PyErr>(piece.cast::<PyBytes>()?.as_bytes().to_vec())
            });
            self.rest = read.map_err(|error| kept(&mut self.raised, error))?;
        }
        let length = into.len().min(self.rest.len());
        into[..length].copy_from_slice(&self.rest[..length]);
        self.rest.drain(..length);
        Ok(length)
    }
}

/// File of Python that is written.
pub struct PythonWriter {
    file: Py<PyAny>,
    /// Exception of the file, for the caller.
    pub raised: Option<PyErr>,
}

impl PythonWriter {
    /// Makes the writer of a file.
    pub fn new(file: Py<PyAny>) -> PythonWriter {
        PythonWriter { file, raised: None }
    }
}

impl Write for PythonWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Python::attach(|py| {
            py.check_signals()?;
            self.file.bind(py).call_method1("write", (PyBytes::new(py, bytes),)).map(drop)
        });
        written.map_err(|error| kept(&mut self.raised, error))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
