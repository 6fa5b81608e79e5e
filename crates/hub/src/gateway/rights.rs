//! Rights for a session's questions. On the bus the gateway asks as a process of the hub's user, so it asks the hook
//! for its client before.

use serde_json::Value as Json;
use tampu_bus::access::{Resource, Verb};

/// Returns what the hook is asked for a question: `spec/services.md` has the verbs.
pub(super) fn of_question(service: &str, question: &[u8]) -> Vec<(Verb, Resource)> {
    let json: Json = serde_json::from_slice(question).unwrap_or(Json::Null);
    let has = |member: &str| json.get(member).is_some_and(|value| !value.is_null() && *value != Json::Bool(false));
    let text = |member: &str| json.get(member).and_then(Json::as_str).unwrap_or_default().to_owned();
    let on_service = |verb| vec![(verb, Resource::Service(service.to_owned()))];
    match service {
        "log/query" | "log/stat" | "event/history" => on_service(Verb::Query),
        "log/archive" | "event/archive" | "bulk/archive" if json == Json::String("health".to_owned()) || has("removal") => {
            on_service(Verb::Read)
        }
        "log/archive" | "event/archive" | "bulk/archive" => on_service(Verb::Backup),
        "log/levels" if has("refresh") => on_service(Verb::Admin),
        "log/levels" if has("set") => on_service(Verb::Set),
        "event/conf" if has("set") => {
            let mut wanted = on_service(Verb::Read);
            wanted.push((Verb::Set, Resource::Attribute(text("pattern"))));
            wanted
        }
        "event/get" => {
            let names = json.get("names").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
            names.map(|name| (Verb::Read, Resource::Attribute(name.to_owned()))).collect()
        }
        // Each offer has its own rights, also in a list, whose parts are filtered.
        "bulk/control" if has("name") => {
            let is_state = json.get("do").is_none_or(|command| command == "state");
            let verb = if is_state { Verb::Read } else { Verb::Set };
            vec![(verb, Resource::Service(format!("bulk/control/{}", text("name"))))]
        }
        "bulk/control" => Vec::new(),
        "log/status" | "log/offsets" | "log/keeps" | "log/levels" | "log/spool" | "event/list" | "event/conf"
        | "event/doctor" | "hub/roles" | "site/host" | "bulk/state" | "bulk/transfers" => on_service(Verb::Read),
        _ if service.starts_with("hub/metrics/") || service.starts_with("log/spool-taken/") => on_service(Verb::Read),
        // It names attributes by number.
        _ if service.starts_with("event/refresh/") => on_service(Verb::Admin),
        _ => on_service(Verb::Query),
    }
}

/// Returns true if each part of the answer is about a resource of its own, which the client may read or set, or does not get.
pub(super) fn has_rights_by_part(service: &str, question: &[u8]) -> bool {
    // Every question about one offer has a right, so that only a list has none.
    service == "bulk/control" && of_question(service, question).is_empty()
}

/// Returns true if a question without a name is for the list only, and has no command.
pub(super) fn is_plain_list(question: &[u8]) -> bool {
    let is_empty = question.iter().all(u8::is_ascii_whitespace);
    let json: Json = serde_json::from_slice(question).unwrap_or(Json::Null);
    let members = |object: &serde_json::Map<String, Json>| {
        object.iter().all(|(member, value)| member == "name" || (member == "do" && value == "state"))
    };
    is_empty || json.as_object().is_some_and(members)
}

/// Returns the resource of a part of such an answer. A part that names none is for nobody.
pub(super) fn of_part(service: &str, content: &[u8]) -> Option<Resource> {
    let json: Json = serde_json::from_slice(content).ok()?;
    Some(Resource::Service(format!("{service}/{}", json.get("name")?.as_str()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_offer_of_a_list_has_rights_of_its_own() {
        let by_part = |service: &str, question: &str| has_rights_by_part(service, question.as_bytes());
        assert!(by_part("bulk/control", "") && by_part("bulk/control", "{}") && by_part("bulk/control", r#"{"name":null}"#));
        assert!(!by_part("bulk/control", r#"{"name":"corr"}"#) && !by_part("log/query", "{}"));
        let corr = Resource::Service("bulk/control/corr".to_owned());
        assert_eq!(of_part("bulk/control", br#"{"name":"corr","kind":"sender"}"#), Some(corr));
        for unknown in ["{}", r#"{"name":7}"#, r#"{"name":"corr""#] {
            assert_eq!(of_part("bulk/control", unknown.as_bytes()), None, "{unknown}");
        }
    }

    #[test]
    fn a_command_without_a_name_is_no_list() {
        let is_list = |question: &str| is_plain_list(question.as_bytes());
        assert!(is_list("") && is_list(" ") && is_list("{}") && is_list(r#"{"name":null,"do":"state"}"#));
        assert!(!is_list(r#"{"do":{"stop":{}}}"#) && !is_list(r#"{"process":"x"}"#) && !is_list("[]") && !is_list("no json"));
    }

    #[test]
    fn the_verb_follows_the_question() {
        let verbs = |service: &str, question: &str| -> Vec<Verb> {
            of_question(service, question.as_bytes()).into_iter().map(|(verb, _)| verb).collect()
        };
        assert_eq!(verbs("log/query", "{}"), [Verb::Query]);
        assert_eq!(verbs("log/archive", "\"health\""), [Verb::Read]);
        assert_eq!(verbs("log/archive", "\"compact\""), [Verb::Backup]);
        assert_eq!(verbs("log/archive", "not json"), [Verb::Backup]);
        assert_eq!(verbs("log/levels", r#"{"set":{"central":"Debug"}}"#), [Verb::Set]);
        assert_eq!(verbs("log/levels", r#"{"refresh":true}"#), [Verb::Admin]);
        assert_eq!(verbs("log/levels", ""), [Verb::Read]);
        assert_eq!(verbs("event/conf", r#"{"pattern":"a/*","set":{"polled_ms":1}}"#), [Verb::Read, Verb::Set]);
        assert_eq!(verbs("event/get", r#"{"names":["a/b/c/d","a/b/c/e"]}"#), [Verb::Read, Verb::Read]);
        assert_eq!(verbs("bulk/control", r#"{"name":"corr"}"#), [Verb::Read]);
        for (command, verb) in [("\"state\"", Verb::Read), (r#"{"stop":{}}"#, Verb::Set), ("\"close\"", Verb::Set)] {
            let question = format!(r#"{{"name":"corr","do":{command}}}"#);
            let wanted = of_question("bulk/control", question.as_bytes());
            assert_eq!(wanted, [(verb, Resource::Service("bulk/control/corr".to_owned()))]);
        }
        assert_eq!(verbs("mount/position", ""), [Verb::Query]);
        assert_eq!(verbs("event/refresh/x", "{}"), [Verb::Admin]);
    }
}
