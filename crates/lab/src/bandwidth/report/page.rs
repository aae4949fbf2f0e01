//! The report as a self-contained page.

use gristmill_report::plane::{self, Axis, Dot, Line, plane};
use gristmill_report::text::escape;
use gristmill_schedule::Little;

use super::charts::{ranges, shares};
use super::rows::name;
use super::table::{IN_THE_PAPER, claims, cost, executions, interval, percents, phases, spread};
use crate::bandwidth::comparison::{Comparison, METHODS, Method};
use crate::bandwidth::interval::Interval;
use crate::bandwidth::paper::{BENCHMARKS, GROUPS, IN_TABLE_2, OVERHEAD};
use crate::bandwidth::repetition::Repetition;

/// The classes of the methods, in the order of [`METHODS`].
const CLASSES: [&str; 4] = ["offline", "across", "exact", "beyond"];
/// The states with their names and classes.
const STATES: [(Option<Little>, &str, &str); 4] = [
    (Some(Little::OwnDemand), "own demand low", "beyond"),
    (Some(Little::System), "system low", "across"),
    (Some(Little::OnlyOne), "only one asks for much", "exact"),
    (None, "none of them", "offline"),
];

const STYLE: &str = "
.offline { fill: var(--other); } .across { fill: var(--first); } .exact { fill: var(--ideal); } .beyond { fill: #5b7fc7; }
svg .line.offline { stroke: var(--other); } svg .line.across { stroke: var(--first); } svg .line.exact { stroke: var(--ideal); }
svg .line.beyond { stroke: #5b7fc7; }
svg.key { display: inline-block; width: .8em; height: .8em; margin: 0 .35em 0 .9em; }
td.no { color: var(--ideal); font-weight: 600; }
";

/// Renders the whole page; `command` reproduces it.
pub fn html(repetition: &Repetition, command: &str) -> String {
    let body = [
        introduction(repetition, command),
        contention(repetition),
        learning(repetition),
        gains(repetition),
        by_execution(repetition),
        unseen(repetition),
        oracle(repetition),
        format!("<section><h2>What a decision costs</h2><p class='result'>{}</p></section>", escape(&cost(repetition))),
        assumed(),
    ];
    gristmill_report::document(
        "Gristmill: bandwidth-aware scheduling, simulated",
        &[plane::STYLE, STYLE],
        &body.concat(),
    )
}

fn introduction(repetition: &Repetition, command: &str) -> String {
    let rows: String = claims(repetition)
        .into_iter()
        .map(|(claim, holds)| {
            let verdict = if holds { "<td class='first'>yes</td>" } else { "<td class='no'>no</td>" };
            format!("<tr>{verdict}<td>{}</td></tr>", escape(&claim))
        })
        .collect();
    let plan = &repetition.plan;
    format!(
        "<h1>Bandwidth-aware scheduling, simulated</h1>\
         <p>Programs that run at the same time share the memory, and slow each other down when they ask for much together. The \
         scheduler chooses every 100 ms which of them run, so that their demand stays even. It learns the demands from earlier \
         executions. This page repeats the experiments of a paper by Xu, Wu and Feng on a simulated machine of eight processors; nothing of a real machine \
         was measured.</p>\
         <dl><dt>Command</dt><dd>{}</dd><dt>Executions of each group</dt><dd>{}</dd>\
         <dt>Overhead charged</dt><dd>{:.2} % of the time, to every method but Linux</dd><dt>Gristmill</dt><dd>{}</dd></dl>\
         <h2>Does it have the paper's shape?</h2><table>{rows}</table>",
        escape(command),
        plan.rounds,
        OVERHEAD * 100.0,
        env!("CARGO_PKG_VERSION"),
    )
}

/// Renders a coloured square and a name for each entry.
fn legend(entries: &[(&str, &str)]) -> String {
    let entry = |(name, class): &(&str, &str)| {
        format!("<svg class='key' viewBox='0 0 8 8'><rect class='{class}' width='8' height='8'/></svg>{}", escape(name))
    };
    format!("<p class='soft'>{}</p>", entries.iter().map(entry).collect::<String>())
}

fn methods_legend() -> String {
    let entries: Vec<(&str, &str)> = METHODS.into_iter().map(name).zip(CLASSES).collect();
    legend(&entries)
}

fn states_legend() -> String {
    legend(&STATES.map(|(_, name, class)| (name, class)))
}

/// Renders figure 3.
fn contention(repetition: &Repetition) -> String {
    let class = |state| STATES.iter().find(|(one, _, _)| *one == state).map_or("offline", |(_, _, class)| *class);
    let speed = || Axis { from: 0.5, to: 1.0, name: "speed" };
    let points = || repetition.figure_3.iter();
    let by_own: Vec<Dot> =
        points().map(|point| Dot { x: point.own, y: point.speed, class: class(point.state) }).collect();
    let by_system: Vec<Dot> =
        points().map(|point| Dot { x: point.system, y: point.speed, class: class(point.state) }).collect();
    let own = plane(&Axis { from: 0.0, to: 0.6, name: "own bandwidth, share of the peak" }, &speed(), &by_own, &[]);
    let system =
        plane(&Axis { from: 0.0, to: 1.0, name: "bandwidth of all, share of the peak" }, &speed(), &by_system, &[]);
    format!(
        "<section id='contention'><h2>How much programs slow each other down</h2>\
         <p>One dot is a program in a quantum, with random programs on four processors: the share of its speed alone that it kept. \
         The simulated memory is calibrated to the paper's figure 3: in the three states of little contention programs keep at \
         least 95 %, others go down to about 60 %.</p>{}\
         <div class='charts'><figure>{own}</figure><figure>{system}</figure></div></section>",
        states_legend()
    )
}

/// Renders table 2 and figure 6.
fn learning(repetition: &Repetition) -> String {
    let heads: String = repetition
        .table_2
        .iter()
        .map(|(load, count, _)| format!("<th class='number'>{load}: {count} of 8 processors</th>"))
        .collect();
    let rows: String = (0..IN_TABLE_2)
        .map(|place| {
            let benchmark = &BENCHMARKS[place];
            let mark = if benchmark.legible { "" } else { " *" };
            let cells: String = repetition
                .table_2
                .iter()
                .map(|(_, _, rows)| format!("<td class='number'>{}</td>", escape(&executions(&rows[place]))))
                .collect();
            format!(
                "<tr><td>{}{mark}</td><td class='number'>{:.1}</td><td class='number'>{}</td><td class='number'>{}</td>{cells}</tr>",
                benchmark.name,
                benchmark.bandwidth,
                benchmark.phases,
                phases(repetition, place)
            )
        })
        .collect();
    let states: Vec<(&str, Vec<f64>)> = repetition.table_2.get(1).map_or(Vec::new(), |(_, _, programs)| {
        let shares = |states: &std::collections::BTreeMap<Option<Little>, u64>| {
            STATES.map(|(state, _, _)| states.get(&state).copied().unwrap_or(0) as f64).to_vec()
        };
        programs.iter().map(|program| (program.name, shares(&program.states))).collect()
    });
    format!(
        "<section id='learning'><h2>How long it takes to learn</h2>\
         <p>Executions until 80 % of a program's quanta belong to a phase that was seen without contention, and how exact its time \
         alone was known then (the paper's table 2). Random programs run at the same time.</p>\
         <div class='scroll'><table><tr><th>Program</th><th class='number'>Demand</th><th class='number'>Phases in the paper</th>\
         <th class='number'>found</th>{heads}</tr>{rows}</table></div>\
         <p class='soft'>Demand: requests of 64 bytes per microsecond, of 120 that the memory gives. *: assumed, the paper's row is \
         illegible. &gt;: not covered after so many executions.</p>\
         <p>Where valid measurements come from under the medium load (figure 6):</p>{}<div class='charts'><figure>{}</figure></div>\
         </section>",
        states_legend(),
        shares(&states, &STATES.map(|(_, _, class)| class))
    )
}

/// Renders the gains of groups in all executions, followed by their mean.
fn group_ranges(groups: &[Comparison]) -> String {
    let percent = |interval: Interval| {
        let Interval { least, low, mean, high, greatest } = interval;
        let [least, low, mean, high, greatest] = [least, low, mean, high, greatest].map(|gain| gain * 100.0);
        Interval { least, low, mean, high, greatest }
    };
    let of_group = |group: &Comparison| METHODS.map(|method| percent(Interval::of(&group.gains(method)))).to_vec();
    let mut rows: Vec<(String, Vec<Interval>)> =
        groups.iter().map(|group| (group.name.clone(), of_group(group))).collect();
    rows.push(("mean".into(), METHODS.map(|method| percent(Repetition::gain(groups, method))).to_vec()));
    ranges(&rows, &CLASSES)
}

fn group_table(groups: &[Comparison], with_paper: bool) -> String {
    let heads: String = METHODS.map(|method| format!("<th class='number'>{}</th>", name(method))).concat();
    let rows: String = groups
        .iter()
        .map(|group| {
            let cells = METHODS
                .map(|method| format!("<td class='number'>{}</td>", spread(&Interval::of(&group.gains(method)))))
                .concat();
            format!(
                "<tr><td>{}</td><td class='number'>{}</td><td class='number'>{:.0}</td>{cells}</tr>",
                escape(&group.name),
                group.programs,
                group.ideal_average
            )
        })
        .collect();
    let means = METHODS
        .map(|method| format!("<td class='number'>{}</td>", interval(&Repetition::gain(groups, method))))
        .concat();
    let paper = match with_paper {
        true => {
            let cells = IN_THE_PAPER.map(|gain| {
                format!("<td class='number'>{}</td>", gain.map_or(String::new(), |gain| format!("{gain:.2}")))
            });
            format!("<tr><th>mean in the paper</th><td></td><td></td>{}</tr>", cells.concat())
        }
        false => String::new(),
    };
    format!(
        "<div class='scroll'><table><tr><th>Group</th><th class='number'>Programs</th><th class='number'>IABW</th>{heads}</tr>{rows}\
         <tr><th>mean, 95 % interval over groups</th><td></td><td></td>{means}</tr>{paper}</table></div>"
    )
}

/// Renders figure 8.
fn gains(repetition: &Repetition) -> String {
    format!(
        "<section id='gains'><h2>How much faster groups become</h2>\
         <p>The gain over the mean of Linux in the time until the last program has ended, in percent: the mean, and a line from the \
         least to the greatest of {} executions (the paper's figure 8). IABW is the ideal average bandwidth, in requests per \
         microsecond. <i>Offline</i> takes used bandwidths and a target corrected by a polynomial; <i>across executions</i> is the \
         paper's method; <i>exact</i> knows every profile; <i>with additions</i> is across executions with what goes beyond the paper.</p>\
         {}<div class='charts'><figure>{}</figure></div>{}</section>",
        repetition.plan.rounds,
        methods_legend(),
        group_ranges(&repetition.groups),
        group_table(&repetition.groups, true)
    )
}

/// Renders figure 7.
fn by_execution(repetition: &Repetition) -> String {
    let figures: String = repetition
        .groups
        .iter()
        .map(|group| {
            let shown = [(Method::Across, "across"), (Method::Beyond, "beyond")];
            let gains = shown.map(|(method, class)| (percents(group, method), class));
            let all = || gains.iter().flat_map(|(gains, _)| gains.iter().copied());
            let y = Axis {
                from: all().fold(0.0, f64::min).floor(),
                to: all().fold(1.0, f64::max).ceil(),
                name: "gain over Linux, percent",
            };
            let x = Axis { from: 1.0, to: group.linux.len().max(2) as f64, name: "execution" };
            let lines = gains.map(|(gains, class)| Line {
                points: gains.into_iter().enumerate().map(|(at, gain)| (at as f64 + 1.0, gain)).collect(),
                class,
            });
            let last = group.methods.get(&Method::Across).and_then(|executions| executions.last());
            let caption = last.map_or(String::new(), |last| {
                format!(
                    "In the end {:.1} % of the quanta are covered, and times alone are {:.1} % exact.",
                    last.coverage * 100.0,
                    last.accuracy * 100.0
                )
            });
            format!(
                "<figure><h3>{}</h3>{}<figcaption>{caption}</figcaption></figure>",
                escape(&group.name),
                plane(&x, &y, &[], &lines)
            )
        })
        .collect();
    format!(
        "<section id='executions'><h2>Execution by execution</h2>\
         <p>The gain of each execution after programs were covered under the medium load; knowledge goes on growing (figure 7).</p>{}\
         <div class='charts'>{figures}</div></section>",
        legend(&[(name(Method::Across), "across"), (name(Method::Beyond), "beyond")])
    )
}

fn unseen(repetition: &Repetition) -> String {
    format!(
        "<section id='unseen'><h2>Groups that nothing was tuned on</h2>\
         <p>Random groups of the same programs, two to four for each processor. They were drawn from a seed of their own after the last \
         change to the policy.</p>{}<div class='charts'><figure>{}</figure></div>{}</section>",
        methods_legend(),
        group_ranges(&repetition.unseen),
        group_table(&repetition.unseen, false)
    )
}

fn oracle(repetition: &Repetition) -> String {
    let rows: String = repetition
        .small
        .iter()
        .map(|small| {
            let demands = small.demands.iter().map(|demand| format!("{demand:.0}")).collect::<Vec<_>>().join(", ");
            let cells = [small.linux_us, small.exact_us, small.least_us]
                .map(|time_us| format!("<td class='number'>{:.2} s</td>", time_us / 1e6))
                .concat();
            let possible = (small.linux_us / small.least_us - 1.0) * 100.0;
            format!("<tr><td>{demands}</td>{cells}<td class='number'>{possible:.1} %</td></tr>")
        })
        .collect();
    format!(
        "<section id='oracle'><h2>What is possible</h2>\
         <p>Small groups of programs with constant demands, five seconds each, on two processors whose memory gives 60 requests per \
         microsecond, without overhead. The oracle tries all divisions of the time among sets of programs: no order is faster.</p>\
         <div class='scroll'><table><tr><th>Demands</th><th class='number'>Linux</th><th class='number'>exact</th>\
         <th class='number'>oracle</th><th class='number'>possible gain</th></tr>{rows}</table></div></section>"
    )
}

/// Lists the assumptions that are not the paper's.
fn assumed() -> String {
    let programs: Vec<&str> = BENCHMARKS.iter().filter(|one| !one.legible).map(|one| one.name).collect();
    let groups: Vec<String> = GROUPS
        .iter()
        .filter(|group| group.filled() > 0)
        .map(|group| format!("{} ({} of {})", group.name, group.filled(), group.programs))
        .collect();
    format!(
        "<section id='assumed'><h2>What is assumed</h2><ul>\
         <li>Programs are made up from a seed: only their mean demand and their number of phases are those of SPEC CPU2006.</li>\
         <li>Parts of the paper's tables are illegible in our copy. Demand or phases of these programs are assumed: {}.</li>\
         <li>Members of groups whose list is cut off are filled up with programs that ask for hardly anything: {}. WL#10 is made up, to \
         the ideal average bandwidth that the paper gives.</li>\
         <li>The loads low, medium and high are two, four and eight programs at the same time; the paper's numbers are illegible.</li>\
         <li>Linux is a round robin on each processor with balanced queues, 100 ms long.</li></ul></section>",
        escape(&programs.join(", ")),
        escape(&groups.join(", "))
    )
}
