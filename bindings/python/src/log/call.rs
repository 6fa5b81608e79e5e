//! A record on its way from Python into a ring.

use std::borrow::Cow;

use pyo3::{
    prelude::*,
    types::{PyBool, PyFloat, PyInt, PyString},
};
use tampu_text::{ARGUMENTS_MAX, TEXT_MAX, tag::Tag};
use tampu_types::{Datum, Level, LogRecord};

/// A value of Python, as a record stores it.
pub enum Value<'py> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Bound<'py, PyString>),
}

impl<'py> Value<'py> {
    /// Reads a value; objects without a type of their own here become their `str()`.
    pub fn of(object: &Bound<'py, PyAny>) -> PyResult<Value<'py>> {
        if let Ok(text) = object.cast_exact::<PyString>() {
            return Ok(Value::Text(text.clone()));
        }
        if let Ok(float) = object.cast_exact::<PyFloat>() {
            return Ok(Value::Float(float.extract()?));
        }
        if object.is_exact_instance_of::<PyBool>() {
            return Ok(Value::Bool(object.is_truthy()?));
        }
        if object.is_exact_instance_of::<PyInt>()
            && let Ok(number) = object.extract()
        {
            return Ok(Value::Int(number));
        }
        Ok(Value::Text(object.str()?))
    }

    fn tag(&self) -> Tag {
        match self {
            Value::Bool(_) => Tag::Bool,
            Value::Int(_) => Tag::I64,
            Value::Float(_) => Tag::F64,
            Value::Text(_) => Tag::Str,
        }
    }

    /// Returns the value as it is shown.
    fn shown(&self) -> String {
        match self {
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Text(text) => text.to_string_lossy().into_owned(),
        }
    }
}

/// The place and the text of a record.
pub struct Call<'py> {
    pub level: Level,
    /// Name of the logger.
    pub name: Bound<'py, PyString>,
    /// Path of the source file.
    pub path: Bound<'py, PyString>,
    /// Line, 0 if unknown.
    pub line: u32,
    pub function: Bound<'py, PyString>,
    pub text: Bound<'py, PyString>,
    pub data: Vec<(Bound<'py, PyString>, Value<'py>)>,
    /// Names of the contexts around the call, joined by colons.
    pub context: Option<Bound<'py, PyString>>,
}

/// Parts of a record that only a whole record can hold.
#[derive(Default)]
pub struct WholeParts {
    pub thread: String,
    pub stack: String,
    pub stack_level: Option<i32>,
    pub trace: Option<([u8; 16], [u8; 8])>,
}

/// The bytes of a call, before they are in a ring: the values in their order, texts borrowed.
pub struct Payload<'c> {
    tags: [u8; ARGUMENTS_MAX],
    values: Vec<Part<'c>>,
}

enum Part<'c> {
    Byte(u8),
    Word(u64),
    Text(Cow<'c, str>),
}

impl Part<'_> {
    fn length(&self) -> usize {
        match self {
            Part::Byte(_) => 1,
            Part::Word(_) => 8,
            Part::Text(text) => 4 + text.len().min(TEXT_MAX),
        }
    }
}

impl<'c> Payload<'c> {
    /// Makes the payload of a call with fewer than 64 data.
    pub fn of(call: &'c Call<'_>) -> Payload<'c> {
        let mut payload = Payload { tags: [0; ARGUMENTS_MAX], values: Vec::with_capacity(1 + call.data.len()) };
        payload.tags[0] = Tag::Str as u8;
        payload.values.push(Part::Text(call.text.to_string_lossy()));
        for ((_, value), tag) in call.data.iter().zip(&mut payload.tags[1..]) {
            *tag = value.tag() as u8;
            payload.values.push(match value {
                Value::Bool(value) => Part::Byte((*value).into()),
                Value::Int(value) => Part::Word(value.cast_unsigned()),
                Value::Float(value) => Part::Word(value.to_bits()),
                Value::Text(text) => Part::Text(text.to_string_lossy()),
            });
        }
        payload
    }

    fn head(&self) -> usize {
        self.values.len().next_multiple_of(8)
    }

    /// Returns the number of bytes.
    pub fn length(&self) -> usize {
        self.head() + self.values.iter().map(Part::length).sum::<usize>()
    }

    /// Writes the payload into as many bytes as it has.
    pub fn write(&self, bytes: &mut [u8]) {
        let (head, mut rest) = bytes.split_at_mut(self.head());
        head.copy_from_slice(&self.tags[..head.len()]);
        let mut put = |bytes: &[u8]| {
            let (place, after) = std::mem::take(&mut rest).split_at_mut(bytes.len());
            place.copy_from_slice(bytes);
            rest = after;
        };
        for value in &self.values {
            match value {
                Part::Byte(byte) => put(&[*byte]),
                Part::Word(word) => put(&word.to_le_bytes()),
                Part::Text(text) => {
                    put(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
                    put(&text.as_bytes()[..text.len().min(TEXT_MAX)]);
                }
            }
        }
    }
}

impl Call<'_> {
    /// Returns the call as a record of its own, for what has no statement.
    pub fn whole(&self, parts: WholeParts) -> LogRecord {
        let owned = |text: &Bound<'_, PyString>| text.to_string_lossy().into_owned();
        let mut record = LogRecord::new(self.level, owned(&self.text));
        record.logger = owned(&self.name);
        record.file = owned(&self.path);
        record.line = (self.line != 0).then_some(self.line);
        record.routine = owned(&self.function);
        record.context = self.context.as_ref().map(owned).unwrap_or_default();
        record.data = self.data.iter().map(|(name, value)| Datum::new(owned(name), value.shown())).collect();
        record.thread = parts.thread;
        record.stack_id = parts.stack;
        record.stack_level = parts.stack_level;
        (record.trace_id, record.span_id) = parts.trace.unzip();
        record
    }
}
