//! A goal held against what was measured.

use serde_json::{Value, json};

/// What was wanted, what came out, and whether that suffices.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What it is about.
    pub what: String,
    /// As one says it.
    pub wanted: String,
    /// The figure.
    pub measured: f64,
    /// Whether it suffices.
    pub reached: bool,
}

impl Verdict {
    /// At least so much, and nothing lost.
    pub fn at_least(what: String, wanted: f64, measured: f64, clean: bool) -> Verdict {
        Verdict { what, wanted: format!(">= {wanted}"), measured, reached: measured >= wanted && clean }
    }

    /// At most so much, and nothing lost.
    pub fn at_most(what: String, wanted: f64, measured: f64, clean: bool) -> Verdict {
        Verdict { what, wanted: format!("<= {wanted}"), measured, reached: measured <= wanted && clean }
    }

    /// For people.
    pub fn cells(&self) -> Vec<String> {
        let verdict = if self.reached { "reached" } else { "MISSED" };
        vec![self.what.clone(), self.wanted.clone(), format!("{:.3}", self.measured), verdict.to_owned()]
    }

    /// For programs.
    pub fn line(&self) -> Value {
        json!({"goal": self.what, "wanted": self.wanted, "measured": self.measured, "reached": self.reached})
    }
}
