//! A number of programs: a count, or a share of the processors.

/// A number of programs, or of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slots {
    /// A count.
    Programs(usize),
    /// Hundredths of the processors.
    Percent(usize),
}

/// Reads `4` or `200%`.
pub fn slots(text: &str) -> Result<Slots, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    // +1 is more than the processors elsewhere, and a number for Rust.
    let digits = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.unwrap_or_default().parse::<usize>() {
        Ok(number) if (1..=100_000).contains(&number) && text.ends_with('%') => Ok(Slots::Percent(number)),
        Ok(number) if (1..=100_000).contains(&number) => Ok(Slots::Programs(number)),
        _ => Err("write a number such as 4, or a share of the processors such as 200%".to_owned()),
    }
}

impl Slots {
    /// The number on a machine with this many processors.
    pub fn of(self, processors: usize) -> usize {
        match self {
            Slots::Programs(count) => count,
            Slots::Percent(percent) => (processors * percent / 100).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_at_the_same_time_are_a_number_or_a_share_of_the_processors() {
        let on_four = |text: &str| slots(text).map(|slots| slots.of(4));
        assert_eq!([on_four("3"), on_four("200%"), on_four("10%")], [Ok(3), Ok(8), Ok(1)]);
        assert!(["0", "-1", "+1", "+100%", "x", "%", "0%", "999999"].iter().all(|text| slots(text).is_err()));
    }
}
