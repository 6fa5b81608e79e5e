//! The bytes of which digests and signatures are made.

/// Bytes made of fields, each with its length before it, so that no two lists of fields have the same bytes.
#[derive(Default)]
pub struct Fields(pub Vec<u8>);

impl Fields {
    /// Adds a field.
    pub fn add(&mut self, field: &str) -> &mut Fields {
        self.0.extend_from_slice(&(field.len() as u64).to_be_bytes());
        self.0.extend_from_slice(field.as_bytes());
        self
    }

    /// Adds a number of fields that follow.
    pub fn count(&mut self, count: usize) -> &mut Fields {
        self.add(&count.to_string())
    }
}
