//! What is looked for: the query language of `spec/book-query.md`, as a value.
//!
//! | part | module |
//! |-|-|
//! | from text to a [`Node`] | [`parse`] |
//! | whether an entry is meant, looking at the entry itself | [`eval`] |
//! | what an index can say about it beforehand | [`candidates`] |
//! | where in an entry it stands | [`marks`] |
//! | a regular expression that can be stopped | [`pattern`] |
//!
//! The evaluator is what a query means. An index only leaves out what the evaluator would refuse, so a store may have a better or a worse
//! one and finds the same.

use tampu_types::Time;

pub mod candidates;
pub mod eval;
pub mod marks;
pub mod parse;
pub mod pattern;
mod segments;

use pattern::Pattern;

pub use parse::{BadQuery, parse};

/// Where words are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// In the text and in every attribute.
    Anywhere,
    /// In the text.
    Text,
    /// In an attribute.
    Attribute(String),
    /// In the names of attachments.
    Attachments,
    /// In links: `run:80123`.
    Links,
    /// In the name of who posted it.
    By,
}

/// How a number compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// What is looked for.
#[derive(Debug, Clone)]
pub enum Node {
    /// Everything.
    All,
    /// What all of these mean.
    And(Vec<Node>),
    /// What any of these means.
    Or(Vec<Node>),
    /// What this does not mean.
    Not(Box<Node>),
    /// Words that follow each other, in one text or value.
    Words {
        /// Where.
        scope: Scope,
        /// Folded; at least one.
        words: Vec<String>,
        /// Whether the last one only has to begin like this.
        prefix: bool,
    },
    /// A folded text inside folded text.
    Contains {
        /// Where.
        scope: Scope,
        /// What, folded, not empty.
        text: String,
    },
    /// A regular expression.
    Matches {
        /// Where.
        scope: Scope,
        /// Which one.
        regex: Pattern,
    },
    /// A value of an attribute that consists of these words and no others.
    Is {
        /// The attribute.
        name: String,
        /// Folded.
        words: Vec<String>,
    },
    /// An attribute that is a number.
    Number {
        /// The attribute.
        name: String,
        /// How it compares.
        comparison: Comparison,
        /// To what.
        to: f64,
    },
    /// Written in `from..to`.
    Date {
        /// The first moment.
        from: Time,
        /// The first moment after.
        to: Time,
    },
    /// Any value there.
    Has(Scope),
    /// An answer to another entry.
    IsReply,
    /// The entry of this id.
    Id(u32),
    /// The thread that begins with this id.
    Thread(u32),
}

impl Node {
    /// What all of these mean, without needless layers.
    pub fn all_of(mut nodes: Vec<Node>) -> Node {
        nodes.retain(|node| !matches!(node, Node::All));
        match nodes.len() {
            0 => Node::All,
            1 => nodes.remove(0),
            _ => Node::And(nodes),
        }
    }

    /// The parts that all have to hold.
    pub fn conjuncts(&self) -> &[Node] {
        match self {
            Node::And(nodes) => nodes,
            Node::All => &[],
            node => std::slice::from_ref(node),
        }
    }

    /// The dates that its parts leave, at the top level: `from..to`.
    pub fn dates(&self) -> (Time, Time) {
        let mut range = (Time(i64::MIN), Time(i64::MAX));
        for node in self.conjuncts() {
            if let Node::Date { from, to } = node {
                range = (range.0.max(*from), range.1.min(*to));
            }
        }
        range
    }
}
