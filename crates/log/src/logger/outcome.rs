//! The outcome of records: the answer to a caller that waits or is told later.

use tampu_bus::Grade;

/// Outcome of records: where they are, as far as this process knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A collector has committed them: they are on its disk.
    Kept,
    /// A collector has them in its memory and will commit them. If it dies before that, they come again from this process or
    /// from its log rings, as long as this host runs.
    Received,
    /// This process could not take or send them: its log ring was full, or they were too long. The log reports how many.
    Refused,
    /// The bus no longer had them when a collector asked for them. The log reports how many.
    Lost,
    /// The time was over, or the logging ended, and nobody had confirmed them. They are in the log rings, and a collector
    /// may get them later.
    Unconfirmed,
}

impl Outcome {
    /// Returns the outcome in which this grade is reached.
    pub(crate) fn of(grade: Grade) -> Outcome {
        match grade {
            Grade::Kept => Outcome::Kept,
            Grade::Received => Outcome::Received,
        }
    }

    /// Returns whether a collector has the records.
    pub fn is_confirmed(self) -> bool {
        matches!(self, Outcome::Kept | Outcome::Received)
    }
}
