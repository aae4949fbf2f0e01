//! Records that are set aside: their limit and their list.

use std::io::{self, BufReader, Read, Write};

use crate::control::place::Place;
use crate::coordinator::state::Coordinator;
use crate::error::{Error, Result};
use crate::input::records::{LineCount, Records};
use crate::input::source::Source;
use crate::memory::Memory;
use crate::output::outcome::BadRecord;

/// The list contains only the beginning of a longer record.
const LISTED_BYTES_MAX: u64 = 64 << 10;
/// The memory that a record takes in the list, besides its bytes and its cause.
const LISTED_BYTES: u64 = 256;

impl Coordinator<'_, '_, '_, '_> {
    /// Sets aside the records that workers have reported.
    pub(super) fn hear(&mut self) -> Result<()> {
        let shared = self.setup.shared;
        shared.hear(|records| self.set_aside(records))
    }

    /// Sets records aside, or fails if they exceed the limit.
    pub(super) fn set_aside(&mut self, records: Vec<(Place, String)>) -> Result<()> {
        let limit = self.setup.plan.skip_bad_records;
        let mut left = (limit as usize).saturating_sub(self.bad_records.len());
        // An earlier round may have met the same records.
        let mut new = Vec::with_capacity(records.len());
        for (place, cause) in records {
            if self.places_aside.insert((place.source, place.offset)) {
                if left == 0 {
                    return Err(Error::TooManyBadRecords { limit, what: format!("{}: {cause}", self.name_of(place)) });
                }
                left -= 1;
                self.aside_bytes += LISTED_BYTES + place.bytes.min(LISTED_BYTES_MAX) + cause.len() as u64;
                new.push((place, cause));
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let records = self.bad_records.len() + new.len();
        Memory::of(self.setup.plan.budget.total_bytes as u64).share(8).allow(self.aside_bytes).map_err(
            |too_large| Error::TooLarge {
                what: format!("the list of the {records} records that were set aside {too_large}"),
            },
        )?;
        if let Some(stages) = &mut self.stages {
            stages.log.note_bad(&new)?;
        }
        new.iter().for_each(|(place, _)| self.setup.shared.set_aside(*place));
        self.bad_records.append(&mut new);
        Ok(())
    }

    /// Returns the list in the order of the input. Each source is read once, up to its last record in the list.
    pub(super) fn list_bad_records(&mut self) -> Result<Vec<BadRecord>> {
        let mut bad_records = std::mem::take(&mut self.bad_records);
        bad_records.sort_by_key(|(place, _)| (place.source, place.offset));
        let tasks = self.setup.tasks;
        let mut list = Vec::with_capacity(bad_records.len());
        let mut open: Option<(usize, Pass)> = None;
        for (place, cause) in bad_records {
            let source = &tasks.sources[place.source];
            let failed = |error| Error::Input { path: source.name.clone(), source: error };
            let pass = match &mut open {
                Some((number, pass)) if *number == place.source => pass,
                _ => {
                    &mut open
                        .insert((place.source, Pass::through(source, tasks.records_of(place.source)).map_err(failed)?))
                        .1
                }
            };
            let (line, mut record) = pass.record(place).map_err(failed)?;
            let records = tasks.records_of(place.source);
            record = records.without_end(&record).to_vec();
            record.truncate(LISTED_BYTES_MAX as usize);
            record.shrink_to_fit();
            let line = records.are_lines().then_some(line);
            list.push(BadRecord { path: source.name.clone(), offset: place.offset, line, record, cause });
        }
        Ok(list)
    }

    /// Returns a record as messages show it.
    pub(super) fn name_of(&self, place: Place) -> String {
        let tasks = self.setup.tasks;
        match tasks.line(place.source, place.offset) {
            Some(line) => self.place_in(place, &format!(" line {line},")),
            None => self.bytes_of(place),
        }
    }

    /// Returns a range of the input as messages show it.
    pub(super) fn bytes_of(&self, place: Place) -> String {
        self.place_in(place, "")
    }

    fn place_in(&self, place: Place, line: &str) -> String {
        let source = &self.setup.tasks.sources[place.source];
        let packed = if source.is_decoded() { " of its content" } else { "" };
        let range = place.range();
        format!("{}{line} bytes {}..{}{packed}", source.name.display(), range.start, range.end)
    }
}

/// Reads a source from its beginning to find records in ascending order.
struct Pass {
    content: BufReader<Box<dyn Read>>,
    at: u64,
    lines: Lines,
}

/// Counts lines and keeps nothing.
struct Lines(LineCount);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pass {
    fn through(source: &Source, records: Records) -> io::Result<Pass> {
        let lines = Lines(LineCount::new(records));
        Ok(Pass { content: BufReader::with_capacity(1 << 16, source.open()?), at: 0, lines })
    }

    /// Returns the line number of a record, from 1, and its bytes.
    fn record(&mut self, Place { offset, bytes, .. }: Place) -> io::Result<(u64, Vec<u8>)> {
        let before = offset - self.at;
        let mut record = Vec::new();
        let skipped = io::copy(&mut (&mut self.content).take(before), &mut self.lines)?;
        // The length was reported by a worker, so allocate only for bytes that are read.
        (&mut self.content).take(bytes).read_to_end(&mut record)?;
        if skipped != before || record.len() as u64 != bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = self.lines.0.line;
        self.lines.write_all(&record)?;
        self.at = offset + bytes;
        Ok((line, record))
    }
}
