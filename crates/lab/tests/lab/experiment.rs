//! `gristmill-lab experiment`: the report holds every comparison and agrees with the rows of the runs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::command::{PROGRAM, complaint, gristmill as lab};

/// Returns the values of an attribute; `before` is the text up to its opening quote.
fn attribute<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    text.split(before).skip(1).map(|rest| rest.split('\'').next().expect("quoted")).collect()
}

#[test]
fn the_report_holds_every_comparison_and_its_medians_are_those_of_the_rows() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = dir.path().join("report");
    let experiment = lab([
        "experiment",
        "--quick",
        "--rounds",
        "3",
        "--repeats",
        "0",
        "--apps",
        "word-count,matrix-multiply,tile-search",
        "--output",
    ])
    .arg(&output)
    .output()
    .expect("the command starts");
    let progress = String::from_utf8_lossy(&experiment.stderr);
    assert!(experiment.status.success(), "{progress}");
    assert!(progress.contains("gristmill: 1 of "), "{progress}");
    let report = fs::read_to_string(output.join("report.html")).expect("a report");
    let csv = fs::read_to_string(output.join("runs.csv")).expect("rows");

    // 1. Every comparison has its section, and nothing failed.
    for name in
        ["workers", "start-up", "plan", "isolation", "topology", "exchange", "buffer", "combiner", "pages", "output"]
    {
        assert!(report.contains(&format!("<section id='{name}'>")), "{name} is missing");
    }
    assert!(!report.contains("What failed"), "{report}");
    // 2. The page is self-contained.
    assert!(!report.contains("http") && !report.contains("src="), "the report refers to something outside");
    // 3. The medians of the rounds that count.
    let mut walls = BTreeMap::<String, Vec<f64>>::new();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        match fields.last() {
            Some(&"yes") => {}
            Some(&"no") => continue,
            _ => panic!("{line} does not say whether it counts"),
        }
        let trial = fields[..3].join("/");
        walls.entry(trial).or_default().push(fields[4].parse().expect("milliseconds"));
    }
    let shown = attribute(&report, "data-trial='");
    let medians = attribute(&report, "data-median='");
    assert_eq!(shown.len(), walls.len());
    for (trial, median) in shown.iter().zip(medians) {
        let walls = walls.get_mut(*trial).unwrap_or_else(|| panic!("no rows of {trial}"));
        walls.sort_by(f64::total_cmp);
        assert_eq!(walls.len(), 3, "{trial}");
        assert_eq!(median, format!("{:.3}", walls[1]), "{trial}");
    }
}

#[test]
fn applications_run_with_processes_and_with_threads() {
    let dir = tempfile::tempdir().expect("a directory");
    let applications = ["sort", "palindromes", "kmeans"];
    let mut experiment = lab(["experiment", "--quick", "--rounds", "1", "--repeats", "0"]);
    experiment.args(["--only", "isolation", "--apps"]);
    let experiment = experiment.arg(applications.join(",")).arg("--output").arg(dir.path()).output();
    let experiment = experiment.expect("the command starts");
    assert!(experiment.status.success(), "{}", String::from_utf8_lossy(&experiment.stderr));
    let csv = fs::read_to_string(dir.path().join("runs.csv")).expect("rows");
    for application in ["sort", "palindromes", "k-means"] {
        for isolation in ["processes", "threads"] {
            let row = format!("isolation,{application},{isolation},1,");
            assert!(csv.lines().any(|line| line.starts_with(&row)), "{row} is missing in {csv}");
        }
    }
    assert!(!fs::read_to_string(dir.path().join("report.html")).expect("a report").contains("What failed"));
}

/// Runs `gristmill-lab experiment` with these arguments. Returns its messages, the report and the rows.
fn experiment(arguments: &str, output: &Path) -> [String; 3] {
    let words = ["experiment", "--quick"].into_iter().chain(arguments.split(' '));
    let Output { status, stderr, .. } = lab(words).arg("--output").arg(output).output().expect("the command starts");
    let said = String::from_utf8(stderr).expect("text");
    assert!(status.success(), "{said}");
    let [report, rows] =
        ["report.html", "runs.csv"].map(|name| fs::read_to_string(output.join(name)).expect("written"));
    [said, report, rows]
}

/// Returns the texts between each `before` and the next `after`.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Vec<&'t str> {
    text.split(before).skip(1).map(|rest| rest.split(after).next().expect("a part")).collect()
}

/// Returns the text of HTML as its reader sees it.
fn unescaped(html: &str) -> String {
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&#39;", "'"), ("&quot;", "\""), ("&amp;", "&")];
    named.iter().fold(html.to_owned(), |text, (name, letter)| text.replace(name, letter))
}

/// The commands in a report once named files that had been removed; a comparison without a suitable application ended
/// in a lone full stop; the time of one worker was printed over the axis.
#[test]
fn a_report_has_a_conclusion_for_each_comparison_and_its_commands_run_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let compared = ["workers", "isolation", "output"];
    let arguments =
        format!("--rounds 1 --repeats 0 --only {} --apps word-count,kmeans,tile-search", compared.join(","));
    let [_, report, _] = experiment(&arguments, &dir.path().join("a report"));

    // 1. One sentence for each comparison, and one for the share of start-up.
    for name in compared.iter().chain(&["start-up"]) {
        let section = between(&report, &format!("<section id='{name}'>"), "</section>");
        let [section] = section[..] else { panic!("{} sections of {name}", section.len()) };
        let sentences = between(section, "<p class='result'>", "</p>");
        let [sentence] = sentences[..] else { panic!("{} conclusions of {name}", sentences.len()) };
        assert!(sentence.len() > 20 && sentence.ends_with('.'), "{name}: {sentence}");
        assert!(!sentence.contains(". ") && sentence.starts_with(char::is_uppercase), "{name}: {sentence}");
        let captions = between(section, "<figcaption>", "</figcaption>");
        assert_eq!(captions.len(), section.matches("<figure").count(), "{name}");
        assert!(captions.iter().all(|caption| caption.ends_with('.')), "{captions:?}");
    }
    assert!(report.contains("Nothing was compared: none of the chosen applications"), "{report}");

    // 2. No label overlaps another, whatever font the reader has.
    let charts = between(&report, "<svg ", "</svg>");
    assert_eq!(charts.len(), 3 + 3);
    for chart in charts {
        let labels: Vec<_> = between(chart, "<text ", "</text>").into_iter().map(bounds).collect();
        assert!(labels.len() >= 4, "{chart}");
        for (at, (text, [left, right, top, bottom])) in labels.iter().enumerate() {
            for (other, [other_left, other_right, other_top, other_bottom]) in &labels[at + 1..] {
                let apart = right <= other_left || other_right <= left || bottom <= other_top || other_bottom <= top;
                assert!(apart, "{text} and {other} overlap");
            }
        }
    }

    // 3. Every command runs, in the order of the page and from an empty directory.
    let empty = tempfile::tempdir().expect("a directory");
    let (lab, bin) = (Path::new(PROGRAM), tempfile::tempdir().expect("a directory"));
    // The applications of the lab are those of `gristmill`.
    let gristmill = bin.path().join("gristmill");
    let as_gristmill = fs::write(&gristmill, format!("#!/bin/sh\nexec {PROGRAM} application \"$@\"\n"));
    as_gristmill.and_then(|()| fs::set_permissions(&gristmill, fs::Permissions::from_mode(0o755))).expect("made");
    let lab = lab.parent().expect("a folder");
    let path = format!("{}:{}:{}", bin.path().display(), lab.display(), std::env::var("PATH").expect("a path"));
    let blocks: Vec<String> = between(&report, "<pre class='commands'>", "</pre>").into_iter().map(unescaped).collect();
    let lines: Vec<&str> = blocks.iter().flat_map(|block| block.lines()).collect();
    assert!(lines.iter().filter(|line| line.starts_with("gristmill-lab generate ")).count() == 2, "{lines:?}");
    assert!(lines.len() > 2 + 3 * 3 + 3 * 2 - 1, "{lines:?}");
    for line in lines {
        let mut again = Command::new("sh");
        again.args(["-c", line]).current_dir(empty.path()).env("PATH", &path).stdin(Stdio::null());
        let again = again.output().expect("a shell");
        assert!(again.status.success(), "{line}: {}", String::from_utf8_lossy(&again.stderr));
    }
}

/// Returns the text of a label in a chart, and its bounds: left, right, top, bottom.
fn bounds(label: &str) -> (&str, [f64; 4]) {
    let value = |name: &str| between(label, name, "'")[0];
    let (attributes, text) = label.split_once('>').expect("a text");
    // A wide font, in the larger of the two sizes.
    let (width, height) = (unescaped(text).chars().count() as f64 * 12.5 * 0.6, 12.5);
    let [x, y]: [f64; 2] = ["x='", "y='"].map(|name| value(name).parse().expect("a number"));
    let left = match attributes {
        _ if attributes.contains("'name'") => x - width,
        _ if attributes.contains("'tick'") => x - width / 2.0,
        _ => x,
    };
    (text, [left, left + width, y - height / 2.0, y + height / 2.0])
}

/// Programs that keep a processor busy until this is dropped.
struct Burners([Child; 2]);

impl Drop for Burners {
    fn drop(&mut self) {
        for burner in &mut self.0 {
            burner.kill().expect("it can be killed");
            burner.wait().expect("it has ended");
        }
    }
}

/// A build once ran during the measurement, and the report named a winner without mentioning it.
#[test]
fn load_is_mentioned_in_the_conclusion_and_disturbed_rounds_are_repeated() {
    let dir = tempfile::tempdir().expect("a directory");
    // All run on one processor, so the load of the others does not matter.
    let processor = gristmill_os::machine::cpus_allowed().expect("processors")[0];
    gristmill_os::machine::pin_to_cpu(processor).expect("this thread is pinned");
    let _burners = Burners([(); 2].map(|()| {
        Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().expect("a shell")
    }));
    let arguments = "--rounds 2 --repeats 1 --only isolation --apps word-count";
    let [said, report, rows] = experiment(arguments, dir.path());
    if report.contains("unknown: /proc/stat does not tell") {
        assert!(!report.contains("under load ("), "{report}");
        return;
    }
    // 1. A round was repeated, which is marked in the rows, and in vain, which a message reported.
    let marks: Vec<&str> = rows.lines().skip(1).map(|row| row.rsplit(',').next().expect("a mark")).collect();
    let count = |mark: &str| marks.iter().filter(|found| **found == mark).count();
    assert_eq!((marks.len(), count("yes"), count("no")), (6, 4, 2), "{rows}");
    assert!(said.contains("isolation, word count: measured under load, other programs used "), "{said}");
    // 2. The load shows in the conclusion, the chart, the table and at the top of the page.
    let conclusion = between(&report, "<p class='result'>", "</p>")[0];
    assert!(conclusion.starts_with("On a machine under load (other programs used "), "{conclusion}");
    let caption = between(&report, "<figcaption>", "</figcaption>")[0];
    assert!(caption.starts_with("On a machine under load (other programs used "), "{caption}");
    assert!(report.contains("<figure class='loaded'>") && report.contains(" % (load)</td>"), "{report}");
    assert!(report.contains("The machine was under load in 1 of 1 measurements: "), "{report}");
    assert!(report.contains("<dd>1 of 3, because of other programs</dd>"), "{report}");
}

#[test]
fn an_unknown_comparison_is_refused() {
    let refused = complaint(&mut lab(["experiment", "--only", "colours"]), 2);
    assert!(refused.contains("colours") && refused.contains("combiner"), "{refused}");
}

/// The folder of generated data, too, was open to all.
#[test]
fn data_for_an_experiment_lies_in_a_folder_of_its_owner() {
    let dir = tempfile::tempdir().expect("a directory");
    let words = ["experiment", "--quick", "--rounds", "1", "--repeats", "0", "--only", "isolation", "--apps", "sort"];
    fs::create_dir(dir.path().join("tmp")).expect("made");
    // Without a umask modes are those that it asks for.
    let mut experiment = Command::new("sh");
    experiment.args(["-c", "umask 0; exec \"$0\" \"$@\"", PROGRAM]).args(words).current_dir(dir.path());
    experiment.env("TMPDIR", dir.path().join("tmp")).stdin(Stdio::null());
    let mut child = experiment.args(["--output", "report"]).stderr(Stdio::null()).spawn().expect("it starts");
    let mut modes = Vec::new();
    let status = loop {
        let entries = fs::read_dir(dir.path().join("tmp")).expect("a folder").flatten();
        // It may be gone meanwhile.
        let folders = entries.filter_map(|entry| entry.metadata().ok()).filter(|facts| facts.is_dir());
        modes.extend(folders.map(|facts| format!("{:o}", facts.permissions().mode() & 0o7777)));
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status;
        }
        thread::sleep(Duration::from_millis(2));
    };
    assert!(status.success() && !modes.is_empty() && modes.iter().all(|mode| mode == "700"), "{status} {modes:?}");
}
