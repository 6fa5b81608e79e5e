//! Logs: the logger, the collector and the archive.
