//! Messages inside one process, with seeded faults and a virtual clock: the engine of tests.
