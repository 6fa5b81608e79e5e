//! The query language of `spec/book-query.md`, as a value.
//!
//! | part | module |
//! |-|-|
//! | the parser, which makes a [`Node`] | [`parse`] |
//! | the evaluator, which looks at one entry | [`eval`] |
//! | the queries to an index | [`candidates`] |
//! | the places of matches in an entry | [`marks`] |
//! | regular expressions that can be stopped | [`pattern`] |
//!
//! The evaluator defines the meaning of a query. An index only leaves out entries that the evaluator would reject. So
//! stores may have better or worse indexes and still find the same entries.

use tampu_types::Time;

pub mod candidates;
pub mod eval;
mod literals;
pub mod marks;
pub mod parse;
pub mod pattern;
mod phrase;
mod segments;

use pattern::Pattern;

pub use parse::{BadQuery, parse};

/// The part of an entry that words are searched in.
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
    /// In the poster's name.
    By,
}

/// The comparisons of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
}

/// A query, as a tree.
#[derive(Debug, Clone)]
pub enum Node {
    /// Matches every entry.
    All,
    /// Matches entries that all of these match.
    And(Vec<Node>),
    /// Matches entries that any of these matches.
    Or(Vec<Node>),
    /// Matches entries that this does not match.
    Not(Box<Node>),
    /// Words that follow each other, in one text or value.
    Words {
        scope: Scope,
        /// Folded; at least one.
        words: Vec<String>,
        /// If true, the last word only has to begin like this.
        prefix: bool,
    },
    /// A folded text inside folded text.
    Contains {
        scope: Scope,
        /// The text to find, folded, not empty.
        text: String,
    },
    /// A regular expression.
    Matches { scope: Scope, regex: Pattern },
    /// A value of an attribute that consists of these words and no others.
    Is {
        /// The attribute's name.
        name: String,
        /// The words of the whole value, folded.
        words: Vec<String>,
    },
    /// An attribute that is a number.
    Number {
        /// The attribute's name.
        name: String,
        comparison: Comparison,
        /// The number to compare with.
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
    /// The entry with this id.
    Id(u32),
    /// The thread that begins with this id.
    Thread(u32),
}

impl Node {
    /// Combines queries with AND, without needless layers.
    pub fn all_of(mut nodes: Vec<Node>) -> Node {
        nodes.retain(|node| !matches!(node, Node::All));
        match nodes.len() {
            0 => Node::All,
            1 => nodes.remove(0),
            _ => Node::And(nodes),
        }
    }

    /// Returns the query for entries that it matches and that are no replies.
    pub fn without_replies(self) -> Node {
        let no_reply = Node::Not(Box::new(Node::IsReply));
        Node::all_of(match self {
            Node::And(mut nodes) => {
                nodes.push(no_reply);
                nodes
            }
            node => vec![node, no_reply],
        })
    }

    /// Returns true for the query of all entries that are no replies.
    pub fn is_without_replies_only(&self) -> bool {
        matches!(self, Node::Not(node) if matches!(**node, Node::IsReply))
    }

    /// Returns true if the same query may mean other entries at another time: `last:7d`.
    pub fn depends_on_time(&self) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(Node::depends_on_time),
            Node::Not(node) => node.depends_on_time(),
            node => matches!(node, Node::Date { .. }),
        }
    }

    /// Returns the parts that must all match.
    pub fn conjuncts(&self) -> &[Node] {
        match self {
            Node::And(nodes) => nodes,
            Node::All => &[],
            node => std::slice::from_ref(node),
        }
    }

    /// Returns the range of dates that the parts at the top level allow: `from..to`.
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
