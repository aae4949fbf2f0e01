//! The programs in `examples/` give the answers of a few sequential lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn program(example: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("a path");
    tests.parent().and_then(Path::parent).expect("a folder of tests").join("examples").join(example)
}

fn output(folder: &Path, example: &str, arguments: &[&str]) -> Output {
    let program = program(example);
    let output = Command::new(&program).args(arguments).current_dir(folder).output();
    output.unwrap_or_else(|error| panic!("{}: {error}; build it: cargo build --examples", program.display()))
}

/// Runs an example that fails in `folder`, and returns its status and its errors.
fn fails(folder: &Path, example: &str, arguments: &[&str]) -> (i32, String) {
    let output = output(folder, example, arguments);
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs an example in `folder`, and returns what it prints.
fn run(folder: &Path, example: &str, arguments: &[&str]) -> String {
    let output = output(folder, example, arguments);
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Numbers that look random.
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1u64), |n| {
        Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    })
    .map(|n| n >> 33)
}

#[test]
fn the_inverted_index_names_each_file_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut expected = BTreeMap::<String, BTreeSet<&str>>::new();
    let mut random = numbers();
    for file in ["a.txt", "b.txt", "c.txt"] {
        let words: Vec<String> = random.by_ref().take(5_000).map(|n| format!("w{}", n % 2_000)).collect();
        fs::write(dir.path().join(file), words.join(" ")).expect("written");
        words.into_iter().for_each(|word| expected.entry(word).or_default().extend([file]));
    }
    let lines = expected.into_iter().map(|(word, files)| format!("{word}\t{}\n", Vec::from_iter(files).join(" ")));
    assert!(run(dir.path(), "inverted_index", &["a.txt", "b.txt", "c.txt"]) == lines.collect::<String>());
}

#[test]
fn sketches_tell_about_how_many_users_each_page_has_had() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut users = BTreeMap::<String, BTreeSet<u64>>::new();
    let mut text = String::new();
    for (line, n) in numbers().take(200_000).enumerate() {
        // Ten users, a hundred, and so on.
        let page = line % 7;
        let user = n % 10_u64.pow(page as u32 % 5 + 1);
        writeln!(text, "/page{page} user-{user}").expect("written");
        users.entry(format!("/page{page}")).or_default().insert(user);
    }
    fs::write(dir.path().join("log"), text).expect("written");
    let printed = run(dir.path(), "distinct_users", &["log"]);
    assert_eq!(printed.lines().count(), users.len());
    for (line, (page, users)) in printed.lines().zip(users) {
        let (name, estimate) = line.split_once('\t').expect("two columns");
        let error = estimate.parse::<f64>().expect("a number") / users.len() as f64 - 1.0;
        assert!(name == page && error.abs() < 0.1, "{line}: {} users", users.len());
    }
}

#[test]
fn sessions_end_after_half_an_hour() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut visits: Vec<(String, u64)> =
        numbers().take(20_000).map(|n| (format!("user{}", n % 100), n / 100 % 1_000_000)).collect();
    let text = visits.iter().map(|(user, time)| format!("{user} {time}\n")).collect::<String>();
    fs::write(dir.path().join("visits"), text).expect("written");
    visits.sort();
    let mut expected = String::new();
    for session in visits.chunk_by(|a, b| a.0 == b.0 && b.1 - a.1 < 1800) {
        let ((user, begin), (_, end)) = (&session[0], &session[session.len() - 1]);
        writeln!(expected, "{user}\t{begin}\t{end}\t{}", session.len()).expect("written");
    }
    assert!(run(dir.path(), "sessions", &["visits"]) == expected);
}

#[test]
fn each_group_has_its_largest_numbers() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut groups = BTreeMap::<String, Vec<f64>>::new();
    let mut text = String::new();
    for n in numbers().take(20_000) {
        let (group, number) = (format!("group{}", n % 37), (n % 100_000) as f64 / 8.0 - 5_000.0);
        writeln!(text, "{group} {number}").expect("written");
        groups.entry(group).or_default().push(number);
    }
    fs::write(dir.path().join("numbers"), text).expect("written");
    for k in [1, 7, 10_000] {
        let mut expected = String::new();
        for (group, numbers) in &mut groups {
            numbers.sort_by(|a, b| b.total_cmp(a));
            numbers.iter().take(k).for_each(|number| writeln!(expected, "{group}\t{number}").expect("written"));
        }
        assert!(run(dir.path(), "top_per_group", &[&k.to_string(), "numbers"]) == expected, "{k}");
    }
}

#[test]
fn a_join_has_each_order_with_each_of_its_customers() {
    let dir = tempfile::tempdir().expect("a folder");
    let rows = |count, kind: &str| -> Vec<(u64, String)> {
        numbers().skip(kind.len()).take(count).map(|n| (n % 500, format!("{kind}{}", n % 90))).collect()
    };
    let (customers, orders) = (rows(300, "Ann"), rows(3_000, "tea no. "));
    for (file, rows) in [("customers", &customers), ("orders", &orders)] {
        let text = rows.iter().map(|(number, text)| format!("{number} {text}\n")).collect::<String>();
        fs::write(dir.path().join(file), text).expect("written");
    }
    let mut expected = Vec::new();
    for (number, what) in &orders {
        let of = customers.iter().filter(|(customer, _)| customer == number);
        expected.extend(of.map(|(_, name)| (*number, name.clone(), what.clone())));
    }
    expected.sort();
    let lines = expected.iter().map(|(number, name, what)| format!("{number}\t{name}\t{what}\n"));
    assert!(run(dir.path(), "join", &["customers", "orders"]) == lines.collect::<String>());
}

#[test]
fn requests_are_counted_by_hour_and_outcome() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut text, mut counts) = (String::new(), BTreeMap::<(u64, u64, u64), u64>::new());
    for n in numbers().take(20_000) {
        let (seconds, status) = (1_763_900_000 + n % 90_000, 200 + n / 90_000 % 300);
        writeln!(text, "{seconds} {status}").expect("written");
        let outcome = if status < 400 { (status / 100 - 2, 0) } else { (2, status) };
        *counts.entry((seconds / 3600, outcome.0, outcome.1)).or_default() += 1;
    }
    fs::write(dir.path().join("log"), text).expect("written");
    let lines = counts.iter().map(|((hour, outcome, status), count)| {
        let outcome =
            ["Answered".to_owned(), "Redirected".to_owned(), format!("Failed({status})")][*outcome as usize].clone();
        format!("{hour}\t{outcome}\t{count}\n")
    });
    assert!(run(dir.path(), "custom_keys", &["log"]) == lines.collect::<String>());
}

#[test]
fn factors_of_numbers_from_memory_are_counted() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut counts = BTreeMap::<u64, u64>::new();
    for number in 1..=5_000u64 {
        let mut left = number;
        for divisor in 2..=number {
            while left.is_multiple_of(divisor) {
                left /= divisor;
                *counts.entry(divisor).or_default() += 3;
            }
        }
    }
    let lines = counts.iter().map(|(prime, count)| format!("{prime}\t{count}\n"));
    assert!(run(dir.path(), "from_memory", &["5000"]) == lines.collect::<String>());
}

#[test]
fn sums_are_written_to_a_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut text, mut sums) = (String::new(), BTreeMap::<String, i64>::new());
    for n in numbers().take(20_000) {
        let (account, cents) = (format!("account{}", n % 700), (n / 700 % 100_000) as i64 - 50_000);
        writeln!(text, "{account} {cents}").expect("written");
        *sums.entry(account).or_default() += cents;
    }
    fs::write(dir.path().join("amounts"), text).expect("written");
    assert_eq!(run(dir.path(), "sinks", &["sums", "amounts"]), "700 accounts\n");
    let files = fs::read_dir(dir.path().join("sums")).expect("a folder").map(|file| file.expect("a file").path());
    let text: String = files.map(|file| fs::read_to_string(file).expect("read")).collect();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<String> = sums.iter().map(|(account, cents)| format!("{account},{cents}")).collect();
    expected.sort_unstable();
    assert!(lines == expected);
}

#[test]
fn wrong_lines_are_named_or_set_aside() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("good"), "1\n2\n-5\n").expect("written");
    fs::write(dir.path().join("bad"), "10\nten\n3000000000\n20\n").expect("written");
    assert_eq!(run(dir.path(), "failing", &["0", "good"]), "-2\n");
    let said = "bad:2: invalid digit found in string\nbad:3: more than a billion\n";
    assert_eq!(run(dir.path(), "failing", &["9", "good", "bad"]), format!("28\n{said}"));
    fs::write(dir.path().join("large"), "1\n3000000000\n").expect("written");
    let (code, errors) = fails(dir.path(), "failing", &["0", "large"]);
    assert_eq!((code, errors.as_str()), (1, "large:2: more than a billion; give amounts in thousands\n"));
}

#[test]
fn a_job_is_stopped_by_a_file_or_by_time() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("text"), "one two two").expect("written");
    assert_eq!(run(dir.path(), "cancelling", &["60", "text"]), "2 different words\n");
    // A pipe into which nobody writes.
    let pipe = dir.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).expect("made");
    let _writer = fs::File::options().read(true).write(true).open(&pipe).expect("opened");
    let said = run(dir.path(), "cancelling", &["0.2", "pipe"]);
    assert!(said.contains("did not end within its deadline of 200ms"), "{said}");
    fs::write(dir.path().join("stop"), "").expect("written");
    let text = "word ".repeat(4 << 20);
    fs::write(dir.path().join("long"), text).expect("written");
    assert_eq!(run(dir.path(), "cancelling", &["60", "long", "long", "long", "long"]), "stopped\n");
}

#[test]
fn each_line_is_a_job() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut program = Command::new(program("many_jobs"));
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let child = program.current_dir(dir.path()).stdin(reader).stdout(std::process::Stdio::piped()).spawn();
    drop(program);
    std::io::Write::write_all(&mut writer, b"a b a\n\nc\n").expect("written");
    drop(writer);
    let output = child.expect("it starts").wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n0\n1\n");
}

/// Writes three files of words, one in each line, and returns them.
fn files(folder: &Path) -> Vec<(&'static str, Vec<String>)> {
    let mut random = numbers();
    let mut file = |name, words| {
        let words: Vec<String> = random.by_ref().take(words).map(|n| format!("w{}", n % 9_000)).collect();
        fs::write(folder.join(name), words.join("\n")).expect("written");
        (name, words)
    };
    vec![file("a", 20_000), file("b", 3_000), file("c", 0)]
}

#[test]
fn words_are_counted_from_asynchronous_code() {
    let dir = tempfile::tempdir().expect("a folder");
    let expected = files(dir.path())
        .into_iter()
        .map(|(name, words)| format!("{name}\t{}\t{}\n", words.len(), words.iter().collect::<BTreeSet<_>>().len()));
    assert_eq!(run(dir.path(), "from_tokio", &["a", "b", "c"]), expected.collect::<String>());
}

#[test]
fn pairs_of_files_are_compared_from_threads() {
    let dir = tempfile::tempdir().expect("a folder");
    let files: Vec<(&str, BTreeSet<String>)> =
        files(dir.path()).into_iter().map(|(name, words)| (name, words.into_iter().collect())).collect();
    let mut expected = String::new();
    for (at, (b, words)) in files.iter().enumerate() {
        for (a, others) in &files[..at] {
            writeln!(expected, "{a}\t{b}\t{}", words.intersection(others).count()).expect("written");
        }
    }
    assert_eq!(run(dir.path(), "from_rayon", &["a", "b", "c"]), expected);
}

#[test]
fn pagerank_is_that_of_a_sequential_loop() {
    let dir = tempfile::tempdir().expect("a folder");
    const PAGES: usize = 2_000;
    // Pages with low numbers have more links to them; one in ten has none of its own.
    let page = |n: u64| (n % PAGES as u64).min(n / PAGES as u64 % PAGES as u64) as u32;
    let mut random = numbers();
    let mut draw = || page(random.next().expect("no end"));
    let links: Vec<(u32, u32)> = (0..20_000).map(|_| (draw(), draw())).filter(|(from, _)| from % 10 != 3).collect();
    let bytes: Vec<u8> = links.iter().flat_map(|(from, to)| [from.to_le_bytes(), to.to_le_bytes()].concat()).collect();
    fs::write(dir.path().join("links"), bytes).expect("written");
    let pages = links.iter().map(|(from, to)| from.max(to) + 1).max().expect("links") as usize;
    let mut degrees = vec![0.0; pages];
    links.iter().for_each(|(from, _)| degrees[*from as usize] += 1.0);
    let mut ranks = vec![1.0 / pages as f64; pages];
    for _ in 0..10 {
        let mut next = vec![0.0; pages];
        links
            .iter()
            .for_each(|(from, to)| next[*to as usize] += 0.85 * ranks[*from as usize] / degrees[*from as usize]);
        let lost = 1.0 - next.iter().sum::<f64>();
        ranks = next.into_iter().map(|rank| rank + lost / pages as f64).collect();
    }
    let mut expected: Vec<(usize, f64)> = ranks.into_iter().enumerate().collect();
    expected.sort_by(|a, b| b.1.total_cmp(&a.1));
    let text = run(dir.path(), "pagerank", &["10", "links"]);
    let found = text.lines().map(|line| line.split_once('\t').expect("two fields"));
    for ((page, rank), (expected, of)) in found.zip(&expected[..10]) {
        assert_eq!(page.parse(), Ok(*expected));
        assert!((rank.parse::<f64>().expect("a number") - of).abs() < 1e-8, "{page} {rank} {of}");
    }
    assert_eq!(text.lines().count(), 10);
}
