//! A goal, compared with the measurement.

use serde_json::{Value, json};

/// Goal, result, and whether the goal was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Name of the goal.
    pub what: String,
    /// Goal in words.
    pub wanted: String,
    pub measured: f64,
    /// True if the goal is reached.
    pub reached: bool,
}

impl Verdict {
    /// Requires at least this value, and no loss.
    pub fn at_least(what: String, wanted: f64, measured: f64, clean: bool) -> Verdict {
        Verdict { what, wanted: format!(">= {wanted}"), measured, reached: measured >= wanted && clean }
    }

    /// Requires at most this value, and no loss.
    pub fn at_most(what: String, wanted: f64, measured: f64, clean: bool) -> Verdict {
        Verdict { what, wanted: format!("<= {wanted}"), measured, reached: measured <= wanted && clean }
    }

    pub fn cells(&self) -> Vec<String> {
        let verdict = if self.reached { "reached" } else { "MISSED" };
        vec![self.what.clone(), self.wanted.clone(), format!("{:.3}", self.measured), verdict.to_owned()]
    }

    pub fn line(&self) -> Value {
        json!({"goal": self.what, "wanted": self.wanted, "measured": self.measured, "reached": self.reached})
    }
}
