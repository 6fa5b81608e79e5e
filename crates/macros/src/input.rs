//! The parts of a statement, out of its tokens.
//!
//! An expression parsed by `macro_rules` arrives as one group without visible delimiters, so a comma between groups
//! separates parts, for any contents of the expressions.

use proc_macro::{Delimiter, Group, Ident, Literal, Spacing, TokenStream, TokenTree};

/// An argument of the format text, or a value beside it.
pub struct Argument {
    pub name: Option<Ident>,
    pub value: TokenStream,
}

pub struct Input {
    /// The path of the crate that the code refers to.
    pub path: TokenStream,
    pub level: TokenStream,
    pub logger: TokenStream,
    pub text: TokenStream,
    pub arguments: Vec<Argument>,
    pub named: Vec<Argument>,
}

impl Input {
    pub fn parse(tokens: TokenStream) -> Option<Input> {
        let mut tokens = tokens.into_iter();
        let Some(TokenTree::Group(path)) = tokens.next() else { return None };
        let mut halves = split(tokens.collect(), ';').into_iter();
        let mut parts = split(halves.next()?, ',').into_iter();
        let named = halves.next().map_or_else(Vec::new, |named| split(named, ','));
        Some(Input {
            path: path.stream(),
            level: parts.next()?.into_iter().collect(),
            logger: parts.next()?.into_iter().collect(),
            text: parts.next()?.into_iter().collect(),
            arguments: parts.map(Argument::parse).collect(),
            named: named.into_iter().map(Argument::parse).collect(),
        })
    }

    /// Returns the format text, if it is a literal, also after any number of macros.
    pub fn literal(&self) -> Option<Literal> {
        match &peel(self.text.clone().into_iter().collect())[..] {
            [TokenTree::Literal(literal)] => Some(literal.clone()),
            _ => None,
        }
    }
}

impl Argument {
    fn parse(tokens: Vec<TokenTree>) -> Argument {
        let inner = peel(tokens.clone());
        if let [TokenTree::Ident(name), TokenTree::Punct(equals), value @ ..] = &inner[..] {
            let compared =
                matches!(value, [TokenTree::Punct(next), ..] if next.as_char() == '=') && equals.spacing() == Spacing::Joint;
            if equals.as_char() == '=' && !compared && !value.is_empty() {
                return Argument { name: Some(name.clone()), value: value.iter().cloned().collect() };
            }
        }
        Argument { name: None, value: tokens.into_iter().collect() }
    }

    /// The value as one operand, for any operators in it.
    pub fn operand(&self) -> TokenTree {
        TokenTree::Group(Group::new(Delimiter::Parenthesis, self.value.clone()))
    }
}

/// Parts between these separators; one after the last part may be there or not.
fn split(tokens: Vec<TokenTree>, separator: char) -> Vec<Vec<TokenTree>> {
    let mut parts = vec![Vec::new()];
    for token in tokens {
        match (&token, parts.last_mut()) {
            (TokenTree::Punct(punct), _) if punct.as_char() == separator => parts.push(Vec::new()),
            (_, Some(part)) => part.push(token),
            (_, None) => {}
        }
    }
    if parts.last().is_some_and(Vec::is_empty) {
        parts.pop();
    }
    parts
}

/// Without the invisible groups around it.
fn peel(mut tokens: Vec<TokenTree>) -> Vec<TokenTree> {
    while let [TokenTree::Group(group)] = &tokens[..]
        && group.delimiter() == Delimiter::None
    {
        tokens = group.stream().into_iter().collect();
    }
    tokens
}
