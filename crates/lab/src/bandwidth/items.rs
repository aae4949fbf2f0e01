//! The paper: its figures and tables, and what it found.

use clap::Args;
use gristmill_cli::Failure;

use super::answers;
use super::experiments::{Experiments, RoundSize};
use crate::page::{Answer, Ask, Item, Paper};

/// Repeat the experiments about bandwidth-aware scheduling (Xu, Wu and Feng)
///
/// Programs with the demands of SPEC CPU2006 run on eight simulated processors: under Linux, and under the scheduler of
/// `gristmill batch`, which learns what memory bandwidth they need. A round has programs, random groups and training of
/// its own. Nothing of this machine is measured but for figure 5: the same seed gives the same numbers everywhere.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Bandwidth {
    #[command(flatten)]
    ask: Ask,

    /// Seed of the random numbers of the first round; each further one has the next
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  gristmill-lab bandwidth --quick
  gristmill-lab bandwidth --figure 8
  gristmill-lab bandwidth --seed 7 --output page";

impl Bandwidth {
    pub fn run(&self) -> Result<(), Failure> {
        let size = if self.ask.quick { RoundSize::QUICK } else { RoundSize::WHOLE };
        let seeds = (0..self.ask.rounds).map(|round| self.seed.wrapping_add(round.into())).collect();
        PAPER.answer(&self.ask, &mut Experiments::new(size, seeds))
    }
}

pub static PAPER: Paper<Experiments> = Paper {
    name: "bandwidth",
    title: "Bandwidth-aware scheduling (Xu, Wu and Feng), on a simulated machine",
    about: "Read was the text of the paper, in which the pictures and parts of the tables are lost. Nothing but figure 5 is \
            measured: synthetic programs with the mean demands of table 2, in requests per microsecond, and 10 s of work each run \
            on eight simulated processors, whose memory gives 120. Each round has programs, random groups and training of its own. \
            The gain of a method is Linux's mean time of a group divided by the method's, less one.\n\n\
            - offline: the bandwidth that a program used counts as its demand, and the total to aim at is corrected by a polynomial, \
            fitted before to the best totals of random groups (the training).\n\
            - across executions: the paper's method, after programs were learned under a medium load; a phase that was never seen \
            alone has its neighbour's estimates, which is ours.\n\
            - exact: the profile of each program alone is known.\n\
            - with our additions: across executions, and a program that would end last runs at once, the total follows the remaining \
            work, pairs that prove wrong are dropped, and without contention the order is Linux's.",
    items: &[
        Item {
            label: "figure 1",
            title: "the design of cross-execution optimisation",
            paper: "what was learned of phases in earlier executions is kept in a database, and predicts demands in later ones.",
            agrees_if: "",
            ask: |_| {
                Ok(Answer::drawing(
                    "`crates/schedule` decides and learns, `crates/history` is the database, `gristmill batch` runs the programs",
                ))
            },
        },
        Item {
            label: "figure 2",
            title: "the machine of the measurements",
            paper: "two Xeon E5410 with four cores each, of which every two share a last-level cache; its memory gives 120 requests per \
                    microsecond.",
            agrees_if: "",
            ask: |_| {
                Ok(Answer::drawing(
                    "the simulated machine has eight processors and the same peak; \
                                 `crates/lab/src/bandwidth/simulation` holds it",
                ))
            },
        },
        Item {
            label: "figure 3",
            title: "three states in which a program keeps its speed",
            paper: "programs keep nearly the speed they have alone if they demand less than 4 % of the peak themselves; if all together \
                    demand less than a third; or if at most one demands more than 4 %.",
            agrees_if: "in each state 95 % of the quanta have 95 % of the speed alone or more",
            ask: answers::figure_3,
        },
        Item {
            label: "figure 4",
            title: "requests to memory with a cache of its own, and beside random programs",
            paper: "beside others a program makes more requests, but about as many with any neighbours, so that a mean over executions \
                    will do.",
            agrees_if: "the requests of each program vary by less than a tenth between neighbours",
            ask: |_| {
                Ok(Answer::cannot_be_asked(
                    "caches are not simulated: a program makes 3 % more requests beside seven others, and each execution differs by \
                     3 %, by assumption. It needs a processor that counts requests to memory for each program",
                ))
            },
        },
        Item {
            label: "table 1",
            title: "the parameters",
            paper: "quanta of 100 ms, thresholds of 4 % and one third of the peak (section 3.1), trust from a coverage of 80 % (section 5.2).",
            agrees_if: "the scheduler of `gristmill batch` has the values of sections 3.1 and 5.2",
            ask: answers::table_1,
        },
        Item {
            label: "figure 5",
            title: "what the scheduler costs",
            paper: "eight instances of each program take 3.19 % longer on average: 0.98 % for samples, 2.21 % for counters, phases and \
                    choices, of which choices are less than 0.2 %. A choice takes O(NC).",
            agrees_if: "no part costs more than the paper's",
            ask: answers::figure_5,
        },
        Item {
            label: "table 2",
            title: "executions until a program is known, and the accuracy of its time alone",
            paper: "under a low load one to four executions do. Programs that ask for more need more, and so do higher loads (zeusmp \
                    37 under a high one); those that ask for less than wrf need one. The time alone is mostly known to 90 % and more (our \
                    reading of scattered digits: a median of about 95).",
            agrees_if: "all claims of the table hold",
            ask: answers::table_2,
        },
        Item {
            label: "figure 6",
            title: "the states from which valid measurements come, medium load",
            paper: "programs that compute are valid by their own low demand. The more a program asks for, the fewer of its quanta are \
                    valid, and those by the other two states.",
            agrees_if: "all claims of the table hold",
            ask: answers::figure_6,
        },
        Item {
            label: "table 3",
            title: "ten random groups of programs",
            paper: "16 to 32 programs with an ideal average bandwidth of 97 to 142 requests per microsecond.",
            agrees_if: "the ideal average bandwidth of each group whose members are legible is within a tenth of the paper's",
            ask: answers::table_3,
        },
        Item {
            label: "figure 7",
            title: "forty executions of each group",
            paper: "coverage and accuracy are stable and rise a little, because few new states of little contention are found. \
                    Sometimes coverage falls, because an execution has new phases. Throughput improves steadily, by up to 8.46 % for \
                    one group, and 5.50 % on average over the best execution of each. In execution 9 the gain of WL#02 falls from \
                    8.10 to 3.17 %: other choices made its requests 2.88 % more than the mean of the eight executions before, within \
                    which they had varied by 0.76 % at most. The gain settled after five more executions.",
            agrees_if: "coverage, accuracy and gain do not fall by more than 0.2 points, and the best executions gain within one point \
                        of the paper's, so that all claims of the table hold",
            ask: answers::figure_7,
        },
        Item {
            label: "figure 8",
            title: "offline training, learning across executions and exact profiles",
            paper: "mean gains over Linux of 2.89 %, 3.73 % and 7.42 %, and of 4.08 %, 5.50 % and 7.96 % in the best execution of each \
                    group. Offline training makes WL#10 slower. Learning gains more than it in six groups, and less in WL#02, WL#05, \
                    WL#07 and WL#08.",
            agrees_if: "each mean gain is within one point of the paper's, with and without the two groups that are made up for the \
                        most part, and their order is the same, as charged and with nothing charged, so that all claims of the \
                        table hold",
            ask: answers::figure_8,
        },
    ],
};
