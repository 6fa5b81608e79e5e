//! The commit writer, which puts groups on disk: one write and one sync a group, while the next group gathers.
//!
//! A group goes whole into one segment. Before the write, each of its frames records how much of the file was on disk.
//! By that, a later start distinguishes damage from an interrupted write. If the disk refuses, the commit writer
//! truncates the file to the last commit. It retries the same group until there is room or the archive closes.

use std::{
    io,
    os::unix::fs::FileExt,
    sync::{Arc, atomic::Ordering},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use tampu_types::{Incarnation, Time};

use crate::{
    ids::seen::Run,
    local::{dirs::segments_dir, state::ArchiveState},
    wal::{
        frame,
        group::Group,
        reserve::Reserve,
        segment::{self, Content, Segment},
        side,
    },
};

pub(crate) struct Writer {
    shared: Arc<ArchiveState>,
    active: Option<Arc<Segment>>,
    /// Highest number of any file.
    number: u64,
    /// Ids in the active segment, for its side file.
    runs: Vec<(Incarnation, Run)>,
    /// Time of the first write to the active segment.
    begun: Option<Instant>,
    /// Time at which the last group was taken.
    taken: Option<Instant>,
    /// Space that stays free.
    reserve: Reserve,
}

impl Writer {
    pub(crate) fn new(shared: Arc<ArchiveState>, number: u64, runs: Vec<(Incarnation, Run)>) -> Writer {
        let active = shared.contents().segments.pop().filter(|segment| segment.number == number);
        let begun = active.as_ref().map(|_| Instant::now());
        Writer { shared, active, number, runs, begun, taken: None, reserve: Reserve::default() }
    }

    pub(crate) fn run(mut self) {
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

    /// Waits for a group, lets it gather, and exchanges it for the empty one; returns `false` when the archive closes.
    /// Closes the segment when it is due.
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
            shared.work.wait_for(&mut gathering, left);
        }
        // The period runs from the last commit, not from the first arrival: a caller that waits for its record after a pause
        // would otherwise pay for a group that nobody else joins.
        let until = self.taken.map_or_else(Instant::now, |taken| taken + options.linger);
        while !gathering.hurry && !gathering.closing && gathering.group.bytes.len() < options.pending / 4 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            shared.work.wait_for(&mut gathering, left);
        }
        self.taken = Some(Instant::now());
        gathering.group.close();
        std::mem::swap(&mut gathering.group, group);
        gathering.writing = group.bytes.len();
        gathering.hurry = false;
        drop(gathering);
        shared.moved.notify_all();
        true
    }

    /// Closes the open segment, if it is not empty: writes its side file and leaves the segment to the keeper.
    fn close(&mut self) {
        let Some(full) = self.active.take_if(|segment| !segment.select(|_| true).is_empty()) else { return };
        let runs = std::mem::take(&mut self.runs);
        let content = Content { entries: full.select(|_| true), runs, end: full.committed.load(Ordering::Acquire) };
        if !self.shared.is_damaged(&full) {
            // Without its side file the next start reads the segment whole and reports its damage again.
            let _ = side::write(&segments_dir(&self.shared.dir), full.number, &content);
        }
        self.shared.closed.fetch_max(full.number, Ordering::AcqRel);
        self.shared.call.notify_all();
    }

    fn write(&mut self, group: &mut Group) -> io::Result<()> {
        let min_free = self.shared.retention.read().min_free;
        self.reserve.check(min_free, &self.shared.dir)?;
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
            // After a failed sync the kernel may have dropped the unwritten data, so a new file is used.
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
            let has_frames = !segment.entries.read().is_empty();
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
        self.shared.contents.write().segments.push(segment.clone());
        Ok(segment)
    }

    /// Reports why nothing is written and waits until a retry is due; returns `false` if the archive closes instead.
    fn wait_for_room(&self, error: &io::Error) -> bool {
        let dir = self.shared.dir.display();
        let why = if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            format!("the disk of {dir} is full ({error}): free some space there; writing then continues by itself")
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
            self.shared.work.wait_for(&mut gathering, left);
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
        for told in self.shared.told.lock().iter() {
            told(ticket);
        }
    }
}
