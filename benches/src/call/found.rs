//! What came of a row or a logger: its account, and what was found of its records afterwards.

use serde_json::{Value, json};

use crate::call::{cost, paper::Row, program};

/// A line of the published table.
#[derive(Debug, Clone)]
pub struct Line {
    /// Which.
    pub row: Row,
    /// What the program says.
    pub account: program::Account,
    /// Records of which nothing was found afterwards, where that can be known.
    pub lost: u64,
}

/// A logger that was measured.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// How many threads shared the calls.
    pub threads: usize,
    /// What it cost.
    pub account: cost::Account,
    /// Records of which nothing was found afterwards.
    pub lost: u64,
}

/// What is bad about it, in words, or nothing.
fn bad(lost: u64, told: u64, confirmed: bool) -> String {
    let lost = (lost > 0).then(|| format!("LOST {lost} (told {told})"));
    let unconfirmed = (!confirmed).then(|| "not confirmed".to_owned());
    lost.into_iter().chain(unconfirmed).collect::<Vec<_>>().join(" ")
}

impl Line {
    /// What is bad about it, or nothing.
    pub fn bad(&self) -> String {
        bad(self.lost, self.account.dropped, self.account.confirmed)
    }

    /// For other programs.
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
    /// What is bad about it, or nothing.
    pub fn bad(&self) -> String {
        bad(self.lost, self.account.dropped, self.account.confirmed)
    }

    /// Nothing was dropped or lost, and all was confirmed.
    pub fn whole(&self) -> bool {
        self.bad().is_empty() && self.account.dropped == 0
    }

    /// For other programs.
    pub fn json(&self) -> Value {
        json!({"logger": self.name, "threads": self.threads, "lost": self.lost, "account": self.account})
    }
}
