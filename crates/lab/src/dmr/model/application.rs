//! Five applications: their input, and their map functions. All input is words of eight bytes.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use fastrand::Rng;
use gristmill_os::{Pieces, Window};

use crate::generate::Size;

/// An application of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelApp {
    /// A pair for each word, of eight letters
    WordCount,
    /// Counts of the values of three colours, a pair for each value that occurs in a task
    Histogram,
    /// Five sums over points of two bytes, a pair for each sum and task
    LinearRegression,
    /// A pair for each word that is one of four keys
    StringMatch,
    /// A pair for each two rows of a matrix: the sum of their products
    Pca,
}

impl ModelApp {
    /// All, in the order of the paper's table 1.
    pub const ALL: [ModelApp; 5] =
        [ModelApp::WordCount, ModelApp::Histogram, ModelApp::LinearRegression, ModelApp::Pca, ModelApp::StringMatch];

    pub fn title(self) -> &'static str {
        match self {
            ModelApp::WordCount => "word count",
            ModelApp::Histogram => "histogram",
            ModelApp::LinearRegression => "linear regression",
            ModelApp::StringMatch => "string match",
            ModelApp::Pca => "PCA",
        }
    }
}

/// The number of distinct words, as in table 1 of the paper.
pub const WORDS: usize = 123_748;
/// The keys of string match.
pub const KEYS: [[u8; 8]; 4] = [*b"hellowor", *b"howareyo", *b"ferrari ", *b"whothema"];
/// Words of eight bytes in a task of the paper: 1101 tasks of histogram make its pairs of 692 keys, and 518 those of
/// linear regression.
const HISTOGRAM_TASK: usize = 1_400_000_000 / 1101 / 8;
const LINEAR_REGRESSION_TASK: usize = 500_000_000 / 518 / 8;
/// Tasks that there are at least.
const TASKS_MIN: usize = 64;

/// The shape of an application's input.
#[derive(Clone, Copy, Debug)]
pub struct ModelInput {
    pub app: ModelApp,
    /// Words of input.
    pub words: usize,
    /// Words of a task: a multiple of three, or a row.
    pub task_words: usize,
}

impl ModelInput {
    /// The input of an application in this size. The large one is that of table 1.
    pub fn new(app: ModelApp, size: Size) -> ModelInput {
        let sized = |sizes: [usize; 3]| sizes[size as usize];
        let words = match app {
            ModelApp::WordCount => sized([300_000, 4_000_000, 17_941_890]),
            ModelApp::Histogram => sized([16, 200, 1400]) * 1_000_000 / 8,
            ModelApp::LinearRegression => sized([16, 200, 500]) * 1_000_000 / 8,
            ModelApp::StringMatch => sized([4, 100, 500]) * 1_000_000 / 8,
            ModelApp::Pca => sized([200, 1000, 4000]).pow(2),
        };
        ModelInput::of_words(app, words)
    }

    /// The input of an application with this many words; for a matrix, the number of a square.
    pub fn of_words(app: ModelApp, words: usize) -> ModelInput {
        let task_words = match app {
            ModelApp::Histogram => HISTOGRAM_TASK,
            ModelApp::LinearRegression => LINEAR_REGRESSION_TASK,
            ModelApp::WordCount | ModelApp::StringMatch => 1 << 17,
            ModelApp::Pca => return ModelInput { app, words, task_words: words.isqrt().max(1) },
        };
        let task_words = task_words.min(words.div_ceil(TASKS_MIN)).next_multiple_of(3);
        ModelInput { app, words, task_words }
    }

    pub fn tasks(&self) -> usize {
        self.words.div_ceil(self.task_words)
    }

    /// The number of keys that are expected, to choose the buckets of tables by.
    pub fn keys(&self) -> usize {
        match self.app {
            ModelApp::WordCount => WORDS.min(self.words / 3),
            ModelApp::Histogram => 768,
            ModelApp::LinearRegression => 5,
            ModelApp::StringMatch => KEYS.len(),
            ModelApp::Pca => self.task_words * (self.task_words + 1) / 2,
        }
    }

    /// The number of pairs that are emitted at most.
    pub fn pairs_max(&self) -> usize {
        match self.app {
            ModelApp::WordCount | ModelApp::StringMatch => self.words,
            ModelApp::Histogram => self.tasks() * 768,
            ModelApp::LinearRegression => self.tasks() * 5,
            ModelApp::Pca => self.keys(),
        }
    }

    /// Makes the input from a seed.
    pub fn generate(&self, seed: u64) -> io::Result<Pieces> {
        let memory = Pieces::new(1, self.words * 8)?;
        let mut rng = Rng::with_seed(seed);
        for (at, to) in Window::onto(&memory, 0)?.words()[..self.words].iter().enumerate() {
            let word = match self.app {
                ModelApp::WordCount => word(&mut rng),
                ModelApp::Histogram | ModelApp::LinearRegression => rng.u64(..),
                // One word in 50,000 is a key. They come at fixed places, so that short inputs have some.
                ModelApp::StringMatch if at % 50_000 == 0 => u64::from_le_bytes(KEYS[at / 50_000 % KEYS.len()]),
                ModelApp::StringMatch => word(&mut rng),
                ModelApp::Pca => rng.u64(..100),
            };
            to.store(word, Ordering::Relaxed);
        }
        Ok(memory)
    }

    /// Maps a task.
    #[inline]
    pub fn map(&self, words: &[AtomicU64], task: usize, emit: &mut impl FnMut(u64, u64)) {
        let from = task * self.task_words;
        let part = &words[from..(from + self.task_words).min(self.words)];
        match self.app {
            ModelApp::WordCount => part.iter().for_each(|word| emit(load(word), 1)),
            ModelApp::Histogram => {
                let mut counts = [[0_u64; 256]; 3];
                // A task begins with the first colour.
                for (at, word) in part.iter().enumerate() {
                    for (byte, value) in load(word).to_le_bytes().into_iter().enumerate() {
                        counts[(at * 8 + byte) % 3][usize::from(value)] += 1;
                    }
                }
                let all = counts.as_flattened().iter().enumerate();
                all.filter(|(_, count)| **count > 0).for_each(|(key, count)| emit(key as u64, *count));
            }
            ModelApp::LinearRegression => {
                let mut sums = [0_u64; 5];
                for word in part {
                    for [x, y] in load(word).to_le_bytes().as_chunks::<2>().0 {
                        let [x, y] = [*x, *y].map(u64::from);
                        let terms = [x, y, x * x, y * y, x * y];
                        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
                    }
                }
                sums.iter().enumerate().for_each(|(key, sum)| emit(key as u64, *sum));
            }
            ModelApp::StringMatch => {
                let keys = KEYS.map(u64::from_le_bytes);
                for word in part.iter().map(load) {
                    if let Some(key) = keys.iter().position(|key| *key == word) {
                        emit(key as u64, 1);
                    }
                }
            }
            ModelApp::Pca => {
                let columns = self.task_words;
                for other in task..self.words / columns {
                    let row = &words[other * columns..][..columns];
                    let products = part.iter().zip(row).map(|(a, b)| load(a) * load(b));
                    emit((task * columns + other) as u64, products.sum());
                }
            }
        }
    }
}

#[inline(always)]
fn load(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

/// Generates a word. The n-th most frequent one is about n times rarer than the first.
fn word(rng: &mut Rng) -> u64 {
    let rank = ((WORDS as f64).powf(rng.f64()) as u64).min(WORDS as u64 - 1);
    let letters = [0, 1, 2, 3, 4, 5, 6, 7].map(|place| b'a' + (rank >> (4 * place) & 15) as u8);
    u64::from_le_bytes(letters)
}
