//! Nodes on the bus. A node vouches for the processes of its host.
//!
//! While a host's node is announced, a process of that host that is not announced has died. Without the node, the host is
//! unreachable and nothing is known. After a cut the announcements return one by one, and the node's may be the first: so
//! a process that was absent before its node returned has [`RETURN`] to be announced again.
//!
//! A host whose name is proved runs one system at a time. If its node is announced with another boot, the host has started anew,
//! and the processes of the boot before have died.

use std::collections::HashMap;

use crate::engine::UNPROVED;

/// Time in ns after which an absent process has died, whatever its node does. A writer keeps samples for an absent reader as
/// long, within its cache. So a cut of a minute costs no sample, also if the links need some seconds to return.
pub(crate) const FORGET: u64 = 180_000_000_000;

/// Time in ns that the processes of a host have to return after their node has returned. A process looks for its node at
/// least once per second.
const RETURN: u64 = 3_000_000_000;

/// Number of nodes from which those that left are forgotten. Each boot of a host is another node.
const KEPT: usize = 4096;

/// Nodes that have been seen, by the boot of their host.
#[derive(Debug, Default, Clone)]
pub(crate) struct Nodes(HashMap<u32, Node>);

#[derive(Debug, Clone, Default)]
struct Node {
    /// Hosts that announce it. Several nodes on one machine have one boot.
    hosts: Vec<String>,
    /// The host that announced it last.
    last_host: String,
    /// Time of its latest return in monotonic ns; 0 if it was never gone.
    returned: u64,
}

impl Node {
    fn is_here(&self) -> bool {
        !self.hosts.is_empty()
    }
}

impl Nodes {
    /// Notes that a node is announced, or no longer.
    pub fn seen(&mut self, boot: u32, host: &str, is_here: bool, now: u64) {
        let is_new = !self.0.contains_key(&boot);
        let node = self.0.entry(boot).or_default();
        let was_here = node.is_here();
        node.hosts.retain(|known| known != host);
        if is_here {
            if !was_here && !is_new {
                node.returned = now;
            }
            node.hosts.push(host.to_owned());
            host.clone_into(&mut node.last_host);
        }
        if self.0.len() > KEPT {
            self.0.retain(|_, node| node.is_here());
        }
    }

    /// Reports if this host's node is announced.
    pub fn has(&self, boot: u32) -> bool {
        self.0.get(&boot).is_some_and(Node::is_here)
    }

    /// Returns the time in monotonic ns at which a process of this host that has been absent since `since` counts as dead:
    /// `patience` later, or when it had time to return. `None` if neither its node nor a later boot of its host is announced.
    pub fn dead_at(&self, boot: u32, since: u64, patience: u64) -> Option<u64> {
        let node = self.0.get(&boot)?;
        if !node.is_here() {
            return self.has_rebooted(node).then_some(since + patience);
        }
        let was_absent_before = since < node.returned;
        // A node that comes and goes does not put the end off for ever.
        Some(if was_absent_before { (node.returned + RETURN).min(since + FORGET) } else { since + patience })
    }

    /// Reports if the host of an absent node is announced with another boot.
    fn has_rebooted(&self, node: &Node) -> bool {
        node.last_host != UNPROVED && self.0.values().any(|other| other.hosts.contains(&node.last_host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_returns_gives_its_processes_time() {
        let mut nodes = Nodes::default();
        assert_eq!(nodes.dead_at(7, 0, 1), None);
        nodes.seen(7, "a", true, 5);
        assert_eq!((nodes.has(7), nodes.dead_at(7, 5, 1)), (true, Some(6)));
        nodes.seen(7, "a", false, 6);
        assert_eq!((nodes.has(7), nodes.dead_at(7, 5, 1)), (false, None));
        nodes.seen(7, "a", true, 10);
        nodes.seen(7, "b", true, 11);
        nodes.seen(7, "a", false, 11);
        assert_eq!(nodes.dead_at(7, 5, 1), Some(10 + RETURN));
        // Announced after the return, and gone since.
        assert_eq!(nodes.dead_at(7, 12, 1), Some(13));
    }

    #[test]
    fn another_boot_of_a_proved_host_ends_the_processes_of_the_boot_before() {
        let mut nodes = Nodes::default();
        for (boot, host) in [(1, "a"), (2, "b"), (3, UNPROVED)] {
            nodes.seen(boot, host, true, 5);
            nodes.seen(boot, host, false, 6);
        }
        assert_eq!([1, 2, 3].map(|boot| nodes.dead_at(boot, 6, 1)), [None; 3]);
        nodes.seen(9, "a", true, 7);
        nodes.seen(10, UNPROVED, true, 7);
        assert_eq!([1, 2, 3].map(|boot| nodes.dead_at(boot, 6, 1)), [Some(7), None, None]);
        nodes.seen(1, "a", true, 8);
        assert_eq!(nodes.dead_at(1, 6, 1), Some(8 + RETURN), "the node is there after all");
    }
}
