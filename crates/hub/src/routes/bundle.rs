//! Bundles of rendered records in the queue of a target.

/// Records of one packet as text.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    pub text: String,
    /// The end of each record's text, in bytes.
    pub ends: Vec<usize>,
}

impl Bundle {
    /// Returns the records' texts from this one on.
    pub fn records(&self, from: usize) -> impl Iterator<Item = &str> {
        let start = |number: usize| if number == 0 { 0 } else { self.ends[number - 1] };
        (from..self.ends.len()).map(move |number| &self.text[start(number)..self.ends[number]])
    }
}

/// A destination of texts.
pub(super) trait Out: Send {
    /// Writes the records of a bundle from this one on. An error has the number of records written and the reason.
    fn write(&mut self, bundle: &Bundle, from: usize) -> Result<(), (usize, String)>;
}
