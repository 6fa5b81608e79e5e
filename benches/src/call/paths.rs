//! Paths of the measured programs, and the directory they use.

use std::path::PathBuf;

/// Programs that are run, and the directory for their files.
#[derive(Debug, Clone)]
pub struct Paths {
    pub tampu: PathBuf,
    /// The program that measures spdlog.
    pub spdlog: PathBuf,
    /// Directory for the run\'s directories: the disk that is measured.
    pub data: PathBuf,
}
