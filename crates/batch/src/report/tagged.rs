//! The lines of a program, each with a tag, while they arrive in its file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::queue::BatchJob;

use gristmill_report::messages::printable;

/// A longer line is broken into lines of this length, so that it need not be held in memory.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The bytes that are read at a time.
const PIECE_BYTES: usize = 64 << 10;
/// The longest part of a job's name in its tag.
const NAME_LETTERS: usize = 24;

/// The lines of a stream, from where they were printed last.
pub struct Tagged {
    tag: String,
    read_bytes: u64,
    /// The beginning of a line whose end has not come.
    rest: Vec<u8>,
}

impl Tagged {
    /// The lines of a job. The tag is its number, which tells it from all others, and the beginning of its name.
    pub fn of(number: usize, job: &BatchJob) -> Tagged {
        let name: String = printable(&job.name).chars().take(NAME_LETTERS).collect();
        Tagged { tag: format!("{} {}\t", number + 1, name.trim_end()), read_bytes: 0, rest: Vec::new() }
    }

    /// The bytes that were read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Returns the whole lines of the next piece.
    pub fn next(&mut self, file: &File) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; PIECE_BYTES];
        let count = file.read_at(&mut piece, self.read_bytes)?;
        self.read_bytes += count as u64;
        let mut text = Vec::with_capacity(count);
        for part in piece[..count].split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if part.ends_with(b"\n") || self.rest.len() >= LINE_BYTES_MAX {
                self.take(&mut text);
            }
        }
        Ok(text)
    }

    /// As [`Tagged::next`], after the end of the program. Nothing is left if there are no lines.
    pub fn last(&mut self, file: &File) -> io::Result<Vec<u8>> {
        loop {
            let before = self.read_bytes;
            let mut text = self.next(file)?;
            let is_end = self.read_bytes == before;
            if is_end && !self.rest.is_empty() {
                self.take(&mut text);
            }
            if is_end || !text.is_empty() {
                return Ok(text);
            }
        }
    }

    /// Moves the line to the text. A line without an end gets one.
    fn take(&mut self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.tag.as_bytes());
        text.append(&mut self.rest);
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::queue::Shell;

    #[test]
    fn lines_are_whole_and_have_the_tag() {
        let mut file = tempfile::tempfile().expect("a file");
        let mut lines = Tagged::of(6, &Shell::default().job("a\tb".into()));
        let mut written = |text: &str| {
            file.write_all(text.as_bytes()).expect("written");
            String::from_utf8(lines.next(&file).expect("read")).expect("text")
        };
        assert_eq!(
            [written("one\ntw"), written("o"), written("\n\nlast")],
            ["7 a\\tb\tone\n", "", "7 a\\tb\ttwo\n7 a\\tb\t\n"]
        );
        assert_eq!(lines.last(&file).expect("read"), b"7 a\\tb\tlast\n");
        assert_eq!(lines.last(&file).expect("read"), b"");
    }

    #[test]
    fn a_line_that_does_not_end_is_broken() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![b'x'; 2 * LINE_BYTES_MAX + 5]).expect("written");
        let mut lines = Tagged::of(0, &Shell::default().job("y".into()));
        let mut text = Vec::new();
        loop {
            match lines.last(&file).expect("read") {
                more if more.is_empty() => break,
                more => text.extend(more),
            }
        }
        let lengths: Vec<usize> = text.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lengths, [4 + LINE_BYTES_MAX, 4 + LINE_BYTES_MAX, 4 + 5, 0]);
    }
}
