//! A node passes announced keys on to the processes of its host.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use tampu_bus::{
    connect::{Node, NodeSettings, Settings},
    engine::{Class, Engine, Presence},
    wire::announced::{AnnouncedKeys, KeyChange},
};

#[path = "support/engine.rs"]
#[allow(dead_code)]
mod support;
use support::{Seen, gone, here, repeat_until, watch};

/// Collects the news of the node at a place.
fn news_of(engine: &Arc<dyn Engine>, place: &str) -> (Arc<Seen<AnnouncedKeys>>, tampu_bus::engine::Guard) {
    let seen = Seen::new();
    let into = seen.clone();
    let deliver = Arc::new(move |bytes: Bytes, _: &str| into.push(AnnouncedKeys::decode(&bytes).unwrap()));
    let guard = engine.subscribe(&format!("tampu/local/a/*/{place}/*"), deliver).unwrap();
    (seen, guard)
}

#[test]
fn a_process_takes_its_node_s_word_for_keys_and_asks_for_what_it_missed() {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let place = node.dir().place().unwrap();
    let (process, other) = (node.client_settings().open().unwrap(), node.client_settings().open().unwrap());
    let (news, _news) = news_of(&other, &place);
    let (seen, _seen) = watch(&process, "tampu/local/p/**");
    let _key = other.announce("tampu/local/p/real").unwrap();
    seen.wait("the announced key", |seen| seen.contains(&here("tampu/local/p/real")));
    news.wait("the news of it", |news| news.iter().any(|news| news.changes.iter().any(|change| change.key == "p/real")));

    // All keys of another table take the place of those that the process had.
    let changes = vec![KeyChange { key: "p/invented".to_owned(), here: true }];
    let invented = AnnouncedKeys { table: 1, from: 7, is_whole: true, changes }.encode();
    let outlet = other.outlet(&format!("tampu/local/a/@/{place}/*"), Class::Data).unwrap();
    repeat_until("an invented key being seen", || {
        outlet.send(invented.clone().into()).unwrap();
        seen.all().contains(&here("tampu/local/p/invented"))
    });
    seen.wait("the end of the real one", |seen| seen.contains(&gone("tampu/local/p/real")));
    // The next changes belong to the node's table, of which the process has nothing: it asks.
    let _another = other.announce("tampu/local/p/another").unwrap();
    seen.wait("the invented key being withdrawn, and the real ones being seen", |seen| {
        let times = |wanted: &Presence| seen.iter().filter(|presence| *presence == wanted).count();
        times(&gone("tampu/local/p/invented")) >= 1
            && times(&here("tampu/local/p/real")) >= 2
            && times(&here("tampu/local/p/another")) >= 1
    });
}

#[test]
fn a_place_keeps_its_name_and_others_have_other_names() {
    let places = |path: &Path| {
        let settings = || NodeSettings::new(Settings::isolated(path));
        let place = |node: &Node| node.dir().place().unwrap();
        let first = place(&Node::start(settings()).unwrap());
        let again = Node::start(settings()).unwrap();
        assert_eq!(first, place(&again));
        // A directory that was made anew.
        std::fs::remove_file(again.dir().node_place()).unwrap();
        std::fs::remove_file(again.dir().node_lock()).unwrap();
        assert!(again.restore().unwrap());
        assert_eq!(first, place(&again));
        first
    };
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_ne!(places(one.path()), places(other.path()));
}

#[test]
fn processes_of_a_node_without_a_table_watch_on_the_engine() {
    let run = tempfile::tempdir().unwrap();
    let node = Node::start(NodeSettings::new(Settings::isolated(run.path()))).unwrap();
    let here_first = node.client_settings().open().unwrap();
    let _key = here_first.announce("tampu/local/p/first").unwrap();
    // The place of a later release, of which this node has no table.
    std::fs::write(node.dir().node_place(), "0123456789abcdef").unwrap();
    let engine = node.client_settings().open().unwrap();
    let (seen, _seen) = watch(&engine, "tampu/local/p/*");
    seen.wait("the first key", |seen| *seen == [here("tampu/local/p/first")]);
    let second = here_first.announce("tampu/local/p/second").unwrap();
    seen.wait("the second key", |seen| seen.len() == 2);
    drop(second);
    seen.wait("its end", |seen| seen.last() == Some(&gone("tampu/local/p/second")));
}
