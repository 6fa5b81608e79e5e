//! Rules of a router about its links, in the engine's words.
//!
//! On encrypted links a certificate names the host at the other end. Such a host sends under its own name alone, unless
//! it is a relay. It gets the topics that it may read. A link of a host without rules carries nothing. Sockets of this
//! host carry everything: the file system decides about them.
//!
//! | key | from the link of host H | to the link of host H |
//! |-|-|-|
//! | `d/HOST/TOPIC/..` | HOST is H, and H may write TOPIC | H may read TOPIC |
//! | `a/..`, `g/..` | nothing | nothing |
//! | `h/HOST/BOOT/TOPIC/..` | HOST is H and this host, and H may write TOPIC | nothing |
//! | `c/HOST/TO/..` | HOST is H | TO is H |
//! | questions `q/HOST/..`, `s/HOST/..` | HOST is H | all |
//! | answerers and answers `q/HOST/OWNER/..` | OWNER is H | all |
//! | presences `p/HOST/..`, `n/HOST/..`, `r/HOST/..` | HOST is H | all |
//!
//! Subscriptions that are of use on this host alone are not declared on its links to others, which would keep each of them:
//! samples for readers of the host, a group's samples, a node's news, and the control messages and refetches of each process.
//! The node declares patterns for those of all its processes (`Keys::controls_of_host`, `Keys::refetches_of_host`).
//!
//! A refetch `q/HOST/OWNER/INCARNATION/TOPIC/..` needs the right to read, and its answer the right to write.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tampu_types::name::escape;
use zenoh::key_expr::KeyExpr;

use super::host_name::HostName;
use crate::{access::TopicRights, host};

const READ: &[&str] = &["declare_subscriber", "declare_liveliness_subscriber", "liveliness_query"];
const ALL: &[&str] = &[
    "put",
    "delete",
    "declare_subscriber",
    "query",
    "declare_queryable",
    "reply",
    "liveliness_token",
    "declare_liveliness_subscriber",
    "liveliness_query",
];

/// Returns the subscriptions that stay on this host, without the start of all keys of the domain. Of groups these are the
/// readers' ones: a process of the host that comes over the network sends to a group only if it knows of the node's.
fn local_subscriptions(own: &HostName) -> [String; 4] {
    let controls = format!("c/*/{}/{:08x}-$*", own.chunk(), host::boot());
    ["a/**".to_owned(), "h/**".to_owned(), "g/*/*/*/*/**".to_owned(), controls]
}

/// Returns the rules of a node without certificates: what stays on its host.
pub(super) fn local_declarations(root: &str, own: &HostName) -> String {
    let mut rules = Rules { root, subject: "network".to_owned(), rules: Vec::new() };
    rules.keep_local_declarations(own);
    let ids: Vec<Value> = rules.rules.iter().map(|rule| rule["id"].clone()).collect();
    json!({
        "enabled": true, "default_permission": "allow",
        "rules": rules.rules,
        "subjects": [{"id": "network", "link_protocols": ["tcp", "tls"]}],
        "policies": [{"rules": ids, "subjects": ["network"]}],
    })
    .to_string()
}

/// Returns the rules of a router whose callers only listen.
pub(super) fn silent_callers() -> String {
    let messages = ["put", "delete", "query", "reply", "declare_queryable", "liveliness_token"];
    let rule = json!({"id": "silent", "permission": "deny", "flows": ["ingress"], "messages": messages, "key_exprs": ["**"]});
    let everybody = json!([{"rules": ["silent"], "subjects": ["everybody"]}]);
    json!({
        "enabled": true, "default_permission": "allow",
        "rules": [rule], "subjects": [{"id": "everybody"}], "policies": everybody,
    })
    .to_string()
}

/// Rights of a host on its links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Passage {
    /// True if it may pass on what other hosts send.
    pub is_relay: bool,
    /// Topics that it may read.
    pub read: TopicRights,
    /// Topics that it may write.
    pub write: TopicRights,
}

/// Rules of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gate {
    /// Start of all keys of the domain.
    pub root: String,
    /// Name of this host.
    pub own: HostName,
    /// Hosts by the name in their certificate, as it is written there.
    pub hosts: BTreeMap<String, Passage>,
}

/// Rules of one subject while they are collected.
struct Rules<'a> {
    root: &'a str,
    subject: String,
    rules: Vec<Value>,
}

impl Rules<'_> {
    fn add(&mut self, permission: &str, flow: &str, messages: &[&str], keys: impl IntoIterator<Item = String>) {
        let canonical = |key: String| KeyExpr::autocanonize(format!("{}/{key}", self.root)).ok();
        let keys: Vec<String> = keys.into_iter().filter_map(canonical).map(|key| key.as_str().to_owned()).collect();
        if keys.is_empty() {
            return;
        }
        let id = format!("{}-{}", self.subject, self.rules.len());
        let rule = json!({"id": id, "permission": permission, "flows": [flow], "messages": messages, "key_exprs": keys});
        self.rules.push(rule);
    }

    /// Declares nothing on other hosts that is of use on this host alone.
    fn keep_local_declarations(&mut self, own: &HostName) {
        self.add("deny", "egress", &["declare_subscriber"], local_subscriptions(own));
        let refetches = format!("q/*/{}/{:08x}-$*/**", own.chunk(), host::boot());
        self.add("deny", "egress", &["declare_queryable"], ["a/**".to_owned(), refetches]);
    }

    /// Adds the rights for messages about topics, whose keys begin with `before`.
    fn add_topics(&mut self, flow: &str, messages: &[&str], before: &str, rights: &TopicRights) {
        self.add("allow", flow, messages, rights.allowed.iter().map(|pattern| format!("{before}/{pattern}/*")));
        self.add("deny", flow, messages, rights.denied.iter().map(|pattern| format!("{before}/{pattern}/*")));
    }
}

impl Gate {
    /// Returns the rules as the engine's configuration of access.
    pub fn access(&self) -> String {
        let everything =
            json!({"id": "all", "permission": "allow", "flows": ["ingress", "egress"], "messages": ALL, "key_exprs": ["**"]});
        let mut rules = vec![everything];
        let mut subjects = vec![json!({"id": "sockets", "link_protocols": ["unixsock-stream"]})];
        let mut policies = vec![json!({"rules": ["all"], "subjects": ["sockets"]})];
        for (number, (name, passage)) in self.hosts.iter().enumerate() {
            let subject = format!("host{number}");
            let of_host = self.rules_of(&subject, &escape(name), passage);
            let ids: Vec<Value> = of_host.iter().map(|rule| rule["id"].clone()).collect();
            rules.extend(of_host);
            subjects.push(json!({"id": subject, "cert_common_names": [name], "link_protocols": ["tls"]}));
            policies.push(json!({"rules": ids, "subjects": [subject]}));
        }
        json!({
            "enabled": true, "default_permission": "deny",
            "rules": rules, "subjects": subjects, "policies": policies,
        })
        .to_string()
    }

    fn rules_of(&self, subject: &str, host: &str, passage: &Passage) -> Vec<Value> {
        let mut rules = Rules { root: &self.root, subject: subject.to_owned(), rules: Vec::new() };
        let all = || ["**".to_owned()];
        rules.add("allow", "ingress", READ, all());
        if passage.is_relay {
            let own = self.own.chunk();
            let sends = ["put", "query", "reply", "declare_queryable", "liveliness_token"];
            rules.add("allow", "ingress", &sends, all());
            // What a group brings stays within its host, as samples for readers of the host and a node's news do.
            rules.add("deny", "ingress", &["put"], ["a", "g", "h"].map(|kind| format!("{kind}/**")));
            rules.add("deny", "ingress", &["query", "reply", "declare_queryable"], ["a/**".to_owned()]);
            // Nobody else speaks for this host.
            rules.add("deny", "ingress", &["put"], ["d", "c"].map(|kind| format!("{kind}/{own}/**")));
            rules.add("deny", "ingress", &["query"], ["q", "s"].map(|kind| format!("{kind}/{own}/**")));
            rules.add("deny", "ingress", &["reply", "declare_queryable"], [format!("q/*/{own}/**")]);
            rules.add("deny", "ingress", &["liveliness_token"], ["p", "n", "r"].map(|kind| format!("{kind}/{own}/**")));
            let denied = passage.write.denied.iter().map(|pattern| format!("d/{host}/{pattern}/*"));
            rules.add("deny", "ingress", &["put"], denied);
        } else {
            rules.add_topics("ingress", &["put"], &format!("d/{host}"), &passage.write);
            // Processes of this host may come over the network; the spool of its node reads these.
            if host == self.own.chunk() {
                rules.add_topics("ingress", &["put"], &format!("h/{host}/*"), &passage.write);
            }
            rules.add("allow", "ingress", &["put"], [format!("c/{host}/**")]);
            rules.add("allow", "ingress", &["query"], [format!("s/{host}/**")]);
            rules.add_topics("ingress", &["query"], &format!("q/{host}/*/*"), &passage.read);
            rules.add_topics("ingress", &["reply"], &format!("q/*/{host}/*"), &passage.write);
            rules.add("allow", "ingress", &["reply", "declare_queryable"], ["s/**".to_owned()]);
            rules.add("allow", "ingress", &["declare_queryable"], [format!("q/*/{host}/**")]);
            rules.add("allow", "ingress", &["liveliness_token"], ["p", "n", "r"].map(|kind| format!("{kind}/{host}/**")));
        }
        let rest: Vec<&str> = ALL.iter().copied().filter(|message| !matches!(*message, "put" | "reply")).collect();
        rules.add("allow", "egress", &rest, all());
        rules.keep_local_declarations(&self.own);
        rules.add_topics("egress", &["put"], "d/*", &passage.read);
        rules.add_topics("egress", &["reply"], "q/*/*/*", &passage.read);
        rules.add("allow", "egress", &["reply"], ["s/**".to_owned()]);
        let to = if passage.is_relay { "*" } else { host };
        rules.add("allow", "egress", &["put"], [format!("c/*/{to}/**")]);
        rules.rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decides as the engine does: deny before allow, and the default without a rule.
    fn passes(gate: &Gate, subject: &str, flow: &str, message: &str, key: &str) -> bool {
        passes_by(&gate.access(), subject, flow, message, key)
    }

    fn passes_by(access: &str, subject: &str, flow: &str, message: &str, key: &str) -> bool {
        let access: Value = serde_json::from_str(access).unwrap();
        let ids: Vec<&Value> = access["policies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|policy| policy["subjects"][0] == subject)
            .flat_map(|policy| policy["rules"].as_array().unwrap())
            .collect();
        let key = KeyExpr::autocanonize(key.to_owned()).unwrap();
        let applies = |permission: &str| {
            access["rules"].as_array().unwrap().iter().any(|rule| {
                let has = |list: &str, what: &str| rule[list].as_array().unwrap().iter().any(|one| one == what);
                let covers = |one: &Value| KeyExpr::new(one.as_str().unwrap()).unwrap().includes(&key);
                ids.contains(&&rule["id"])
                    && rule["permission"] == permission
                    && has("flows", flow)
                    && has("messages", message)
                    && rule["key_exprs"].as_array().unwrap().iter().any(covers)
            })
        };
        !applies("deny") && (access["default_permission"] == "allow" || applies("allow"))
    }

    fn gate(passage: Passage) -> Gate {
        let hosts = BTreeMap::from([("PC-7".to_owned(), passage)]);
        Gate { root: "tampu/lab".to_owned(), own: HostName::new("hub"), hosts }
    }

    #[test]
    fn a_host_sends_under_its_own_name_alone() {
        let gate = gate(Passage::default());
        let from = |message, key: &str| passes(&gate, "host0", "ingress", message, &format!("tampu/lab/{key}"));
        for host in ["hub", "mast", "-"] {
            assert!(!from("put", &format!("d/{host}/log/info/.")), "{host}");
            assert!(!from("put", &format!("c/{host}/hub/1-2-3")));
            assert!(!from("query", &format!("s/{host}/log/query")));
            assert!(!from("query", &format!("q/{host}/hub/1-2-3/log/info/.")));
            assert!(!from("declare_queryable", &format!("q/*/{host}/1-2-3/**")));
            assert!(!from("reply", &format!("q/hub/{host}/1-2-3/log/info/.")));
            for kind in ["p", "n", "r"] {
                assert!(!from("liveliness_token", &format!("{kind}/{host}/x")));
            }
        }
        assert!(from("put", "d/pc_2d7/log/info/.") && from("put", "c/pc_2d7/hub/1-2-3"));
        assert!(from("query", "s/pc_2d7/log/query") && from("query", "q/pc_2d7/hub/1-2-3/log/info/."));
        assert!(from("declare_queryable", "q/*/pc_2d7/1-2-3/**") && from("declare_queryable", "s/*/event/get"));
        assert!(from("reply", "q/hub/pc_2d7/1-2-3/log/info/.") && from("reply", "s/hub/event/get"));
        assert!(from("liveliness_token", "p/pc_2d7/1-2-3/61") && from("declare_subscriber", "d/*/log/**/*"));
        assert!(!passes(&gate, "host0", "ingress", "put", "tampu/other/d/pc_2d7/x/."), "another domain");
        let to = |message, key: &str| passes(&gate, "host0", "egress", message, &format!("tampu/lab/{key}"));
        assert!(to("put", "d/mast/log/info/.") && to("put", "c/mast/pc_2d7/1-2-3"));
        assert!(!to("put", "c/mast/hub/1-2-3"), "control messages for others");
        assert!(passes(&gate, "sockets", "ingress", "put", "tampu/lab/d/hub/x/."));
    }

    #[test]
    fn a_relay_passes_on_other_hosts_but_not_this_one() {
        let gate = gate(Passage { is_relay: true, ..Passage::default() });
        let from = |message, key: &str| passes(&gate, "host0", "ingress", message, &format!("tampu/lab/{key}"));
        assert!(from("put", "d/mast/log/info/.") && from("liveliness_token", "p/mast/1-2-3/61") && from("query", "s/mast/x"));
        assert!(!from("put", "d/hub/log/info/.") && !from("liveliness_token", "p/hub/1-2-3/61") && !from("query", "s/hub/x"));
        for message in ["put", "query", "reply", "declare_queryable"] {
            assert!(!from(message, "a/mast/0123456789abcdef/_"), "{message} about announced keys");
        }
        assert!(!from("put", "g/mast/00000001/in/log/info/.") && !from("put", "g/hub/00000001/0/log/info/."));
        assert!(!passes(&gate, "host0", "egress", "put", "tampu/lab/g/hub/00000001/0/log/info/."));
        assert!(!from("put", "h/mast/00000001/log/info/.") && !from("put", "h/hub/00000001/log/info/."));
        assert!(!passes(&gate, "host0", "egress", "put", "tampu/lab/h/hub/00000001/log/info/."));
        assert!(passes(&gate, "host0", "egress", "put", "tampu/lab/c/hub/mast/1-2-3"));
    }

    #[test]
    fn what_is_of_use_on_this_host_alone_is_not_declared_on_others() {
        let own = format!("{:08x}", host::boot());
        let all = [Passage::default(), Passage { is_relay: true, ..Passage::default() }];
        let proved = all.map(|passage| gate(passage).access());
        let plain = local_declarations("tampu/lab", &HostName::new("hub"));
        let subjects = ["host0", "host0", "network"];
        for (access, subject) in proved.iter().chain([&plain]).zip(subjects) {
            let declares = |message, key: &str| passes_by(access, subject, "egress", message, &format!("tampu/lab/{key}"));
            for stays in [
                format!("c/*/hub/{own}-00000002-0000000000000003"),
                "a/*/0123456789abcdef/00000001-00000002-0000000000000003".to_owned(),
                format!("h/*/{own}/log/**/*"),
                format!("g/*/{own}/*/log/**/*"),
                format!("g/*/{own}/*/*/op"),
            ] {
                assert!(!declares("declare_subscriber", &stays), "{subject} {stays}");
            }
            for goes in [
                format!("c/*/hub/{own}$*"),
                "c/*/mast/00000001-00000002-0000000000000003".to_owned(),
                "d/*/log/**/*".to_owned(),
                format!("g/*/{own}/1/**"),
            ] {
                assert!(declares("declare_subscriber", &goes), "{subject} {goes}");
            }
            let refetch = format!("q/*/hub/{own}-00000002-0000000000000003/**");
            assert!(!declares("declare_queryable", "a/*/0123456789abcdef/_") && !declares("declare_queryable", &refetch));
            assert!(declares("declare_queryable", "s/*/1/x"));
            assert!(declares("declare_queryable", &format!("q/*/hub/{own}$*/**")));
        }
    }

    #[test]
    fn samples_for_readers_of_this_host_alone_come_from_its_own_processes() {
        let gate = |own: &str| {
            let write = TopicRights { denied: vec!["log/debug".to_owned()], ..TopicRights::default() };
            let passage = Passage { write, ..Passage::default() };
            Gate { own: HostName::new(own), ..gate(passage) }
        };
        let (own, other) = (gate("PC-7"), gate("hub"));
        let from = |gate, key: &str| passes(gate, "host0", "ingress", "put", &format!("tampu/lab/{key}"));
        assert!(from(&own, "h/pc_2d7/00000001/log/info/."), "a process of this host that came over the network");
        assert!(!from(&own, "h/pc_2d7/00000001/log/debug/."), "it may not write this topic");
        assert!(!from(&own, "h/mast/00000001/log/info/.") && !from(&own, "g/pc_2d7/00000001/0/log/info/."));
        assert!(!from(&other, "h/pc_2d7/00000001/log/info/.") && !from(&other, "h/hub/00000001/log/info/."));
        for gate in [&own, &other] {
            assert!(!passes(gate, "host0", "egress", "put", "tampu/lab/h/pc_2d7/00000001/log/info/."));
        }
    }

    #[test]
    fn a_closed_topic_is_closed_live_and_by_refetch() {
        let closed = TopicRights { denied: vec!["log/**".to_owned()], ..TopicRights::default() };
        let gate = gate(Passage { read: closed.clone(), write: closed, ..Passage::default() });
        let to = |message, key: &str| passes(&gate, "host0", "egress", message, &format!("tampu/lab/{key}"));
        let from = |message, key: &str| passes(&gate, "host0", "ingress", message, &format!("tampu/lab/{key}"));
        assert!(!to("put", "d/hub/log/info/.") && to("put", "d/hub/event_2dnames/."));
        assert!(!to("reply", "q/pc_2d7/hub/1-2-3/log/info/.") && to("reply", "s/pc_2d7/log/query"));
        assert!(!from("query", "q/pc_2d7/hub/1-2-3/log/info/.") && from("query", "q/pc_2d7/hub/1-2-3/t/."));
        assert!(!from("put", "d/pc_2d7/log/info/.") && from("put", "d/pc_2d7/t/."));
        assert!(!from("reply", "q/hub/pc_2d7/1-2-3/log/info/."));
    }
}
