//! Nodes on the bus. A node vouches for the processes of its host.
//!
//! While a host's node is announced, a process of that host that is not announced has died. Without the node, the host is
//! unreachable and nothing is known. After a cut the announcements return one by one, and the node's may be the first: so
//! a process that was absent before its node returned has [`RETURN`] to be announced again.

use std::collections::HashMap;

/// Time in ns after which an absent process has died, whatever its node does.
const FORGET: u64 = 60_000_000_000;

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
    /// `patience` later, or when it had time to return. `None` without a node.
    pub fn dead_at(&self, boot: u32, since: u64, patience: u64) -> Option<u64> {
        let node = self.0.get(&boot).filter(|node| node.is_here())?;
        let was_absent_before = since < node.returned;
        // A node that comes and goes does not put the end off for ever.
        Some(if was_absent_before { (node.returned + RETURN).min(since + FORGET) } else { since + patience })
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
}
