//! Pages: encoded and compressed values, written one after another into the file.
//!
//! Every page is a version 1 data page, compressed with zstd. Its zstd checksum reveals damage during decompression.
//! Codes get a page a unit, or one page for the whole row group where there is only one value. Texts get smaller pages,
//! because searches extract single records from them.

use std::io::{self, Write};

use super::{
    UNIT, bits, delta,
    footer::{ChunkFacts, page_header},
    index::{Chunk, Coding, Page},
};

/// Rows of a page of texts.
pub(crate) const TEXT_ROWS: usize = 4096;
/// Bytes of texts in a page, unless a single text is longer.
const TEXT_BYTES: usize = 4 << 20;
/// Compression level of zstd. Beyond it a third more work saves two percent.
const EFFORT: i32 = 3;

/// Unfinished file: its length and checksum so far.
pub(crate) struct Output<W: Write> {
    file: io::BufWriter<W>,
    pub(crate) at: u64,
    pub(crate) sum: u32,
    compressor: zstd::bulk::Compressor<'static>,
    raw: Vec<u8>,
    compressed: Vec<u8>,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(file: W) -> io::Result<Output<W>> {
        let mut compressor = zstd::bulk::Compressor::new(EFFORT)?;
        compressor.include_checksum(true)?;
        let file = io::BufWriter::with_capacity(256 << 10, file);
        Ok(Output { file, at: 0, sum: 0, compressor, raw: Vec::new(), compressed: Vec::new() })
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.sum = crc32c::crc32c_append(self.sum, bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        self.file.into_inner().map_err(io::IntoInnerError::into_error)
    }

    /// Compresses the content of `raw` and writes it as a page. `coding` is `None` for a dictionary.
    fn page(&mut self, coding: Option<Coding>, count: usize, facts: &mut ChunkFacts) -> io::Result<Page> {
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        self.compressor.compress_to_buffer(&self.raw, &mut self.compressed)?;
        let header = page_header(coding, count, self.raw.len(), self.compressed.len());
        let start = self.at;
        self.put(&header)?;
        let page = Page { at: self.at, length: self.compressed.len() as u32, raw: self.raw.len() as u32, count: count as u32 };
        let compressed = std::mem::take(&mut self.compressed);
        self.put(&compressed)?;
        self.compressed = compressed;
        facts.add_page(start, coding.is_none(), count, header.len() + self.raw.len(), (self.at - start) as usize);
        Ok(page)
    }

    /// Writes a column of codes with its sorted dictionary. With `nulls`, code 0 marks an absent value and the other
    /// codes count from 1.
    pub(crate) fn codes<V: AsRef<[u8]>>(
        &mut self,
        codes: &[u32],
        dictionary: &[V],
        plain_length: bool,
        nulls: bool,
        facts: &mut ChunkFacts,
    ) -> io::Result<Chunk> {
        self.raw.clear();
        for value in dictionary {
            let value = value.as_ref();
            if plain_length {
                self.raw.extend_from_slice(&(value.len() as u32).to_le_bytes());
            }
            self.raw.extend_from_slice(value);
        }
        let dictionary_page = self.page(None, dictionary.len(), facts)?;
        let width = bits::width_of(dictionary.len().saturating_sub(1) as u64);
        let mut pages = Vec::new();
        // With at most one value, one run covers the whole row group.
        let rows = if dictionary.len() + usize::from(nulls && codes.contains(&0)) <= 1 { codes.len() } else { UNIT };
        let mut present = Vec::new();
        for codes in codes.chunks(rows.max(1)) {
            self.raw.clear();
            let mut shown = codes;
            let mut absent = 0;
            if nulls {
                present.clear();
                present.extend(codes.iter().map(|&code| u32::from(code > 0)));
                self.raw.extend_from_slice(&[0; 4]);
                bits::encode_hybrid(&present, 1, &mut self.raw);
                let length = (self.raw.len() - 4) as u32;
                self.raw[..4].copy_from_slice(&length.to_le_bytes());
                present.clear();
                present.extend(codes.iter().filter(|&&code| code > 0).map(|&code| code - 1));
                absent = (codes.len() - present.len()) as u64;
                shown = &present;
            }
            self.raw.push(width as u8);
            bits::encode_hybrid(shown, width, &mut self.raw);
            pages.push(self.page(Some(Coding::Dictionary), codes.len(), facts)?);
            // The dictionary is sorted, so codes compare like their values.
            let value =
                |code: Option<&u32>| code.and_then(|&code| dictionary.get(code as usize)).map(|value| value.as_ref().to_vec());
            facts.last_page(absent, value(shown.iter().min()).zip(value(shown.iter().max())));
        }
        Ok(Chunk { coding: Coding::Dictionary, dictionary: Some(dictionary_page), pages })
    }

    /// Writes a column of numbers.
    pub(crate) fn numbers(&mut self, values: &[i64], facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let mut pages = Vec::new();
        for values in values.chunks(UNIT) {
            self.raw.clear();
            delta::encode(values, &mut self.raw);
            pages.push(self.page(Some(Coding::Delta), values.len(), facts)?);
            // A chunk without a range has no order: unsigned numbers are stored here by their bits.
            let bytes = |value: &i64| value.to_le_bytes().to_vec();
            let range = values.iter().min().zip(values.iter().max()).filter(|_| facts.range.is_some());
            facts.last_page(0, range.map(|(least, greatest)| (bytes(least), bytes(greatest))));
        }
        Ok(Chunk { coding: Coding::Delta, dictionary: None, pages })
    }

    /// Writes a column of texts.
    pub(crate) fn texts<'t>(&mut self, texts: impl Iterator<Item = &'t [u8]>, facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let all: Vec<&[u8]> = texts.collect();
        let mut pages = Vec::new();
        for few in all.chunks(TEXT_ROWS) {
            let mut rest = few;
            while !rest.is_empty() {
                let mut bytes = 0;
                let mut fits = |text: &&[u8]| {
                    bytes += text.len();
                    bytes <= TEXT_BYTES
                };
                let count = rest.iter().take_while(|text| fits(text)).count().max(1);
                let (page, behind) = rest.split_at(count);
                rest = behind;
                self.raw.clear();
                delta::encode_texts(page.iter().copied(), &mut self.raw);
                pages.push(self.page(Some(Coding::Texts), count, facts)?);
                let range = page.iter().min().zip(page.iter().max());
                facts.last_page(0, range.map(|(least, greatest)| (least.to_vec(), greatest.to_vec())));
            }
        }
        Ok(Chunk { coding: Coding::Texts, dictionary: None, pages })
    }
}
