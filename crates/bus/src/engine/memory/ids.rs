//! Numbers of processes, hosts and networks.

/// Number of a simulated process.
pub type ProcessId = u32;

/// Network of a declaration: 0 is common to all, n + 1 is that of process n's direct links.
pub type Plane = u32;

/// Number of a host of the network.
pub type HostId = u32;
