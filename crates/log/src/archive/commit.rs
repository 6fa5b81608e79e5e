//! The worker that puts groups on disk: one write and one sync a group, while the next group gathers.
//!
//! A group goes whole into one segment. Before it is written, each of its frames is told how much of the file was on disk by
//! then; that is how a later start tells damage from an interrupted write. Where the disk refuses, the file is cut back to
//! the last commit, and the same group is tried again until there is room or the archive closes.

use std::{
    io,
    os::unix::fs::FileExt,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use tampu_types::{Incarnation, Time};

use super::{
    frame,
    group::Group,
    local::{Shared, segments_dir},
    seen::Run,
    segment::{self, Content, Segment},
    side,
};

pub(super) struct Writer {
    shared: Arc<Shared>,
    active: Option<Arc<Segment>>,
    /// The highest number any file has.
    number: u64,
    /// What is in the active segment, for its side file.
    runs: Vec<(Incarnation, Run)>,
    /// When something was first written to it.
    begun: Option<Instant>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, number: u64, runs: Vec<(Incarnation, Run)>) -> Writer {
        let active = shared.contents().segments.pop().filter(|segment| segment.number == number);
        let begun = active.as_ref().map(|_| Instant::now());
        Writer { shared, active, number, runs, begun }
    }

    pub(super) fn run(mut self) {
        let mut group = Group::default();
        while self.next_group(&mut group) {
            let begun = Instant::now();
            while let Err(error) = self.write(&mut group) {
                if !self.wait_for_room(&error) {
                    return;
                }
            }
            self.publish(&mut group, begun);
        }
    }

    /// Waits for a group, lets it gather, and takes it in exchange for the empty one; `false` at the end. Closes the segment
    /// when its time has come.
    fn next_group(&mut self, group: &mut Group) -> bool {
        let shared = self.shared.clone();
        let options = &shared.options;
        let mut gathering = shared.gathering();
        while gathering.group.is_empty() {
            if gathering.closing {
                return false;
            }
            let age = self.active.as_ref().and(self.begun).map(|begun| begun.elapsed());
            if gathering.roll || age.is_some_and(|age| age >= options.close_after) {
                drop(gathering);
                self.close();
                gathering = shared.gathering();
                gathering.roll = false;
                shared.moved.notify_all();
                continue;
            }
            let left = age.map_or(options.close_after, |age| options.close_after - age);
            gathering = shared.work.wait_timeout(gathering, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let until = Instant::now() + options.linger;
        while !gathering.hurry && !gathering.closing && gathering.group.bytes.len() < options.pending / 4 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            gathering = shared.work.wait_timeout(gathering, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        gathering.group.close();
        std::mem::swap(&mut gathering.group, group);
        gathering.writing = group.bytes.len();
        gathering.hurry = false;
        drop(gathering);
        shared.moved.notify_all();
        true
    }

    /// Closes the segment that is written, if anything is in it: writes its side file and leaves it to the keeper.
    fn close(&mut self) {
        let Some(full) = self.active.take_if(|segment| !segment.select(|_| true).is_empty()) else { return };
        let runs = std::mem::take(&mut self.runs);
        let content = Content { entries: full.select(|_| true), runs, end: full.committed.load(Ordering::Acquire) };
        if !self.shared.is_damaged(&full) {
            // Without its side file a segment is read whole at the next start, which also names its damage again.
            let _ = side::write(&segments_dir(&self.shared.dir), full.number, &content);
        }
        self.shared.closed.fetch_max(full.number, Ordering::AcqRel);
        self.shared.call.notify_all();
    }

    fn write(&mut self, group: &mut Group) -> io::Result<()> {
        let segment = self.segment_for(group.bytes.len() as u64)?;
        let end = segment.committed.load(Ordering::Acquire);
        for entry in &group.entries {
            let at = entry.at as usize;
            frame::seal(&mut group.bytes[at..at + entry.length as usize], end);
        }
        let written = segment.file.write_all_at(&group.bytes, end);
        let synced = written.as_ref().map_or(Ok(()), |()| segment.file.sync_data());
        if written.is_err() || synced.is_err() {
            let _ = segment.file.set_len(end);
        }
        if synced.is_err() {
            // After a failed sync the kernel may have forgotten what it could not write; a new file has nothing to forget.
            if let Some(given_up) = self.active.take() {
                self.shared.closed.fetch_max(given_up.number, Ordering::AcqRel);
            }
            self.runs.clear();
        }
        written.and(synced)
    }

    fn segment_for(&mut self, size: u64) -> io::Result<Arc<Segment>> {
        if let Some(segment) = &self.active {
            let end = segment.committed.load(Ordering::Acquire);
            let has_frames = !segment.entries.read().unwrap_or_else(PoisonError::into_inner).is_empty();
            if end + size <= self.shared.options.roll || !has_frames {
                return Ok(segment.clone());
            }
        }
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let created = Time::from_unix(created.as_secs() as i64, created.subsec_nanos());
        let segment =
            Arc::new(Segment::create(&segments_dir(&self.shared.dir), self.number + 1, created, &self.shared.options.domain)?);
        self.number += 1;
        self.close();
        if let Some(empty) = self.active.replace(segment.clone()) {
            self.shared.closed.fetch_max(empty.number, Ordering::AcqRel);
        }
        self.begun = Some(Instant::now());
        self.shared.contents.write().unwrap_or_else(PoisonError::into_inner).segments.push(segment.clone());
        Ok(segment)
    }

    /// Tells why nothing is written and waits until it is worth trying again; `false` if the archive closes instead.
    fn wait_for_room(&self, error: &io::Error) -> bool {
        let dir = self.shared.dir.display();
        let why = if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            format!("the disk of {dir} is full: free some space there, writing goes on by itself")
        } else {
            format!("{dir} cannot be written ({error}); it is tried again")
        };
        let mut gathering = self.shared.gathering();
        gathering.stuck = Some(why);
        let until = Instant::now() + self.shared.options.retry;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if gathering.closing {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            gathering = self.shared.work.wait_timeout(gathering, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn publish(&mut self, group: &mut Group, begun: Instant) {
        let Some(segment) = &self.active else { return };
        let start = segment.committed.load(Ordering::Acquire);
        group.entries.iter_mut().for_each(|entry| entry.at += start);
        segment.publish(&group.entries, start + group.bytes.len() as u64);
        self.runs.append(&mut group.runs);
        let ticket = group.ticket;
        {
            let mut gathering = self.shared.gathering();
            segment::gather_offsets(&group.entries, &mut gathering.committed_offsets);
            gathering.records += group.records;
            gathering.writing = 0;
            gathering.stuck = None;
            gathering.commits += 1;
            gathering.slowest_commit = gathering.slowest_commit.max(begun.elapsed());
            self.shared.committed.store(ticket, Ordering::Release);
        }
        group.clear();
        self.shared.moved.notify_all();
        for told in self.shared.told.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            told(ticket);
        }
    }
}
