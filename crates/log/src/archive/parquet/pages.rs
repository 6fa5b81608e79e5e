//! Pages: values encoded, compressed, and put behind each other in the file.
//!
//! Every page is a version 1 data page, compressed with zstd with its checksum, so that damage is found by whoever uncompresses
//! it. Codes get a page a unit, or one for the whole row group where there is only one value; texts get smaller ones, because
//! single records are taken out of them.

use std::io::{self, Write};

use super::{
    UNIT, bits, delta,
    footer::{ChunkFacts, page_header},
    index::{Chunk, Coding, Page},
};

/// Rows of a page of texts.
pub(crate) const TEXT_ROWS: usize = 4096;
/// Bytes of texts of a page, unless a single one is longer.
const TEXT_BYTES: usize = 4 << 20;
/// How much the processor may do for a smaller file. Above this a third more work gives two percent.
const EFFORT: i32 = 3;

/// A file in the making: its length and checksum so far.
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

    /// Compresses what stands in `raw` and puts it down as a page. `coding` is none for a dictionary.
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
        facts.add_page(start, coding.is_none(), header.len() + self.raw.len(), (self.at - start) as usize);
        Ok(page)
    }

    /// A column of codes. With `nulls`, code 0 stands for no value and the others count from 1.
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
        // One value, or none at all: one run for the whole row group.
        let rows = if dictionary.len() + usize::from(nulls && codes.contains(&0)) <= 1 { codes.len() } else { UNIT };
        let mut present = Vec::new();
        for codes in codes.chunks(rows.max(1)) {
            self.raw.clear();
            let mut shown = codes;
            if nulls {
                present.clear();
                present.extend(codes.iter().map(|&code| u32::from(code > 0)));
                self.raw.extend_from_slice(&[0; 4]);
                bits::encode_hybrid(&present, 1, &mut self.raw);
                let length = (self.raw.len() - 4) as u32;
                self.raw[..4].copy_from_slice(&length.to_le_bytes());
                present.clear();
                present.extend(codes.iter().filter(|&&code| code > 0).map(|&code| code - 1));
                facts.nulls += (codes.len() - present.len()) as u64;
                shown = &present;
            }
            self.raw.push(width as u8);
            bits::encode_hybrid(shown, width, &mut self.raw);
            pages.push(self.page(Some(Coding::Dictionary), codes.len(), facts)?);
        }
        Ok(Chunk { coding: Coding::Dictionary, dictionary: Some(dictionary_page), pages })
    }

    /// A column of numbers.
    pub(crate) fn numbers(&mut self, values: &[i64], facts: &mut ChunkFacts) -> io::Result<Chunk> {
        let mut pages = Vec::new();
        for values in values.chunks(UNIT) {
            self.raw.clear();
            delta::encode(values, &mut self.raw);
            pages.push(self.page(Some(Coding::Delta), values.len(), facts)?);
        }
        Ok(Chunk { coding: Coding::Delta, dictionary: None, pages })
    }

    /// A column of texts.
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
            }
        }
        Ok(Chunk { coding: Coding::Texts, dictionary: None, pages })
    }
}
