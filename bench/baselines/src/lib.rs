//! Code shared by the hand-written programs: arguments, claiming and reading of blocks, matrices on disk, output.
//! Each program contains its own algorithm.

pub mod blocks;
pub mod matrix;
pub mod words;

/// Parses the positional arguments and the `--NAME` options (given as `("--threads", "2")`: name and default).
pub fn arguments<const N: usize, const M: usize>(
    usage: &str,
    options: [(&str, &str); M],
) -> ([String; N], [String; M]) {
    let mut values = options.map(|(_, default)| default.to_owned());
    let mut found = Vec::new();
    let mut words = std::env::args().skip(1);
    let fail = |what: String| -> ! {
        eprintln!("{what}\nusage: {usage}");
        std::process::exit(2)
    };
    while let Some(word) = words.next() {
        match options.iter().position(|(name, _)| *name == word) {
            Some(index) => values[index] = words.next().unwrap_or_else(|| fail(format!("{word} needs a value"))),
            None => found.push(word),
        }
    }
    let found = found.try_into().unwrap_or_else(|found: Vec<_>| fail(format!("{} arguments, not {N}", found.len())));
    (found, values)
}

/// Ends the program with an error message.
pub fn fail(what: impl std::fmt::Display) -> ! {
    eprintln!("{what}");
    std::process::exit(1)
}

/// Defines `$name`, which runs the inlined `$body` compiled for AVX-512 or AVX2 if the processor has it.
#[macro_export]
macro_rules! with_simd {
    (fn $name:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)? { $body:ident }) => {
        fn $name($($arg: $type),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2,popcnt,lzcnt")]
                fn avx512($($arg: $type),*) $(-> $ret)? {
                    $body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
                fn avx2($($arg: $type),*) $(-> $ret)? {
                    $body($($arg),*)
                }
                if std::is_x86_feature_detected!("avx512bw") && std::is_x86_feature_detected!("avx512vl") {
                    // SAFETY: processors with AVX-512BW and VL have the other features.
                    return unsafe { avx512($($arg),*) };
                }
                if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("bmi2") {
                    // SAFETY: processors with AVX2 and BMI2 have the other features.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $body($($arg),*)
        }
    };
}
