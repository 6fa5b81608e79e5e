//! The bytes of attachments, in the database, in pieces.
//!
//! An upload lies in a file without a name until its entry is posted, and enters the database in the entry's
//! transaction. So an entry and its bytes exist together or not at all, and no crash leaves anything to clean up.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
    sync::Arc,
};

use super::{Database, PostgresStore, rows::number, session::Session, tables::PostgresTransaction};
use crate::{
    attachment::{Bytes, Sha, Upload},
    entry::Content,
    store::{Attachments, Result, StoreError, pool::Pool},
};

/// Bytes of a piece.
pub const PIECE: usize = 1 << 20;

impl PostgresTransaction<'_> {
    /// Writes the blobs of an entry that are not there. To be called before the book is locked: they may be large.
    pub fn place_blobs(&mut self, uploads: &[Upload], content: &Content) -> Result<()> {
        let is_of = |upload: &&Upload| content.attachments.iter().any(|attachment| attachment.sha.as_ref() == Some(upload.sha()));
        let mut own: Vec<&Upload> = uploads.iter().filter(is_of).collect();
        // In order, so that two writers of the same blobs do not deadlock.
        own.sort_by_key(|upload| upload.sha());
        for upload in own {
            if !self.placed.insert(upload.sha().clone()) {
                continue;
            }
            let received = |error| StoreError::Io { path: PathBuf::from(format!("attachment {}", upload.sha().as_str())), error };
            let mut from = upload.read().map_err(received)?;
            let new = self.session.new_blob(upload.sha(), upload.size(), &mut from);
            if new.map_err(|failed| failed.with_sha(upload.sha()))? {
                self.brought.push(upload.sha().clone());
            }
        }
        Ok(())
    }

    /// Removes the blobs that this transaction added and no entry has. They belong to rejected entries.
    pub fn drop_unwanted(&mut self) -> Result<()> {
        let brought: Vec<&str> = self.brought.iter().map(Sha::as_str).collect();
        if brought.is_empty() {
            return Ok(());
        }
        let sql = "WITH unwanted AS (DELETE FROM blob WHERE sha = ANY($1) AND NOT EXISTS (SELECT 1 FROM attached WHERE attached.sha = blob.sha) \
                   RETURNING sha) DELETE FROM piece USING unwanted WHERE piece.sha = unwanted.sha";
        self.session.execute(sql, &[&brought])?;
        Ok(())
    }

    /// Checks that all blobs of an entry exist.
    pub fn see_blobs(&mut self, content: &Content) -> Result<()> {
        for attachment in &content.attachments {
            let Some(sha) = attachment.sha.as_ref().filter(|sha| !self.placed.contains(sha)) else { continue };
            if self.session.one("SELECT 1 FROM attached WHERE sha = $1 LIMIT 1", &[&sha.as_str()])?.is_none() {
                return Err(StoreError::NoBlob(attachment.name.clone()));
            }
        }
        Ok(())
    }
}

/// An error while writing the pieces of a blob.
pub enum Failed {
    /// The bytes could not be read.
    Read(io::Error),
    /// The pieces could not be written.
    Write(StoreError),
}

impl Failed {
    /// Converts to the store's error.
    pub fn with_sha(self, sha: &Sha) -> StoreError {
        match self {
            Failed::Read(error) => StoreError::Io { path: PathBuf::from(format!("attachment {}", sha.as_str())), error },
            Failed::Write(error) => error,
        }
    }
}

impl Session {
    /// Writes a blob unless it exists; returns whether it is new. The first piece, which is mostly the only one, is sent along.
    pub fn new_blob(&self, sha: &Sha, size: u64, from: &mut dyn Read) -> std::result::Result<bool, Failed> {
        let mut piece = Vec::new();
        let mut next = |piece: &mut Vec<u8>| {
            piece.clear();
            from.take(PIECE as u64).read_to_end(piece).map_err(Failed::Read)
        };
        next(&mut piece)?;
        let (size, sql) = (
            i64::try_from(size).unwrap_or(i64::MAX),
            "WITH new AS (INSERT INTO blob VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING sha), \
             first AS (INSERT INTO piece SELECT sha, 0, $3 FROM new WHERE $2 > 0) SELECT 1 FROM new",
        );
        // A purge may remove a blob between the two statements; then it is written.
        while self.one(sql, &[&sha.as_str(), &size, &piece]).map_err(Failed::Write)?.is_none() {
            // No purge removes it before this transaction has ended.
            let there = self.one("SELECT 1 FROM blob WHERE sha = $1 FOR KEY SHARE", &[&sha.as_str()]).map_err(Failed::Write)?;
            if there.is_some() {
                return Ok(false);
            }
        }
        for number in 1i64.. {
            if next(&mut piece)? == 0 {
                break;
            }
            let written = self.execute("INSERT INTO piece VALUES ($1, $2, $3)", &[&sha.as_str(), &number, &piece]);
            written.map_err(Failed::Write)?;
        }
        Ok(true)
    }
}

impl Attachments for PostgresStore {
    fn upload(&self, from: &mut dyn Read, limit: u64) -> Result<Upload> {
        let dir = self.0.receiving.read().clone();
        Upload::unnamed(&dir, from, limit).map_err(|error| StoreError::Io { path: dir, error })
    }

    fn attachment(&self, sha: &Sha) -> Result<Bytes> {
        let session = self.0.readers.get()?;
        let found = session.one("SELECT size FROM blob WHERE sha = $1", &[&sha.as_str()])?;
        let size = match found {
            Some(row) => number(&row, 0)?,
            None => return Err(StoreError::NoBlob(sha.as_str().to_owned())),
        };
        let blob = Blob { inner: self.0.clone(), sha: sha.clone(), size, at: 0, piece: None };
        Ok(Bytes::new(size, blob))
    }
}

/// Reads a blob, a piece at a time; between two pieces it holds no connection.
struct Blob {
    inner: Arc<Database>,
    sha: Sha,
    size: u64,
    at: u64,
    /// The piece that was read last.
    piece: Option<(u64, Vec<u8>)>,
}

/// Reads one piece of a blob.
pub fn read_piece(readers: &Pool<Session>, sha: &Sha, at: u64) -> Result<Vec<u8>> {
    let at = i64::try_from(at).unwrap_or(i64::MAX);
    let sql = "SELECT bytes FROM piece WHERE sha = $1 AND number = $2";
    let found = readers.get()?.one(sql, &[&sha.as_str(), &at])?;
    let found = found.ok_or_else(|| StoreError::Damaged(format!("attachment {}: piece {at} is not there", sha.as_str())))?;
    Ok(found.try_get(0)?)
}

impl Read for Blob {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.size {
            return Ok(0);
        }
        let (number, begin) = (self.at / PIECE as u64, (self.at % PIECE as u64) as usize);
        let piece = match self.piece.take() {
            Some((known, piece)) if known == number => piece,
            _ => read_piece(&self.inner.readers, &self.sha, number).map_err(io::Error::other)?,
        };
        let rest = piece.get(begin..).unwrap_or_default();
        if rest.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a piece of the attachment is too short"));
        }
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        self.at += read as u64;
        self.piece = Some((number, piece));
        Ok(read)
    }
}

impl Seek for Blob {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "before the beginning"))?;
        Ok(self.at)
    }
}
