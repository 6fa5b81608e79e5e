//! The computed attributes of an entry, set by the rules of its book.

use super::{Book, EntryAttribute, computed::computed, same_name};

/// Sets the values of a book's computed attributes, whatever was given for them.
pub fn compute(book: &Book, said: &mut Vec<EntryAttribute>) {
    for def in book.attributes.iter().filter(|def| !def.computed.is_empty()) {
        let of = |name: &str| said.iter().find(|said| same_name(&said.name, name)).map(EntryAttribute::joined);
        let value = computed(&def.computed, &of);
        said.retain(|said| !same_name(&said.name, &def.name));
        said.push(EntryAttribute::new(&def.name, &value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::{AttributeDef, AttributeKind};

    #[test]
    fn a_rule_refers_to_attributes_before_it() {
        let def = |name: &str, rule: &str| AttributeDef {
            computed: rule.to_owned(),
            ..AttributeDef::new(name, AttributeKind::Numeric)
        };
        let book = Book::new("b", vec![def("P", "= $U * 2"), def("U", "")]);
        assert!(book.check().unwrap_err().to_string().contains("'P': there is no attribute 'U' before it"));
        let book = Book::new("b", vec![def("U", ""), def("P", "= $U * 2"), def("Q", "= $P + 1")]);
        book.check().unwrap();
        let mut said = vec![EntryAttribute::new("U", "4"), EntryAttribute::new("P", "forged")];
        compute(&book, &mut said);
        assert_eq!(said.iter().map(EntryAttribute::joined).collect::<Vec<_>>(), ["4", "8", "9"]);
    }
}
