//! Loops compiled for several widths of vectors.
//!
//! A program for all x86-64 processors uses vectors of 16 bytes; most processors have 32, and many 64. Work given to
//! this module is compiled three times, and the processor is asked once.

/// Work that is worth wide vectors.
///
/// Every closure is. Write a struct of your own where a closure inside the work would be compiled only once. Mark
/// `run`, and the functions that it calls, with `#[inline(always)]`: code that is not inlined is compiled once, for
/// every processor.
pub trait VectorWork {
    /// The result.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;
}

impl<R, F: FnOnce() -> R> VectorWork for F {
    type Output = R;

    #[inline(always)]
    fn run(self) -> R {
        self()
    }
}

/// Runs `work` with the widest vectors of this processor.
///
/// ```
/// let numbers = [1.5_f32; 1000];
/// let sum = gristmill_os::vectors::with_widest(|| numbers.iter().sum::<f32>());
/// assert_eq!(sum, 1500.0);
/// ```
#[inline]
pub fn with_widest<W: VectorWork>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    match x86::level() {
        // SAFETY: the processor has every feature that the function is compiled for; `level` has asked for each.
        x86::Level::Bytes64 => return unsafe { x86::with_64_bytes(work) },
        // SAFETY: as above.
        x86::Level::Bytes32 => return unsafe { x86::with_32_bytes(work) },
        x86::Level::Bytes16 => {}
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::sync::OnceLock;

    use super::VectorWork;

    /// The levels of x86-64: v4, v3 and the baseline.
    #[derive(Clone, Copy)]
    pub enum Level {
        Bytes64,
        Bytes32,
        Bytes16,
    }

    pub fn level() -> Level {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| {
            macro_rules! has {
                ($($feature:tt)*) => { true $(&& is_x86_feature_detected!($feature))* };
            }
            let v3 = has!("avx" "avx2" "bmi1" "bmi2" "fma" "lzcnt" "popcnt" "sse3" "ssse3" "sse4.1" "sse4.2");
            let v4 = has!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl");
            match (v3, v4) {
                (true, true) => Level::Bytes64,
                (true, false) => Level::Bytes32,
                (false, _) => Level::Bytes16,
            }
        })
    }

    #[target_feature(enable = "avx,avx2,bmi1,bmi2,fma,lzcnt,popcnt,sse3,ssse3,sse4.1,sse4.2")]
    pub fn with_32_bytes<W: VectorWork>(work: W) -> W::Output {
        work.run()
    }

    #[target_feature(enable = "avx,avx2,bmi1,bmi2,fma,lzcnt,popcnt,sse3,ssse3,sse4.1,sse4.2")]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
    pub fn with_64_bytes<W: VectorWork>(work: W) -> W::Output {
        work.run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dot<'a>(&'a [f32], &'a [f32]);

    impl VectorWork for Dot<'_> {
        type Output = f32;

        #[inline(always)]
        fn run(self) -> f32 {
            self.0.iter().zip(self.1).map(|(a, b)| a * b).sum()
        }
    }

    #[test]
    fn work_gives_the_same_at_every_level() {
        let numbers: Vec<f32> = (0..1003).map(|n| n as f32 / 8.0).collect();
        let expected = Dot(&numbers, &numbers).run();
        assert_eq!(with_widest(Dot(&numbers, &numbers)), expected);
        #[cfg(target_arch = "x86_64")]
        if matches!(x86::level(), x86::Level::Bytes64 | x86::Level::Bytes32) {
            // SAFETY: the processor has these features, and maybe more.
            assert_eq!(unsafe { x86::with_32_bytes(Dot(&numbers, &numbers)) }, expected);
        }
        let mut taken = Some(7);
        assert_eq!(with_widest(|| taken.take()), Some(7));
        assert_eq!(taken, None);
    }
}
