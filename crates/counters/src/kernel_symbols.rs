//! The names of the kernel's functions (`/proc/kallsyms`).

use crate::files::Files;

/// The functions of the kernel by their addresses.
#[derive(Debug)]
pub struct Symbols {
    /// The address at which each begins, ascending, with the place of its name in `names`.
    starts: Vec<(u64, u32)>,
    names: String,
}

impl Symbols {
    /// Reads the functions of the running kernel; `None` if it does not tell their addresses, as most do to users
    /// without rights.
    pub fn read(files: Files<'_>) -> Option<Symbols> {
        Symbols::of(&files("/proc/kallsyms")?)
    }

    fn of(text: &str) -> Option<Symbols> {
        let (mut starts, mut names) = (Vec::new(), String::new());
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some("t" | "T"), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let address = u64::from_str_radix(address, 16).ok().filter(|address| *address > 0);
            starts.push((address?, names.len() as u32));
            names.push_str(name);
            names.push('\n');
        }
        starts.sort_by_key(|(address, _)| *address);
        (!starts.is_empty()).then_some(Symbols { starts, names })
    }

    /// Returns the name of the function at this address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let after = self.starts.partition_point(|(start, _)| *start <= address);
        let (_, name) = self.starts.get(after.checked_sub(1)?)?;
        self.names[*name as usize..].lines().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_last_function_that_begins_before_it() {
        let text = "ffff10 T read\nffff00 t open\nffff18 D data\nffff20 t lock\t[module]\n";
        let symbols = Symbols::of(text).expect("addresses");
        assert_eq!(
            [0xfffeff, 0xffff00, 0xffff0f, 0xffff10, 0xffff1f, 0xffff99].map(|at| symbols.name(at)),
            [None, Some("open"), Some("open"), Some("read"), Some("read"), Some("lock")]
        );
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_tells_nothing() {
        assert!(Symbols::of("0000000000000000 T read\n0000000000000000 t open\n").is_none());
        assert!(Symbols::of("").is_none());
    }
}
