//! Code from a text with holes: tokens from elsewhere replace `$name`.
//!
//! The text's own identifiers are hygienic as those of `macro_rules` are: its variables are not the program's.

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

/// Tokens of the template. An invalid template is a mistake of this crate, and becomes an error where the macro is
/// used.
pub fn fill(template: &str, holes: &[(&str, TokenStream)]) -> TokenStream {
    match template.parse::<TokenStream>() {
        Ok(tokens) => replace(tokens, holes),
        Err(problem) => error(&format!("the log statement's code is wrong: {problem}"), Span::call_site()),
    }
}

fn replace(tokens: TokenStream, holes: &[(&str, TokenStream)]) -> TokenStream {
    let mut replaced = Vec::new();
    let mut tokens = tokens.into_iter();
    while let Some(mut token) = tokens.next() {
        match &token {
            TokenTree::Punct(dollar) if dollar.as_char() == '$' => {
                let name = tokens.next().map(|name| name.to_string()).unwrap_or_default();
                let hole = holes.iter().find(|(hole, _)| *hole == name);
                replaced.extend(hole.into_iter().flat_map(|(_, tokens)| tokens.clone()));
            }
            TokenTree::Group(group) => {
                let mut filled = Group::new(group.delimiter(), replace(group.stream(), holes));
                filled.set_span(Span::mixed_site());
                replaced.push(TokenTree::Group(filled));
            }
            _ => {
                token.set_span(Span::mixed_site());
                replaced.push(token);
            }
        }
    }
    replaced.into_iter().collect()
}

/// An error of the compiler at this place.
pub fn error(words: &str, span: Span) -> TokenStream {
    let tokens = fill(&format!("::core::compile_error! {{ {words:?} }}"), &[]);
    tokens.into_iter().map(|token| with_span(token, span)).collect()
}

/// Sets the span of a token and of its contents.
pub fn with_span(mut token: TokenTree, span: Span) -> TokenTree {
    if let TokenTree::Group(group) = &token {
        let inner = group.stream().into_iter().map(|token| with_span(token, span)).collect();
        token = TokenTree::Group(Group::new(group.delimiter(), inner));
    }
    token.set_span(span);
    token
}

/// Joins these parts, each followed by a comma.
pub fn list(parts: impl IntoIterator<Item = TokenStream>) -> TokenStream {
    let comma = || TokenTree::Punct(proc_macro::Punct::new(',', proc_macro::Spacing::Alone));
    parts.into_iter().flat_map(|part| part.into_iter().chain([comma()])).collect()
}

/// A tuple of these parts.
pub fn tuple(parts: impl IntoIterator<Item = TokenStream>) -> TokenStream {
    TokenTree::Group(Group::new(Delimiter::Parenthesis, list(parts))).into()
}
