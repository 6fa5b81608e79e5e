//! Grades and outcomes as numbers of C: `enum tampu_log_grade` and `enum tampu_log_outcome` of the header.

use tampu_log::Outcome;

use crate::failure::Failure;

/// A grade that C has named.
pub(crate) struct Grade(pub(crate) tampu_log::Grade);

impl TryFrom<i32> for Grade {
    type Error = Failure;

    fn try_from(number: i32) -> Result<Grade, Failure> {
        match number {
            1 => Ok(Grade(tampu_log::Grade::Received)),
            2 => Ok(Grade(tampu_log::Grade::Kept)),
            _ => Err(Failure::Grade(number)),
        }
    }
}

/// Returns the number of an outcome. The confirmed ones are above 0 and equal to their grades.
pub(crate) fn outcome_number(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::Unconfirmed => 0,
        Outcome::Received => 1,
        Outcome::Kept => 2,
        Outcome::Refused => -2,
        Outcome::Lost => -3,
    }
}
