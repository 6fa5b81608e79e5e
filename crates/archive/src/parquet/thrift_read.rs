//! Reader for Thrift's compact protocol: the footer and the page headers of Parquet files that another program wrote.

use super::{Corrupt, bits::take_varint};

/// Deepest nesting of structs and lists; a footer has seven levels.
const DEEPEST: u32 = 24;

/// A value of any type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Bool(bool),
    Int(i64),
    /// Double, whose bytes are skipped.
    Double,
    Binary(&'a [u8]),
    List(Vec<Value<'a>>),
    Struct(Fields<'a>),
}

/// Fields of a struct, by number.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fields<'a>(Vec<(i16, Value<'a>)>);

impl<'a> Fields<'a> {
    pub(crate) fn get(&self, number: i16) -> Option<&Value<'a>> {
        self.0.iter().find(|(own, _)| *own == number).map(|(_, value)| value)
    }

    pub(crate) fn int(&self, number: i16) -> Option<i64> {
        match self.get(number)? {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn bool(&self, number: i16) -> Option<bool> {
        match self.get(number)? {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn binary(&self, number: i16) -> Option<&'a [u8]> {
        match self.get(number)? {
            Value::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(crate) fn list(&self, number: i16) -> &[Value<'a>] {
        match self.get(number) {
            Some(Value::List(values)) => values,
            _ => &[],
        }
    }

    pub(crate) fn fields(&self, number: i16) -> Option<&Fields<'a>> {
        self.get(number)?.fields()
    }
}

impl<'a> Value<'a> {
    pub(crate) fn fields(&self) -> Option<&Fields<'a>> {
        match self {
            Value::Struct(fields) => Some(fields),
            _ => None,
        }
    }
}

const CUT: Corrupt = Corrupt("a description of the file is cut off");

fn take_byte(bytes: &mut &[u8]) -> Result<u8, Corrupt> {
    let (&first, rest) = bytes.split_first().ok_or(CUT)?;
    *bytes = rest;
    Ok(first)
}

fn take_signed(bytes: &mut &[u8]) -> Result<i64, Corrupt> {
    let value = take_varint(bytes)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// Decodes a struct and advances past it.
pub(crate) fn take_struct<'a>(bytes: &mut &'a [u8]) -> Result<Fields<'a>, Corrupt> {
    take_fields(bytes, DEEPEST)
}

fn take_fields<'a>(bytes: &mut &'a [u8], deepest: u32) -> Result<Fields<'a>, Corrupt> {
    let mut fields = Fields::default();
    let mut number = 0i16;
    loop {
        let head = take_byte(bytes)?;
        if head == 0 {
            return Ok(fields);
        }
        number = match head >> 4 {
            0 => take_signed(bytes)? as i16,
            step => number.checked_add(step.into()).ok_or(CUT)?,
        };
        let value = match head & 15 {
            1 => Value::Bool(true),
            2 => Value::Bool(false),
            kind => take_value(bytes, kind, deepest)?,
        };
        fields.0.push((number, value));
    }
}

fn take_value<'a>(bytes: &mut &'a [u8], kind: u8, deepest: u32) -> Result<Value<'a>, Corrupt> {
    let deepest = deepest.checked_sub(1).ok_or(Corrupt("a description of the file is nested too deeply"))?;
    Ok(match kind {
        1 | 2 => Value::Bool(take_byte(bytes)? == 1),
        3 => Value::Int(i64::from(take_byte(bytes)? as i8)),
        4..=6 => Value::Int(take_signed(bytes)?),
        7 => {
            *bytes = bytes.get(8..).ok_or(CUT)?;
            Value::Double
        }
        8 => {
            let length = usize::try_from(take_varint(bytes)?).map_err(|_| CUT)?;
            let (value, rest) = bytes.split_at_checked(length).ok_or(CUT)?;
            *bytes = rest;
            Value::Binary(value)
        }
        9 | 10 => {
            let head = take_byte(bytes)?;
            let count = if head >> 4 == 15 { take_varint(bytes)? } else { u64::from(head >> 4) };
            // Every element has at least one byte.
            if count > bytes.len() as u64 {
                return Err(CUT);
            }
            let mut values = Vec::new();
            for _ in 0..count {
                values.push(take_value(bytes, head & 15, deepest)?);
            }
            Value::List(values)
        }
        12 => Value::Struct(take_fields(bytes, deepest)?),
        _ => return Err(Corrupt("a description of the file has an unknown type")),
    })
}
