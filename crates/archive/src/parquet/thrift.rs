//! Writer for Thrift's compact protocol, as far as a Parquet footer needs it. Our own reader uses the index instead
//! (`index`).

use super::bits::put_varint;

const BOOL: u8 = 1;
const I8: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Unfinished struct. Fields are numbered, and must be written in ascending order.
pub(crate) struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: i16,
}

fn put_signed(value: i64, out: &mut Vec<u8>) {
    put_varint((value << 1 ^ value >> 63) as u64, out);
}

/// Writes one struct; `fields` writes its content.
pub(crate) fn write(out: &mut Vec<u8>, fields: impl FnOnce(&mut Struct<'_>)) {
    let mut writing = Struct { out, last: 0 };
    fields(&mut writing);
    writing.out.push(0);
}

impl Struct<'_> {
    fn field(&mut self, number: i16, kind: u8) {
        // Each of our field numbers is less than 15 above the one before.
        self.out.push(((number - self.last) as u8) << 4 | kind);
        self.last = number;
    }

    pub(crate) fn bool(&mut self, number: i16, value: bool) {
        self.field(number, if value { 1 } else { 2 });
    }

    pub(crate) fn i8(&mut self, number: i16, value: i8) {
        self.field(number, I8);
        self.out.push(value as u8);
    }

    pub(crate) fn i32(&mut self, number: i16, value: i32) {
        self.field(number, I32);
        put_signed(value.into(), self.out);
    }

    pub(crate) fn i64(&mut self, number: i16, value: i64) {
        self.field(number, I64);
        put_signed(value, self.out);
    }

    pub(crate) fn binary(&mut self, number: i16, value: &[u8]) {
        self.field(number, BINARY);
        put_varint(value.len() as u64, self.out);
        self.out.extend_from_slice(value);
    }

    pub(crate) fn structure(&mut self, number: i16, fields: impl FnOnce(&mut Struct<'_>)) {
        self.field(number, STRUCT);
        write(self.out, fields);
    }

    fn list(&mut self, number: i16, kind: u8, count: usize) {
        self.field(number, LIST);
        if count < 15 {
            self.out.push((count as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            put_varint(count as u64, self.out);
        }
    }

    pub(crate) fn structures<T>(&mut self, number: i16, items: &[T], fields: impl Fn(&T, &mut Struct<'_>)) {
        self.list(number, STRUCT, items.len());
        for item in items {
            write(self.out, |one| fields(item, one));
        }
    }

    pub(crate) fn bools(&mut self, number: i16, values: &[bool]) {
        self.list(number, BOOL, values.len());
        self.out.extend(values.iter().map(|&value| if value { 1 } else { 2 }));
    }

    pub(crate) fn i64s(&mut self, number: i16, values: &[i64]) {
        self.list(number, I64, values.len());
        values.iter().for_each(|&value| put_signed(value, self.out));
    }

    pub(crate) fn i32s(&mut self, number: i16, values: &[i32]) {
        self.list(number, I32, values.len());
        values.iter().for_each(|&value| put_signed(value.into(), self.out));
    }

    pub(crate) fn binaries(&mut self, number: i16, values: &[&[u8]]) {
        self.list(number, BINARY, values.len());
        for value in values {
            put_varint(value.len() as u64, self.out);
            self.out.extend_from_slice(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_protocol_says() {
        let mut out = Vec::new();
        write(&mut out, |all| {
            all.i32(1, -1);
            all.bool(3, true);
            all.binary(4, b"ab");
            all.structures(5, &[1, 2], |value, one| one.i64(1, *value));
            all.i32s(6, &[0; 16]);
            all.structure(7, |_| {});
        });
        let mut expected = vec![0x15, 1, 0x21, 0x18, 2, b'a', b'b', 0x19, 0x2c, 0x16, 2, 0, 0x16, 4, 0, 0x19, 0xf5, 16];
        expected.extend([0; 16]);
        expected.extend([0x1c, 0, 0]);
        assert_eq!(out, expected);
    }
}
