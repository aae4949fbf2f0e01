//! Palindromes by hand: counts the substrings of a file's lines that read the same backwards (Manacher's algorithm).
//! Prints `total\tcount`.

use baselines::{arguments, blocks, fail};

#[derive(Default)]
struct Counter {
    total: u64,
    /// The number of palindromes around each place of a line.
    around: Vec<usize>,
}

impl Counter {
    fn add_lines(&mut self, text: &[u8]) {
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.total += (self.around::<1>(line) + self.around::<0>(line)) as u64;
        }
    }

    /// Counts palindromes of odd length (`ODD` is 1), centred on a byte, or of even length, centred before one.
    fn around<const ODD: usize>(&mut self, line: &[u8]) -> usize {
        let around = &mut self.around;
        around.clear();
        // Within the palindrome that ends last, both sides of its centre mirror each other.
        let (mut start, mut end, mut total) = (0, 0, 0);
        for at in 0..line.len() {
            let mut count = if at < end { around[start + end - at - ODD].min(end - at) } else { ODD };
            while let (Some(left), Some(right)) = ((at + ODD).checked_sub(count + 1), line.get(at + count))
                && line[left] == *right
            {
                count += 1;
            }
            around.push(count);
            total += count;
            if at + count > end {
                (start, end) = (at + ODD - count, at + count);
            }
        }
        total
    }
}

fn main() -> std::io::Result<()> {
    let ([path], [threads]) = arguments("palindromes_hand FILE [--threads N]", [("--threads", "2")]);
    let threads = threads.parse().unwrap_or_else(|_| fail("--threads needs a number"));
    let all = blocks::each_of_lines(&path, 256 << 10, threads, Counter::default, Counter::add_lines)?;
    println!("total\t{}", all.iter().map(|counter| counter.total).sum::<u64>());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_substring_is_read_both_ways() {
        for number in 0..1u32 << 12 {
            let line: Vec<u8> = (0..number % 13).map(|bit| b'a' + (number >> bit & 1) as u8).collect();
            let substrings = (0..line.len()).flat_map(|start| (start + 1..=line.len()).map(move |end| (start, end)));
            let is_one = |&(start, end): &(usize, usize)| line[start..end].iter().eq(line[start..end].iter().rev());
            let mut counter = Counter::default();
            counter.add_lines(&line);
            assert_eq!(counter.total, substrings.filter(is_one).count() as u64, "{line:?}");
        }
    }
}
