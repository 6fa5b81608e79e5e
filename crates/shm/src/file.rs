//! Files to map. Each is reserved in full when it is created: a lack of memory is an error of the creation, not a SIGBUS at some
//! later store.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::Path,
};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

/// Creates a file of `length` zero bytes that only its user can open. Fails if `path` exists.
pub fn create_reserved(path: &Path, length: usize) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, length as u64)?;
    Ok(file)
}

/// Creates memory of `length` zero bytes with a descriptor and without a path. `name` is shown by the kernel only.
///
/// The memory is not reserved: its pages are taken at the first store.
pub fn create_unnamed(name: &str, length: u64) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?);
    rustix::fs::ftruncate(&file, length)?;
    Ok(file)
}

/// Creates reserved memory without a path whose length is sealed: no process can shorten it under a mapping.
pub fn create_sealed(name: &str, length: usize) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create(name, flags)?);
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, length as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Returns whether no process can shorten `file`. An error means that the file cannot be sealed at all.
pub fn is_shrink_sealed(file: impl AsFd) -> io::Result<bool> {
    Ok(rustix::fs::fcntl_get_seals(file)?.contains(SealFlags::SHRINK))
}
