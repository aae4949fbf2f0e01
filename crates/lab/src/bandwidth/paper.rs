//! The programs and groups of the paper, as data (tables 2 and 3).
//!
//! Our copy of the paper is text extracted from its pages, and parts of the tables are lost. Replacements are marked:
//! programs with assumed demand or phases, and the members that fill up groups.

/// A program of SPEC CPU2006 on the paper's machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Benchmark {
    /// The name, without the number.
    pub name: &'static str,
    /// The mean bandwidth when it is alone, in requests per microsecond (table 2: BTR).
    pub bandwidth: f64,
    /// The number of phases that the paper found.
    pub phases: usize,
    /// True if both numbers were legible.
    pub legible: bool,
}

/// The time that each program takes alone.
pub const ALONE_US: f64 = 10e6;
/// The share of time that the paper's scheduler costs: 2.21 % for counters, phases and choices, 0.98 % for samples.
pub const OVERHEAD: f64 = 0.0319;
/// The part of it that is the choice of programs, at most.
pub const CHOOSING: f64 = 0.002;

const fn read(name: &'static str, bandwidth: f64, phases: usize) -> Benchmark {
    Benchmark { name, bandwidth, phases, legible: true }
}

/// A benchmark with assumed values. The table is sorted by bandwidth, so a lost row lies between its neighbours.
/// Programs below wrf are not in the table: one execution covers them under any load.
const fn assumed(name: &'static str, bandwidth: f64, phases: usize) -> Benchmark {
    Benchmark { name, bandwidth, phases, legible: false }
}

/// The programs, in order of decreasing demand. The first sixteen are those of table 2.
pub const BENCHMARKS: [Benchmark; 29] = [
    read("leslie3d", 52.1, 30),
    read("GemsFDTD", 49.9, 32),
    read("milc", 49.6, 35),
    read("libquantum", 49.0, 18),
    read("bwaves", 47.3, 27),
    read("sphinx3", 28.0, 14),
    assumed("lbm", 26.2, 4),
    read("zeusmp", 24.5, 213),
    read("soplex", 20.4, 50),
    read("mcf", 17.3, 24),
    read("cactusADM", 15.7, 11),
    read("xalancbmk", 14.1, 11),
    assumed("gcc", 11.6, 40),
    read("astar", 9.2, 38),
    read("omnetpp", 9.1, 24),
    assumed("wrf", 8.5, 30),
    assumed("bzip2", 3.0, 10),
    assumed("dealII", 1.0, 10),
    assumed("perlbench", 0.8, 10),
    assumed("h264ref", 0.8, 10),
    assumed("sjeng", 0.8, 10),
    assumed("gobmk", 0.8, 10),
    assumed("hmmer", 0.6, 4),
    assumed("calculix", 0.5, 10),
    assumed("gromacs", 0.5, 4),
    assumed("tonto", 0.5, 10),
    assumed("namd", 0.4, 4),
    assumed("gamess", 0.1, 4),
    assumed("povray", 0.1, 4),
];

/// The executions until a program is covered under a low load, where they are legible in table 2.
pub const EXECUTIONS_LOW: [(&str, u64); 13] = [
    ("leslie3d", 1),
    ("GemsFDTD", 2),
    ("milc", 1),
    ("libquantum", 1),
    ("bwaves", 2),
    ("sphinx3", 1),
    ("zeusmp", 4),
    ("soplex", 4),
    ("mcf", 1),
    ("cactusADM", 1),
    ("xalancbmk", 1),
    ("astar", 1),
    ("omnetpp", 1),
];

/// The number of [`BENCHMARKS`] in table 2.
pub const IN_TABLE_2: usize = 16;

/// Returns a benchmark by its name.
pub fn benchmark(name: &str) -> &'static Benchmark {
    BENCHMARKS.iter().find(|benchmark| benchmark.name == name).expect("the groups name benchmarks")
}

/// A group of programs that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// The name in the paper.
    pub name: &'static str,
    /// The ideal average bandwidth that the paper gives.
    pub ideal_average: f64,
    /// The number of programs.
    pub programs: usize,
    /// The legible members with their counts. Table 3 names those with the largest demand first.
    members: &'static [(&'static str, usize)],
}

/// Fillers for groups whose end is lost. Their demand is very small, as is that of all programs the table names last.
const FILLERS: [&str; 4] = ["gamess", "namd", "povray", "tonto"];

impl Group {
    /// Returns all members, filled up to the number of programs in the paper.
    pub fn members(&self) -> Vec<&'static Benchmark> {
        let named = self.members.iter().flat_map(|(name, count)| std::iter::repeat_n(*name, *count));
        named.chain(FILLERS.into_iter().cycle()).take(self.programs).map(benchmark).collect()
    }

    /// Returns the number of members that are not in our copy of the table.
    pub fn made_up(&self) -> usize {
        match self.name {
            WHOLLY_MADE_UP => self.programs,
            _ => self.programs - self.members.iter().map(|(_, count)| count).sum::<usize>(),
        }
    }

    /// Returns whether most members are in our copy of the table.
    pub fn is_legible(&self) -> bool {
        2 * self.made_up() < self.programs
    }
}

/// The group whose members are not legible at all.
const WHOLLY_MADE_UP: &str = "WL#10";

/// The ten groups of table 3. Only the average and the number of programs of the last one are legible.
#[rustfmt::skip]
pub const GROUPS: [Group; 10] = [
    Group { name: "WL#01", ideal_average: 104.0, programs: 28, members: &[("leslie3d", 2), ("bwaves", 2), ("sphinx3", 2), ("lbm", 2), ("soplex", 2), ("wrf", 2), ("dealII", 2), ("namd", 8), ("gamess", 4)] },
    Group { name: "WL#02", ideal_average: 97.0, programs: 16, members: &[("GemsFDTD", 2), ("soplex", 2), ("astar", 2), ("omnetpp", 4), ("hmmer", 2), ("gromacs", 2), ("namd", 2)] },
    Group { name: "WL#03", ideal_average: 122.0, programs: 30, members: &[("leslie3d", 2), ("GemsFDTD", 2), ("sphinx3", 4), ("mcf", 2), ("gcc", 6), ("astar", 2), ("omnetpp", 2), ("calculix", 2)] },
    Group { name: "WL#04", ideal_average: 115.0, programs: 26, members: &[("GemsFDTD", 4), ("milc", 2), ("mcf", 2), ("gcc", 4), ("bzip2", 2), ("hmmer", 2), ("perlbench", 2), ("h264ref", 4), ("gamess", 4)] },
    Group { name: "WL#05", ideal_average: 99.0, programs: 32, members: &[("leslie3d", 2), ("libquantum", 2), ("sphinx3", 2), ("lbm", 2), ("soplex", 2), ("wrf", 4), ("sjeng", 4), ("gobmk", 2), ("dealII", 2)] },
    Group { name: "WL#06", ideal_average: 131.0, programs: 18, members: &[("leslie3d", 2), ("GemsFDTD", 2), ("milc", 2), ("calculix", 4), ("sjeng", 2), ("dealII", 4), ("povray", 2)] },
    Group { name: "WL#07", ideal_average: 120.0, programs: 30, members: &[("leslie3d", 2), ("sphinx3", 4), ("lbm", 4), ("soplex", 2), ("mcf", 2), ("gcc", 2), ("omnetpp", 2), ("wrf", 2), ("gobmk", 2)] },
    Group { name: "WL#08", ideal_average: 142.0, programs: 28, members: &[("GemsFDTD", 4), ("milc", 2), ("libquantum", 2), ("cactusADM", 2), ("gcc", 2), ("astar", 4), ("sjeng", 4), ("hmmer", 2)] },
    Group { name: "WL#09", ideal_average: 97.0, programs: 29, members: &[("leslie3d", 1), ("GemsFDTD", 3), ("bwaves", 1), ("sphinx3", 1), ("soplex", 1), ("mcf", 1), ("omnetpp", 1), ("wrf", 3)] },
    // Composed of the other groups' programs, with the same average.
    Group { name: "WL#10", ideal_average: 130.0, programs: 27, members: &[("leslie3d", 2), ("GemsFDTD", 2), ("milc", 2), ("libquantum", 1), ("zeusmp", 1), ("soplex", 2), ("xalancbmk", 1), ("sjeng", 4), ("dealII", 4)] },
];

/// Returns whether most members of a group of table 3 are those of the paper.
pub fn is_legible(name: &str) -> bool {
    GROUPS.iter().any(|group| group.name == name && group.is_legible())
}

/// Returns the name of a group, marked if most of its members had to be made up.
pub fn marked(name: &str) -> String {
    if is_legible(name) { name.to_owned() } else { format!("{name}*") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandwidth::simulation::Ground;
    use gristmill_schedule::{ProgramWork, ideal_average_bandwidth};

    #[test]
    fn ideal_average_bandwidth_agrees_with_table_3_within_10_percent() {
        for group in &GROUPS {
            let works: Vec<ProgramWork> = group
                .members()
                .iter()
                .map(|one| ProgramWork { alone_us: ALONE_US, requests: one.bandwidth * ALONE_US, threads: 1 })
                .collect();
            assert_eq!(works.len(), group.programs);
            let found = ideal_average_bandwidth(&works, Ground::paper().processors);
            let off = found / group.ideal_average - 1.0;
            assert!(off.abs() < 0.1, "{}: {found:.1}, in the paper {}", group.name, group.ideal_average);
        }
    }

    #[test]
    fn the_groups_that_are_made_up_for_the_most_part_are_the_last_two() {
        let names: Vec<String> =
            GROUPS.iter().map(|group| marked(group.name)).filter(|name| name.ends_with('*')).collect();
        assert_eq!(names, ["WL#09*", "WL#10*"]);
        assert_eq!([0, 1, 9].map(|at| GROUPS[at].made_up()), [2, 0, 27]);
    }

    #[test]
    fn benchmarks_are_sorted_by_demand_and_those_of_table_2_end_with_wrf() {
        assert!(BENCHMARKS.windows(2).all(|pair| pair[0].bandwidth >= pair[1].bandwidth));
        assert_eq!(BENCHMARKS[IN_TABLE_2 - 1].name, "wrf");
    }
}
