//! Storage: the rates of reading a file from the page cache by several threads, and of writing and reading its disk.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use gristmill_os::machine::pin_to_cpu;
use rustix::fs::{Advice, fadvise, fstatfs};

use crate::stream::Span;

/// A file to measure with. It has no name, so it disappears with this process.
pub struct Sample {
    file: File,
    bytes: u64,
    /// The rate of writing, in bytes per second, including the time until the disk has the data.
    pub write: f64,
    is_memory: bool,
}

/// The number of bytes that a reader reads at once.
const BLOCK_BYTES: usize = 256 << 10;

const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;

impl Sample {
    /// Writes the file in `folder`.
    ///
    /// # Errors
    ///
    /// If the folder does not exist, is not writable, or has no space.
    pub fn write(folder: &Path, bytes: u64) -> io::Result<Sample> {
        let mut file = tempfile::tempfile_in(folder)?;
        // Neither zeros nor equal blocks, because some disks compress or deduplicate.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut block = vec![0; BLOCK_BYTES];
        let began = Instant::now();
        for _ in 0..bytes.div_ceil(BLOCK_BYTES as u64) {
            for word in block.chunks_exact_mut(8) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                word.copy_from_slice(&state.to_ne_bytes());
            }
            file.write_all(&block)?;
        }
        file.sync_data()?;
        let seconds = began.elapsed().as_secs_f64().max(1e-9);
        let bytes = bytes.div_ceil(BLOCK_BYTES as u64) * BLOCK_BYTES as u64;
        let kind = fstatfs(&file)?.f_type as i64;
        Ok(Sample { file, bytes, write: bytes as f64 / seconds, is_memory: matches!(kind, TMPFS | RAMFS) })
    }

    /// Returns true if the folder lies in memory, so that there is no disk to measure.
    pub fn is_memory(&self) -> bool {
        self.is_memory
    }

    /// Returns the rate of reading from the page cache, in bytes per second: the best of `passes`, with a thread on
    /// each of `processors` that reads its own part.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn cached(&self, processors: &[usize], passes: usize) -> io::Result<f64> {
        self.pass(processors)?;
        let rates = (0..passes.max(1)).map(|_| self.pass(processors)).collect::<io::Result<Vec<f64>>>()?;
        Ok(rates.into_iter().fold(0.0, f64::max))
    }

    /// Returns the rate of one read from the disk. Caches of the disk or the host are not known here.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or the kernel does not drop it from the page cache.
    pub fn from_disk(&self, processors: &[usize]) -> io::Result<f64> {
        fadvise(&self.file, 0, NonZeroU64::new(self.bytes), Advice::DontNeed)?;
        self.pass(processors)
    }

    fn pass(&self, processors: &[usize]) -> io::Result<f64> {
        let blocks = self.bytes / BLOCK_BYTES as u64;
        let threads = processors.len() as u64;
        let together = Barrier::new(processors.len());
        let span = Mutex::new(Span::default());
        let read = |at: u64, processor: usize| -> io::Result<()> {
            let _ = pin_to_cpu(processor);
            let mut block = vec![0; BLOCK_BYTES];
            together.wait();
            let began = Instant::now();
            for number in blocks * at / threads..blocks * (at + 1) / threads {
                self.file.read_exact_at(&mut block, number * BLOCK_BYTES as u64)?;
                black_box(&mut block);
            }
            span.lock().expect("no thread panics while it has it").extend(began, Instant::now());
            Ok(())
        };
        thread::scope(|scope| {
            let readers: Vec<_> = processors
                .iter()
                .zip(0..)
                .map(|(processor, at)| {
                    let read = &read;
                    scope.spawn(move || read(at, *processor))
                })
                .collect();
            readers.into_iter().try_for_each(|reader| reader.join().expect("no reader panics"))
        })?;
        let seconds = span.into_inner().expect("no thread panicked").length().as_secs_f64();
        Ok(self.bytes as f64 / seconds.max(1e-9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_and_read_by_more_threads_than_it_has_blocks() {
        let folder = tempfile::tempdir().expect("a folder");
        let sample = Sample::write(folder.path(), 1).expect("written");
        assert!(sample.write > 0.0 && sample.bytes == BLOCK_BYTES as u64);
        assert!(sample.cached(&[0, 0, 0], 1).expect("read") > 0.0);
        assert!(sample.from_disk(&[0]).expect("read") > 0.0);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        assert!(Sample::write(Path::new("/nowhere/at/all"), 1).is_err());
    }
}
