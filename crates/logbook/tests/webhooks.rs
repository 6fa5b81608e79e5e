//! The vector in `spec/webhooks.md`.

use tampu_logbook::notify::{NotifyRule, webhook};

/// Returns the text between the fences of a name.
fn fenced<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{name}\n")).unwrap_or_else(|| panic!("no {name}"));
    rest.split_once("\n```").unwrap().0
}

#[test]
fn a_message_is_the_one_that_is_written_down() {
    let page = include_str!("../../../spec/webhooks.md");
    let (body, signature) = (fenced(page, "webhook-body"), fenced(page, "webhook-signature"));
    let rule = NotifyRule { id: "r1".to_owned(), secret: Some("key".to_owned()), ..NotifyRule::default() };
    let message = webhook::test_message(&rule, "zoe");
    let (headers, sent) = webhook::parts(&message).unwrap();
    assert_eq!(std::str::from_utf8(sent).unwrap(), body);
    assert_eq!(headers, [("Content-Type", "application/json"), ("Tampu-Delivery", "r1.test"), ("Tampu-Signature", signature)]);
}
