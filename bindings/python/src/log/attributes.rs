//! The attributes of a `LogRecord`, read in one pass over its dictionary: a search for each costs as much as the record.

use std::{array, collections::HashSet, ptr};

use pyo3::{
    ffi,
    prelude::*,
    types::{PyDict, PyString},
};

/// An attribute that the handler reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Name,
    Message,
    Arguments,
    Level,
    Path,
    Exception,
    Line,
    Function,
    Stack,
    Thread,
}

/// The fields with their names in Python.
const FIELDS: [(Field, &str); 10] = [
    (Field::Name, "name"),
    (Field::Message, "msg"),
    (Field::Arguments, "args"),
    (Field::Level, "levelno"),
    (Field::Path, "pathname"),
    (Field::Exception, "exc_info"),
    (Field::Line, "lineno"),
    (Field::Function, "funcName"),
    (Field::Stack, "stack_info"),
    (Field::Thread, "threadName"),
];

/// The order of the attributes of every record.
pub struct RecordLayout {
    /// Names in their order, with the fields among them.
    standard: Vec<(Py<PyString>, Option<Field>)>,
    /// The same names, and those that formatters add.
    known: HashSet<String>,
}

/// The attributes of one record.
pub struct Attributes<'py> {
    fields: [Option<Bound<'py, PyAny>>; FIELDS.len()],
    /// Attributes that the program gave the record with `extra=`.
    pub extras: Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>,
}

impl RecordLayout {
    /// Makes the layout of records with these attributes in this order.
    pub fn new(py: Python<'_>, standard: Vec<Py<PyString>>, known: HashSet<String>) -> RecordLayout {
        let field = |name: &Py<PyString>| {
            let name = name.bind(py).to_string_lossy();
            FIELDS.iter().find(|(_, of)| *of == name).map(|(field, _)| *field)
        };
        let standard = standard.into_iter().map(|name| (field(&name), name)).map(|(field, name)| (name, field)).collect();
        RecordLayout { standard, known }
    }

    /// Reads the attributes of a record. `None` if they are not in the usual order.
    pub fn read<'py>(&self, attributes: &Bound<'py, PyDict>) -> Option<Attributes<'py>> {
        let mut found = Attributes { fields: array::from_fn(|_| None), extras: Vec::new() };
        let (mut position, mut key, mut value) = (0, ptr::null_mut(), ptr::null_mut());
        let mut standard = self.standard.iter();
        loop {
            // SAFETY: the dictionary is alive, and no code of Python runs before the last turn, so nothing changes it.
            if unsafe { ffi::PyDict_Next(attributes.as_ptr(), &raw mut position, &raw mut key, &raw mut value) } == 0 {
                break;
            }
            // The attributes of every record come first, so most are recognised by their address.
            let usual = standard.next().filter(|(known, _)| known.as_ptr() == key);
            // SAFETY: key and value are alive as long as the dictionary is unchanged; here each gets a reference of its own.
            let own = |pointer| unsafe { Bound::<PyAny>::from_borrowed_ptr(attributes.py(), pointer) };
            match usual {
                Some((_, Some(field))) => found.fields[*field as usize] = Some(own(value)),
                Some((_, None)) => {}
                None => found.extras.push((own(key).cast_into().ok()?, own(value))),
            }
        }
        if !found.extras.is_empty() {
            found.extras.retain(|(name, _)| !self.known.contains(&*name.to_string_lossy()));
        }
        found.fields.iter().all(Option::is_some).then_some(found)
    }
}

impl<'py> Attributes<'py> {
    /// Takes the value of a field. It is there once.
    pub fn take(&mut self, field: Field) -> Option<Bound<'py, PyAny>> {
        self.fields[field as usize].take()
    }

    /// Takes a field that is a text, or an empty one for None. `None` if it is something else.
    pub fn take_text(&mut self, field: Field) -> Option<Bound<'py, PyString>> {
        let value = self.take(field)?;
        match value.is_none() {
            true => Some(PyString::intern(value.py(), "")),
            false => value.cast_into().ok(),
        }
    }

    /// Returns true if a field has a value other than None.
    pub fn has(&self, field: Field) -> bool {
        self.fields[field as usize].as_ref().is_some_and(|value| !value.is_none())
    }
}
