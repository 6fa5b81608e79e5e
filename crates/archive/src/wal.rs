//! Write-ahead segments: frames, files of frames, and the group commit that writes them.

pub(crate) mod commit;
pub(crate) mod content;
pub(crate) mod digest;
pub(crate) mod frame;
pub(crate) mod group;
pub(crate) mod reserve;
pub(crate) mod segment;
pub(crate) mod side;
