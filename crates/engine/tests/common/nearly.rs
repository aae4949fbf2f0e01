//! Random, nearly valid input for tests that try many cases (`ci/fuzz.sh`).

#![allow(dead_code)] // Each test uses its part.

use fastrand::Rng;

/// Runs `case` with different random numbers for each of many cases, as many as GRISTMILL_FUZZ says.
pub fn fuzz(case: impl Fn(&mut Rng)) {
    /// Names the case that panicked.
    struct Number(u64);
    impl Drop for Number {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("case {}", self.0);
            }
        }
    }
    let count = std::env::var("GRISTMILL_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(2000);
    for number in 0..count {
        let number = Number(number);
        case(&mut Rng::with_seed(number.0));
    }
}

pub fn bytes(random: &mut Rng, of: &[u8], bytes_max: usize) -> Vec<u8> {
    (0..random.usize(..bytes_max)).map(|_| *random.choice(of).expect("some")).collect()
}

/// Changes, removes or inserts a few bytes, or cuts off the end.
pub fn mutate(random: &mut Rng, file: &mut Vec<u8>) {
    for _ in 0..random.usize(..4) {
        let at = random.usize(..=file.len());
        match random.u8(..5) {
            0 | 1 if at < file.len() => file[at] ^= 1 << random.u8(..8),
            2 if at < file.len() => file[at] = *random.choice(&[0, 1, 0x7f, 0x80, 0xff]).expect("some"),
            3 => file.truncate(at),
            _ => {
                let from = random.usize(..=at);
                let to = (at + random.usize(..20)).min(file.len());
                let piece = file[from..at].to_vec();
                file.splice(at..to, piece);
            }
        }
    }
}
