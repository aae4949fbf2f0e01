//! The answers to the figures and tables of the paper.
//!
//! ```text
//!  contention  figure 3 and table 1: the three states of little contention
//!  overhead    figure 5: what the scheduler costs
//!  learning    table 2 and figure 6: how soon programs are known, and from which states
//!  groups      table 3: the groups and their ideal average bandwidth
//!  executions  figure 7: forty executions of each group
//!  methods     figure 8: the methods side by side
//! ```

mod contention;
mod overhead;
mod learning;
mod groups;
mod executions;
mod methods;

pub use contention::{figure_3, table_1};
pub use executions::figure_7;
pub use groups::table_3;
pub use learning::{figure_6, table_2};
pub use methods::figure_8;
pub use overhead::figure_5;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::bandwidth::comparison::Executions;
    use crate::bandwidth::experiments::{Experiments, RoundSize};
    use crate::page::Judgement;

    /// The gains on the page follow from the rows beside it.
    #[test]
    fn figures_7_and_8_agree_with_their_rows_and_each_claim_is_judged() {
        let executions = Executions { learning: 2, other: 1 };
        let size = RoundSize { executions, executions_max: 3, training: (0, 0), groups: (2, 1), scale: (40, 8) };
        let mut experiments = Experiments::new(size, vec![3]);
        let [seven, eight] = [figure_7, figure_8].map(|ask| ask(&mut experiments).expect("an answer"));
        assert_eq!(seven.verdict, Judgement::Undecided("1 of 3 rounds".into()));
        let rows = seven.files.iter().find(|(name, _)| name == "figure-7.csv").map(|(_, rows)| rows).expect("rows");
        let mut makespans: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
        for row in rows.lines().skip(1) {
            // No method's name has a comma but one, which stands in quotes.
            let row = row.strip_prefix("1,").expect("the first round");
            let (before, rest) = row.split_once(",\"").expect("a method");
            let (method, after) = rest.split_once("\",").expect("its end");
            let group = before.rsplit(',').next().expect("a group");
            let makespan = after.split(',').nth(1).and_then(|text| text.parse().ok()).expect("a time");
            makespans.entry((group, method)).or_default().push(makespan);
        }
        assert_eq!(makespans.len(), 3 * 6, "{:?}", makespans.keys());
        let average = |group: &str, method: &str| {
            let all = &makespans[&(group, method)];
            all.iter().sum::<f64>() / all.len() as f64
        };
        for group in ["WL#01", "WL#02"] {
            let row = eight.found.lines().find(|line| line.starts_with(&format!("| {group}"))).expect("a row");
            for (method, cell) in [("offline", 4), ("exact", 6), ("exact, fills the peak", 7)] {
                let gain = (average(group, "Linux") / average(group, method) - 1.0) * 100.0;
                let printed = row.split('|').nth(cell).and_then(|cell| cell.split_whitespace().next()).expect("a cell");
                let printed: f64 = printed.parse().expect("a number");
                assert!((printed - gain).abs() < 0.051, "{group}, {method}: {gain} in {row}");
            }
        }
        let [two, six] = [table_2, figure_6].map(|ask| ask(&mut experiments).expect("an answer"));
        assert!(six.found.contains("| gamess | 100 % | 0 % | 0 % | 0 % |"), "{}", six.found);
        assert!(
            two.found.contains("| leslie3d | 52.1 | 30, ") && two.found.contains("| lbm* | 26.2 | 4, "),
            "{}",
            two.found
        );
        for (answer, claims) in [(&seven, 6), (&eight, 11), (&two, 7), (&six, 3)] {
            let judged = answer.found.lines().filter(|line| line.ends_with("hold |") || line.ends_with("holds |"));
            assert_eq!(judged.count(), claims, "{}", answer.found);
            assert!(!answer.found.contains("NaN") && !answer.found.contains("inf"), "{}", answer.found);
        }
    }
}
