//! Reads the messages that [`ColumnWriter`](super::ColumnWriter) makes into a table.
//!
//! Everything is checked before it is taken: a table has valid UTF-8 and ascending ends, as the programs that take its
//! columns expect. Columns that the table does not have are skipped, so a later hub may send more.

use super::{
    bad::BadColumns,
    batch::{ColumnType, Names, are_texts},
    flat::Table,
    table::{Borrowed, ColumnTable},
    write::{
        BATCH, CODE, CONTINUATION, DICTIONARY, DOUBLE, FLOAT, INT, LIST, LONG, MOST_CODES, NANOSECOND, SCHEMA, TIMESTAMP, UTF8,
        VERSION,
    },
};

/// Longest body of a message. The ends of a table's texts are 32-bit numbers.
const LONGEST: usize = 1 << 30;

/// Dictionary of the stream.
struct Dictionary {
    id: i64,
    /// The column of the table, if it has one of this name.
    column: Option<usize>,
    names: Names,
    /// Codes in the table, by code of the stream; negative until a row has the name.
    codes: Vec<i32>,
}

impl Dictionary {
    /// Takes the names of these codes into the table, which has only names that rows have.
    fn take(&mut self, codes: &[u8], present: &[u8], into: &mut ColumnTable) -> Result<(), BadColumns> {
        for (row, code) in codes.chunks_exact(2).enumerate() {
            if !present.is_empty() && present[row / 8] >> (row % 8) & 1 == 0 {
                continue;
            }
            let code = usize::from(u16::from_le_bytes([code[0], code[1]]));
            let ours = self.codes.get_mut(code).ok_or(BadColumns("a code that is not in its dictionary"))?;
            if let Some(column) = self.column.filter(|_| *ours < 0) {
                *ours = into.names(column).code(self.names.get(code));
            }
        }
        Ok(())
    }
}

/// A column of the stream.
struct Field {
    kind: ColumnType,
    /// The column of the table, if it has one of this name.
    column: Option<usize>,
    dictionary: Option<usize>,
}

/// Reader of one stream.
#[derive(Default)]
pub struct ColumnReader {
    fields: Option<Vec<Field>>,
    dictionaries: Vec<Dictionary>,
    ended: bool,
}

impl ColumnReader {
    /// Reads whole messages, and adds their rows to the table. Returns the number of rows.
    pub fn read(&mut self, mut bytes: &[u8], into: &mut ColumnTable) -> Result<usize, BadColumns> {
        let mut rows = 0;
        while !bytes.is_empty() {
            let (prefix, rest) = bytes.split_first_chunk::<8>().ok_or(BadColumns("a message is cut off"))?;
            if prefix[..4] != CONTINUATION {
                return Err(BadColumns("a message does not begin as one"));
            }
            let length = i32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]);
            let length = usize::try_from(length).map_err(|_| BadColumns("its metadata has an impossible length"))?;
            if length == 0 {
                self.ended = true;
                bytes = rest;
                continue;
            }
            let (metadata, rest) = rest.split_at_checked(length).ok_or(BadColumns("a message is cut off"))?;
            let root = Table::root(metadata)?;
            let body = usize::try_from(root.long(3)?).map_err(|_| BadColumns("a body has an impossible length"))?;
            if body > LONGEST {
                return Err(BadColumns("a message of more than 1 GiB"));
            }
            let (body, rest) = rest.split_at_checked(body).ok_or(BadColumns("a body is cut off"))?;
            if root.short(0)? != VERSION {
                return Err(BadColumns("a message of another version"));
            }
            let header = root.table(2)?.ok_or(BadColumns("a message without its header"))?;
            match root.byte(1)? {
                SCHEMA => self.schema(&header, into)?,
                DICTIONARY => self.dictionary(&header, body)?,
                BATCH => rows += self.batch(&header, body, into)?,
                _ => return Err(BadColumns("a message of an unknown kind")),
            }
            bytes = rest;
        }
        Ok(rows)
    }

    /// Returns true after the schema, with which a stream begins.
    pub fn has_begun(&self) -> bool {
        self.fields.is_some()
    }

    /// Returns true after the end of the stream.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    fn schema(&mut self, header: &Table<'_>, into: &ColumnTable) -> Result<(), BadColumns> {
        if self.fields.is_some() {
            return Err(BadColumns("a second schema"));
        }
        let mut fields = Vec::new();
        for field in header.tables(1)? {
            let name = field.text(0)?;
            let encoding = field.table(4)?;
            let kind = type_of(&field, encoding.as_ref())?;
            let column = into.schema.iter().position(|(known, _)| *known == name);
            if column.is_some_and(|column| into.schema[column].1 != kind) {
                return Err(BadColumns("a column of another type than known"));
            }
            let mut dictionary = None;
            if let Some(encoding) = encoding {
                dictionary = Some(self.dictionaries.len());
                self.dictionaries.push(Dictionary { id: encoding.long(0)?, column, names: Names::default(), codes: Vec::new() });
            }
            fields.push(Field { kind, column, dictionary });
        }
        self.fields = Some(fields);
        Ok(())
    }

    fn dictionary(&mut self, header: &Table<'_>, body: &[u8]) -> Result<(), BadColumns> {
        let id = header.long(0)?;
        let known = self.dictionaries.iter_mut().find(|known| known.id == id).ok_or(BadColumns("an unknown dictionary"))?;
        let data = header.table(1)?.ok_or(BadColumns("a dictionary without texts"))?;
        let mut buffers = Buffers::new(&data, body)?;
        let (rows, present) = buffers.node()?;
        if header.byte(2)? != 0 || !present.is_empty() {
            return Err(BadColumns("a dictionary with missing texts, or a part of one"));
        }
        if rows > MOST_CODES {
            return Err(BadColumns("a dictionary of more names than codes"));
        }
        let (ends, texts) = buffers.texts(rows)?;
        known.names = Names { ends, bytes: texts.to_vec() };
        known.codes.clear();
        known.codes.resize(rows, -1);
        Ok(())
    }

    fn batch(&mut self, header: &Table<'_>, body: &[u8], into: &mut ColumnTable) -> Result<usize, BadColumns> {
        let fields = self.fields.as_ref().ok_or(BadColumns("a batch before the schema"))?;
        let mut buffers = Buffers::new(header, body)?;
        if fields.is_empty() && buffers.rows > 0 {
            return Err(BadColumns("rows without columns"));
        }
        let mut columns: Vec<(Borrowed<'_>, &[u8])> = into.schema.iter().map(|_| (Borrowed::Missing, &[][..])).collect();
        let mut names = Vec::new();
        if into.renew_names() {
            self.dictionaries.iter_mut().for_each(|dictionary| dictionary.codes.fill(-1));
        }
        for field in fields {
            let missing = buffers.is_missing();
            let (rows, present) = buffers.node()?;
            let data = match field.kind {
                ColumnType::Text => {
                    let (ends, texts) = buffers.texts(rows)?;
                    Borrowed::Texts(ends, texts)
                }
                ColumnType::Name => {
                    let (codes, dictionary) = (buffers.take(rows, 2)?, field.dictionary.unwrap_or_default());
                    self.dictionaries[dictionary].take(codes, present, into)?;
                    names.extend(field.column.filter(|_| !missing).map(|column| (column, codes, present, dictionary)));
                    continue;
                }
                ColumnType::Time | ColumnType::Integer | ColumnType::Number => Borrowed::Words(buffers.take(rows, 8)?),
                ColumnType::Numbers => {
                    let ends = buffers.ends(rows)?;
                    let (count, missing) = buffers.node()?;
                    let words = buffers.take(count, 8)?;
                    if !missing.is_empty() || ends.last().is_some_and(|end| *end as usize > count) {
                        return Err(BadColumns("a row of numbers without its numbers"));
                    }
                    Borrowed::Rows(ends, words)
                }
            };
            if let Some(column) = field.column.filter(|_| !missing) {
                columns[column] = (data, present);
            }
        }
        for (column, codes, present, dictionary) in names {
            columns[column] = (Borrowed::Names(codes, &self.dictionaries[dictionary].codes), present);
        }
        into.extend(&columns, buffers.rows);
        Ok(buffers.rows)
    }
}

fn type_of(field: &Table<'_>, encoding: Option<&Table<'_>>) -> Result<ColumnType, BadColumns> {
    let unknown = BadColumns("a column of an unknown type");
    let members = field.table(3)?.ok_or(unknown)?;
    let is_code = |index: Table<'_>| Ok(index.int(0)? == CODE && index.byte(1)? == 1);
    match (field.byte(2)?, encoding) {
        (UTF8, None) => Ok(ColumnType::Text),
        (UTF8, Some(encoding)) if encoding.table(1)?.map_or(Ok(false), is_code)? => Ok(ColumnType::Name),
        (TIMESTAMP, None) if members.short(0)? == NANOSECOND => Ok(ColumnType::Time),
        (INT, None) if members.int(0)? == LONG && members.byte(1)? == 1 => Ok(ColumnType::Integer),
        (FLOAT, None) if members.short(0)? == DOUBLE => Ok(ColumnType::Number),
        (LIST, None) => match field.tables(5)?.first() {
            Some(item) if type_of_item(item)? => Ok(ColumnType::Numbers),
            _ => Err(unknown),
        },
        _ => Err(unknown),
    }
}

/// Returns true if the rows of a list hold our numbers.
fn type_of_item(item: &Table<'_>) -> Result<bool, BadColumns> {
    Ok(item.byte(2)? == FLOAT && item.table(3)?.map_or(Ok(0), |members| members.short(0))? == DOUBLE)
}

/// Nodes and buffers of a message, in their order.
struct Buffers<'m> {
    rows: usize,
    body: &'m [u8],
    nodes: std::vec::IntoIter<(i64, i64)>,
    buffers: std::vec::IntoIter<(i64, i64)>,
    /// True until the node of a column's child is next.
    is_top: bool,
}

impl<'m> Buffers<'m> {
    fn new(header: &Table<'_>, body: &'m [u8]) -> Result<Buffers<'m>, BadColumns> {
        let rows = usize::try_from(header.long(0)?).map_err(|_| BadColumns("an impossible number of rows"))?;
        if header.table(3)?.is_some() {
            return Err(BadColumns("compressed buffers"));
        }
        let (nodes, buffers) = (header.pairs(1)?.into_iter(), header.pairs(2)?.into_iter());
        Ok(Buffers { rows, body, nodes, buffers, is_top: true })
    }

    /// Returns true if the next column has no value.
    fn is_missing(&mut self) -> bool {
        self.is_top = true;
        self.nodes.as_slice().first().is_some_and(|(rows, missing)| *rows > 0 && rows == missing)
    }

    fn buffer(&mut self) -> Result<&'m [u8], BadColumns> {
        let outside = BadColumns("a buffer lies outside its message");
        let (at, length) = self.buffers.next().ok_or(BadColumns("a buffer is missing"))?;
        let (at, length) = (usize::try_from(at).map_err(|_| outside)?, usize::try_from(length).map_err(|_| outside)?);
        at.checked_add(length).and_then(|end| self.body.get(at..end)).ok_or(outside)
    }

    /// Returns the number of values of the next node, and their bits, which are empty if none is missing.
    fn node(&mut self) -> Result<(usize, &'m [u8]), BadColumns> {
        let (count, missing) = self.nodes.next().ok_or(BadColumns("a column is missing"))?;
        let count = usize::try_from(count).map_err(|_| BadColumns("an impossible number of rows"))?;
        if std::mem::take(&mut self.is_top) && count != self.rows {
            return Err(BadColumns("columns of different lengths"));
        }
        let bits = self.buffer()?;
        match missing {
            0 => Ok((count, &[])),
            _ if bits.len() >= count.div_ceil(8) => Ok((count, bits)),
            _ => Err(BadColumns("the bits of missing values are cut off")),
        }
    }

    /// Returns a buffer of so many elements of this size.
    fn take(&mut self, count: usize, size: usize) -> Result<&'m [u8], BadColumns> {
        let buffer = self.buffer()?;
        count.checked_mul(size).and_then(|length| buffer.get(..length)).ok_or(BadColumns("a buffer is cut off"))
    }

    /// Returns ascending ends behind a first one.
    fn ends(&mut self, count: usize) -> Result<Vec<i32>, BadColumns> {
        let words = self.take(count.checked_add(1).ok_or(BadColumns("an impossible number of rows"))?, 4)?;
        let ends: Vec<i32> =
            words.chunks_exact(4).map(|word| word.first_chunk::<4>().map_or(0, |word| i32::from_le_bytes(*word))).collect();
        let ascending = ends[0] >= 0 && ends.windows(2).all(|pair| pair[0] <= pair[1]);
        if ascending { Ok(ends) } else { Err(BadColumns("ends that do not ascend")) }
    }

    fn texts(&mut self, count: usize) -> Result<(Vec<i32>, &'m [u8]), BadColumns> {
        let ends = self.ends(count)?;
        let bytes = self.buffer()?;
        let bytes = bytes.get(..ends[count] as usize).ok_or(BadColumns("texts are cut off"))?;
        if are_texts(bytes, &ends) { Ok((ends, bytes)) } else { Err(BadColumns("a text is not UTF-8")) }
    }
}
