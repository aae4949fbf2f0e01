//! Whether programs are chosen, and the sentence where there is nothing to choose.

use gristmill_report::text::counted;

/// The modes of `--by-bandwidth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByBandwidth {
    /// Learn what programs demand, and choose them where earlier runs gained by that. In one run of eight it is tried.
    Observe,
    /// Choose them as soon as they are known and slow each other down.
    Choose,
}

impl ByBandwidth {
    /// Says what happens to programs whose demand is known from this.
    pub fn sentence(self, from: &str, processors: usize) -> String {
        match self {
            ByBandwidth::Observe => format!(
                "programs are observed, and chosen {from}, {processors} at a time, where earlier runs gained by that"
            ),
            ByBandwidth::Choose => format!("programs are chosen {from}, {processors} at a time"),
        }
    }
}

/// Returns why there is nothing to choose, and what to do about it if that is not just what the user asked for.
pub fn nothing_to_choose(programs: usize, slots: usize, is_jobs_given: bool, processors: usize) -> String {
    let processors_are = match processors {
        1 => "there is 1 processor".to_owned(),
        count => format!("there are {count} processors"),
    };
    if programs <= processors {
        return format!(
            "--by-bandwidth has nothing to choose: the list has {}, and {processors_are}",
            counted(programs as u64, "program")
        );
    }
    let advice = if is_jobs_given { "" } else { "; -j takes more" };
    format!(
        "--by-bandwidth has nothing to choose: at most {} at the same time, and {processors_are}{advice}",
        match slots {
            1 => "1 program runs".to_owned(),
            count => format!("{count} programs run"),
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `-j 2` was answered with "-j takes more", and so was a list of two programs with `-j 8`.
    #[test]
    fn j_is_advised_only_where_it_was_not_given_and_would_help() {
        let before = "--by-bandwidth has nothing to choose: ";
        for (programs, slots, is_jobs_given, expected) in [
            (9, 4, false, "at most 4 programs run at the same time, and there are 4 processors; -j takes more"),
            (9, 1, true, "at most 1 program runs at the same time, and there are 4 processors"),
            (3, 3, true, "the list has 3 programs, and there are 4 processors"),
            (1, 1, false, "the list has 1 program, and there are 4 processors"),
        ] {
            assert_eq!(nothing_to_choose(programs, slots, is_jobs_given, 4), format!("{before}{expected}"));
        }
    }
}
