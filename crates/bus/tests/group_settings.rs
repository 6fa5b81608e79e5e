//! A multicast group without use is reported, and does not keep the node from starting.

use tampu_bus::{
    connect::{Node, NodeSettings, Settings},
    group::GroupSettings,
};

#[test]
fn a_group_of_a_node_without_other_hosts_is_reported() {
    let run = tempfile::tempdir().unwrap();
    let groups = vec![GroupSettings::new("239.1.1.1".parse().unwrap())];
    let node = Node::start(NodeSettings { groups, ..NodeSettings::new(Settings::isolated(run.path())) }).unwrap();
    let trouble = node.trouble();
    assert!(trouble.len() == 1 && trouble[0].contains("239.1.1.1 is without use"), "{trouble:?}");
    assert_eq!(node.group_reports(), []);
}
