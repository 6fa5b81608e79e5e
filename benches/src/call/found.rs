//! Results of a row or a logger: its account, and its records that were found afterwards.

use serde_json::{Value, json};

use crate::call::{cost, paper::Row, program};

/// A line of the published table.
#[derive(Debug, Clone)]
pub struct Line {
    /// Row of the table.
    pub row: Row,
    /// Account of the program.
    pub account: program::Account,
    /// Number of records that were not found afterwards, if that can be known.
    pub lost: u64,
}

/// A logger that was measured.
#[derive(Debug, Clone)]
pub struct Measured {
    pub name: &'static str,
    /// Number of threads that shared the calls.
    pub threads: usize,
    /// Account of the costs.
    pub account: cost::Account,
    /// Number of records that were not found afterwards.
    pub lost: u64,
}

/// Returns the defects of the result, in words, or an empty text.
fn bad(lost: u64, told: u64, confirmed: bool) -> String {
    let lost = (lost > 0).then(|| format!("LOST {lost} (told {told})"));
    let unconfirmed = (!confirmed).then(|| "not confirmed".to_owned());
    lost.into_iter().chain(unconfirmed).collect::<Vec<_>>().join(" ")
}

impl Line {
    /// Returns the defects of the result, in words, or an empty text.
    pub fn bad(&self) -> String {
        bad(self.lost, self.account.dropped, self.account.confirmed)
    }

    /// Returns the result as JSON for other programs.
    pub fn json(&self) -> Value {
        json!({
            "row": self.row.number,
            "place": self.row.place,
            "threads": self.row.threads,
            "what": self.row.name(),
            "times": self.account.times,
            "average_ns": self.account.times.average_ns(),
            "published_us": self.row.published,
            "lost": self.lost,
            "dropped": self.account.dropped,
            "confirmed": self.account.confirmed,
        })
    }
}

impl Measured {
    /// Returns the defects of the result, in words, or an empty text.
    pub fn bad(&self) -> String {
        bad(self.lost, self.account.dropped, self.account.confirmed)
    }

    /// Returns true if no record was dropped or lost, and all were confirmed.
    pub fn whole(&self) -> bool {
        self.bad().is_empty() && self.account.dropped == 0
    }

    /// Returns the result as JSON for other programs.
    pub fn json(&self) -> Value {
        json!({"logger": self.name, "threads": self.threads, "lost": self.lost, "account": self.account})
    }
}
