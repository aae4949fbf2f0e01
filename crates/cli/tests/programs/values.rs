//! `gristmill batch -- COMMAND ::: VALUES`: values reach programs as GNU parallel's manual says, whatever bytes they
//! have.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::command::{Folder, gristmill};

/// Runs a batch in a folder, with these bytes on standard input.
fn batch<S: AsRef<OsStr>>(folder: &Path, words: impl IntoIterator<Item = S>, input: &[u8]) -> Output {
    let mut command = gristmill(["batch", "--no-history"]);
    command.args(words).current_dir(folder);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // One that refuses its options does not read.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// Returns what a batch prints, which must succeed.
fn printed(folder: &Path, words: &str, input: &str) -> String {
    let Output { status, stdout, stderr } = batch(folder, words.split(' '), input.as_bytes());
    assert!(status.success(), "{words}: {}", text(&stderr));
    text(&stdout).to_owned()
}

/// Returns what a batch says, which must refuse to run.
fn refused(folder: &Path, words: &[&str], input: &str) -> String {
    let Output { status, stdout, stderr } = batch(folder, words, input.as_bytes());
    assert!(!status.success() && stdout.is_empty(), "{words:?}: {}", text(&stdout));
    text(&stderr).to_owned()
}

fn names(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a name").file_name()).collect()
}

/// Names that a shell, a list of lines or an option parser could take for something else.
fn odd_names() -> Vec<OsString> {
    let names: [&[u8]; 14] = [
        b"$(touch hacked)",
        b"`touch hacked`",
        b"a b",
        b"'",
        b"\"",
        b"-x",
        b"a\nb",
        b"caf\xe9",
        b"\x1b[1m",
        b"*",
        b"a;touch hacked",
        b"\\",
        b"#a",
        b"{}{.}",
    ];
    names.map(|name| OsString::from_vec(name.to_vec())).into()
}

/// `cp {} {.}.bak ::: a b` wrote both files to one with the name `{.}.bak`, exit status 0.
#[test]
fn each_value_is_copied_to_a_name_of_its_own() {
    let folder = Folder::new();
    folder.file("a.txt", "1");
    folder.file("b.txt", "2");
    printed(folder.path(), "-- cp {} {.}.bak ::: a.txt b.txt", "");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a copy");
    assert_eq!([read("a.bak"), read("b.bak")], ["1", "2"]);
    assert_eq!(names(folder.path()).len(), 4);
}

/// The recipe of the help, `find | sed 's/.*/flac "&"/'`, ran a file with the name `$(touch hacked)` as a command.
#[test]
fn names_of_files_from_find_are_never_taken_for_anything_else() {
    for command in [&["--", "cp", "--", "{}", "copies/{/}"][..], &["--shell", "sh", "--", "cat < {} > copies/{/}"]] {
        let folder = Folder::new();
        fs::create_dir_all(folder.path().join("in")).expect("a folder");
        fs::create_dir(folder.path().join("copies")).expect("a folder");
        let odd = odd_names();
        odd.iter().for_each(|name| fs::write(folder.path().join("in").join(name), name.as_bytes()).expect("written"));
        let find = Command::new("find").args(["in", "-type", "f", "-print0"]).current_dir(folder.path()).output();
        let words = [&["-0"], command].concat();
        let Output { status, stderr, .. } = batch(folder.path(), words, &find.expect("find").stdout);
        assert!(status.success(), "{}", text(&stderr));
        assert_eq!(names(&folder.path().join("copies")), odd.iter().cloned().collect());
        for name in odd {
            assert_eq!(fs::read(folder.path().join("copies").join(&name)).expect("a copy"), name.as_bytes());
        }
        assert_eq!(names(folder.path()), ["copies", "in"].map(OsString::from).into());
    }
}

/// Returns names of random bytes, most of which mean something to a shell.
fn random_names(count: usize) -> Vec<OsString> {
    let letters = b"ab -'\"\\$(){}`*?~#&;|<>!=\n\t\x01\x7f\xc3\xa9\xe9";
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut name = || (0..=random(8)).map(|_| letters[random(letters.len())]).collect();
    (0..count).map(|_| OsString::from_vec(name())).collect()
}

/// `--dry-run` printed `xz -k a b` for the one value `a b`.
#[test]
fn a_dry_run_prints_lines_that_do_the_same_in_a_shell() {
    for command in [&["--", "cp", "--", "from", "made/{}"][..], &["--shell", "sh", "--", "cp -- from made/{}"]] {
        let folders = [Folder::new(), Folder::new()];
        for folder in &folders {
            folder.file("from", "x");
            fs::create_dir(folder.path().join("made")).expect("a folder");
        }
        let values: Vec<OsString> = command
            .iter()
            .map(OsString::from)
            .chain([":::".into()])
            .chain(odd_names())
            .chain(random_names(60))
            .collect();
        assert!(batch(folders[0].path(), &values, b"").status.success());
        let dry = batch(folders[1].path(), [OsString::from("--dry-run")].into_iter().chain(values), b"");
        assert!(names(&folders[1].path().join("made")).is_empty() && dry.status.success());
        pasted(folders[1].path(), &dry.stdout);
        let [made, again] = folders.each_ref().map(|folder| names(&folder.path().join("made")));
        let expected: BTreeSet<OsString> = odd_names().into_iter().chain(random_names(60)).collect();
        assert_eq!((&made, &again), (&expected, &expected));
    }
    let folder = Folder::new();
    let jobs = "[[job]]\ncommand='echo $A | tr a b'\ndirectory='d e'\nenvironment={A='a $b'}\n[[job]]\ncommand=['echo', 'a b']";
    folder.file("jobs.toml", jobs);
    let lines = printed(folder.path(), "--dry-run jobs.toml", "");
    let here = folder.path().canonicalize().expect("a folder");
    let here = here.display();
    assert_eq!(
        lines,
        format!("(cd '{here}/d e' && env 'A=a $b' sh -c 'echo $A | tr a b') < /dev/null\nenv echo 'a b' < /dev/null\n")
    );
}

/// Pastes lines into a shell all together, as if they were typed.
fn pasted(folder: &Path, lines: &[u8]) {
    let mut shell = Command::new("sh");
    shell.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut shell = shell.spawn().expect("a shell");
    // A shell that a line has ended does not read.
    let _ = shell.stdin.take().expect("a pipe").write_all(lines);
    shell.wait().expect("it ends");
}

/// `exit 3` in a list ended the shell into which its dry run was pasted, `cd /` moved what stood behind it, and `cat`
/// swallowed the rest.
#[test]
fn a_dry_run_pasted_as_a_whole_does_what_the_list_does() {
    let lines = [
        "echo 1 >> out; exit 3",
        "cd / && x=leaked",
        "echo 2$x >> out",
        "echo 3 >> out # don't",
        "cat << E >> out\n4 it's\nE",
        "echo 5 >> out; cat >> out",
        "echo 'open >> out",
        "set -e; trap 'echo 6 >> out' EXIT; false; echo no >> out",
        "exec sh -c 'echo 7 >> out'",
        "x=8 &&\necho \"$x\" >> out",
        "echo caf\u{e9} >> out",
    ];
    let folders = [Folder::new(), Folder::new()];
    let ran = batch(folders[0].path(), ["-0", "-j", "1", "--keep-going"], lines.join("\0").as_bytes());
    assert_eq!(ran.status.code(), Some(1));
    let dry = batch(folders[1].path(), ["-0", "--dry-run"], lines.join("\0").as_bytes());
    assert!(dry.status.success() && names(folders[1].path()).is_empty());
    pasted(folders[1].path(), &dry.stdout);
    let [ran, pasted_out] =
        folders.each_ref().map(|folder| fs::read_to_string(folder.path().join("out")).expect("out"));
    assert_eq!(ran, "1\n2\n3\n4 it's\n5\n6\n7\n8\ncaf\u{e9}\n");
    assert_eq!(pasted_out, ran);
    // Programs are not commands of the shell with the same names.
    let folder = Folder::new();
    let dry = |words: &str| printed(folder.path(), &format!("--dry-run -- {words}"), "");
    let list = [dry("exit {} ::: 3"), dry("cd ::: /"), dry("echo {} ::: a\\tb"), dry("touch ::: made")];
    pasted(folder.path(), list.concat().as_bytes());
    assert_eq!(names(folder.path()), [OsString::from("made")].into());
}

/// `n="$(basename "{}" .txt)"` with --shell ran a file with the name `$(touch hacked)` as a command, and a message led
/// to this form.
#[test]
fn a_place_in_nested_quotes_is_refused_and_the_right_form_is_taken() {
    let folder = Folder::new();
    let value = "a $(touch hacked; echo HI).txt";
    for (line, place) in [
        (r#"n="$(basename "{}" .txt)"; echo "[$n]""#, "in double quotes"),
        (r#"[ "$(wc -l < "{}")" -gt 3 ]"#, "in double quotes"),
        (r#"x="`basename "{}"`""#, "backticks"),
        (r#"echo "${x:-"{}"}""#, "${...}"),
        (r#"echo "$(case x in x) echo "{}";; esac)""#, "case"),
        ("# don't stop\necho '{}'", "in single quotes"),
        ("echo a # don't\necho '{}'", "in single quotes"),
        ("echo a # {}", "in a comment"),
        ("echo $'{}'", "in single quotes"),
        ("echo ${}", "behind a dollar sign"),
    ] {
        let said = refused(folder.path(), &["--shell", "bash", "--", line, ":::", value], "");
        assert!(said.contains(place) && said.contains("sh -c 'basename \"$1\"' sh {}"), "{line}: {said}");
    }
    let said = refused(folder.path(), &["--", "sh", "-c", "echo {}", ":::", value], "");
    assert!(said.contains("behind -c") && said.contains("--shell sh"), "{said}");
    let line = r#"n="$(basename {} .txt)"; echo "[$n]""#;
    let without_shell = [r#"n="$(basename "$1" .txt)"; echo "[$n]""#, "sh", "{}"];
    for words in [&["--shell", "bash", "--", line][..], &[&["--", "sh", "-c"][..], &without_shell].concat()] {
        let Output { status, stdout, .. } = batch(folder.path(), [words, &[":::", value]].concat(), b"");
        assert_eq!((status.code(), text(&stdout)), (Some(0), "[a $(touch hacked; echo HI)]\n"));
    }
    assert!(names(folder.path()).is_empty());
}

/// `gristmill batch xz -k ::: a` said "unexpected argument ':::' found", a list in TOML on standard input ran line by
/// line in the shell, and one from `find -print0` was "refused: nul byte found in provided data" for each line.
#[test]
fn a_first_try_is_told_what_to_write() {
    let folder = Folder::new();
    folder.file("zeros", "a\0b\0");
    let tip = "tip: write -- before the command: gristmill batch [OPTIONS] -- COMMAND ::: VALUES";
    for (words, input, wrong) in [
        ("xz -k ::: a", "", tip),
        ("xz -9 ::: a", "", tip),
        ("xz -j ::: a", "", tip),
        ("echo ::: a b", "", tip),
        ("echo {}", "a\n", tip),
        (
            "-",
            "[[job]]\ncommand = 'touch made'\n",
            "line 1 begins a list in TOML: write it to a file whose name ends with .toml",
        ),
        ("-", "touch made\0touch made\0", "line 1 has a zero byte, which no program can be given: add -0"),
        ("-- touch", "made\0made\0", "add -0"),
        ("-- touch :::: zeros zeros", "", "zeros: line 1 has a zero byte"),
    ] {
        let said = refused(folder.path(), &words.split(' ').collect::<Vec<_>>(), input);
        assert!(said.contains(wrong) && said.matches("tip: ").count() <= 1, "{words}: {said}");
        assert!(!folder.path().join("made").exists(), "{words}");
    }
    for words in ["--jbos 3 list", "-- echo {2} {2} ::: a b ::: c d"] {
        let said = refused(folder.path(), &words.split(' ').collect::<Vec<_>>(), "");
        assert!(!said.contains(tip), "{said}");
    }
    let said = refused(folder.path(), &"-- echo {2} {2} ::: a b ::: c d".split(' ').collect::<Vec<_>>(), "");
    assert!(said.contains("takes 1 of 2 values"), "{said}");
}

/// Several lists, linked lists and files of values were words for the program.
#[test]
fn values_come_from_lists_files_and_pipes() {
    let folder = Folder::new();
    folder.file("f", "a\nb\n");
    folder.file("g", "1 2\n#3");
    folder.file("z", "a\nb\0c");
    for (words, input, expected) in [
        ("-- echo", "a\nb\n", "a\nb\n"),
        ("-- echo x{}", "a b\n\n", "xa b\nx\n"),
        ("-a f -- echo", "", "a\nb\n"),
        ("-a f -a g -- echo {1}-{2}", "", "a-1 2\na-#3\nb-1 2\nb-#3\n"),
        ("-- echo {2} {1} :::: f ::::+ g", "", "1 2 a\n#3 b\n"),
        ("-- echo :::: f g", "", "a 1 2\na #3\nb 1 2\nb #3\n"),
        ("-- echo ::: x y :::: -", "a\nb\n", "x a\nx b\ny a\ny b\n"),
        ("-a - -- echo ::: x", "a\nb\n", "a x\nb x\n"),
        ("-0 -a z -- echo", "", "a\nb\nc\n"),
        ("-- echo ::: a b c :::+ x y", "", "a x\nb y\n"),
        ("-n 2 -- echo {#}: {}", "a\nb\nc\n", "1: a b\n2: c\n"),
        ("-n 0 -- echo hi ::: 1 2", "", "hi\nhi\n"),
        ("-- echo {#} ::: a b", "", "1\n2\n"),
        ("-- awk BEGIN{print(ARGV[1])} ::: a b", "", "a\nb\n"),
    ] {
        assert_eq!(printed(folder.path(), &format!("-j 1 {words}"), input), expected, "{words}");
    }
    let said = batch(folder.path(), "-- echo ::: a b c :::+ x y".split(' '), b"").stderr;
    assert!(
        text(&said).contains("list 1 has 3 values") && text(&said).contains("after the first 2 are not used"),
        "{}",
        text(&said)
    );
}

/// A pipe of values was read to its end before the first program began.
#[test]
fn programs_begin_while_their_values_arrive() {
    let folder = Folder::new();
    let mut command = gristmill(["batch", "--no-history", "-n", "2", "--", "touch"]);
    command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut queue = command.spawn().expect("it starts");
    let mut values = queue.stdin.take().expect("a pipe");
    for pair in [["a", "b"], ["c", "d"]] {
        write!(values, "{}\n{}\nla", pair[0], pair[1]).expect("it reads");
        let began = Instant::now();
        while !pair.iter().all(|name| folder.path().join(name).exists()) {
            assert!(began.elapsed() < Duration::from_secs(60), "{pair:?} were not made");
            std::thread::sleep(Duration::from_millis(2));
        }
        write!(values, "st {}\nlast\n", pair[0]).expect("it reads");
    }
    drop(values);
    let Output { status, stderr, .. } = queue.wait_with_output().expect("it ends");
    assert!(status.success() && text(&stderr).contains("4 programs: 4 succeeded"), "{}", text(&stderr));
    assert!(folder.path().join("last a").exists() && folder.path().join("last c").exists());
    // Nobody had said that a command without a place takes its values from there.
    let mut command = gristmill(["batch", "--no-history", "--", "touch"]);
    command.current_dir(folder.path()).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut queue = command.spawn().expect("it starts");
    let mut said = String::new();
    BufReader::new(queue.stderr.take().expect("a pipe")).read_line(&mut said).expect("a line");
    assert!(said.contains("waiting for values on standard input"), "{said}");
    queue.kill().expect("it runs");
    queue.wait().expect("it ends");
}

/// A command without values ran once, with a full pipe on its standard input, too.
#[test]
fn a_command_without_values_runs_once_only_where_there_is_nothing_to_read() {
    let folder = Folder::new();
    let once = gristmill(["batch", "--no-history", "--", "echo", "once"]).output().expect("it runs");
    assert_eq!((once.status.code(), text(&once.stdout)), (Some(0), "once\n"));
    let said = refused(folder.path(), &["--", "echo", "once"], "");
    assert!(said.contains("standard input: it has no value") && said.contains("< /dev/null"), "{said}");
    assert_eq!(printed(folder.path(), "-- echo {}", ""), "");
}

#[test]
fn what_cannot_be_meant_is_refused_by_name() {
    let folder = Folder::new();
    folder.file("empty", "");
    for (words, wrong) in [
        (&["--", "echo", "{..}", ":::", "a"][..], "{..} is not a placeholder"),
        (&["--", "echo", "{1x}", ":::", "a"], "{1x} is not a placeholder"),
        (&["--", "echo", "{2}", ":::", "a"], "{2} has no list of values: their number is 1"),
        (&["--", "echo", "{1}", ":::", "a", ":::", "b"], "write {2}"),
        (&["--", "echo", ":::"], "list 1 of values, behind :::, is empty"),
        (&["--", "echo", ":::", "a", "::::", "empty"], "list 2 of values is empty"),
        (&["--", "echo", "::::", "missing"], "cannot read missing"),
        (&["--", "echo", "::::", "-", "-"], "standard input can be read once"),
        (&["--", ":::", "a"], "no command before"),
        (&["-n", "2", "--", "echo", "{1}{2}", ":::", "a", "b", "c"], "{2} is left without one"),
        (&["--", "cat {} | wc -l", ":::", "a"], "--shell sh"),
        (&["--shell", "sh", "--", "echo \"{}\"", ":::", "a"], "in double quotes"),
        (&["--shell", "fish", "--", "echo {}", ":::", "a"], "cannot be quoted for fish"),
        (&["--shell", " ", "jobs"], "the name of a shell"),
        (&["-a", "f", "jobs"], "write -- COMMAND"),
    ] {
        let said = refused(folder.path(), words, "");
        assert!(said.contains(wrong), "{words:?}: {said}");
    }
    let Output { stderr, .. } = batch(folder.path(), ["--", "ls", ":::", "*.log"], b"");
    assert!(text(&stderr).contains("no file has the name *.log"), "{}", text(&stderr));
}

/// Two programs that ran at the same time could have written to the same file: there was no number that tells them
/// apart.
#[test]
fn programs_that_run_at_the_same_time_have_different_slots() {
    let folder = Folder::new();
    let script = "mkdir slot$0 && sleep 0.02 && rmdir slot$0 && echo $0";
    let words = [
        "-j",
        "3",
        "--journal",
        "j",
        "--",
        "sh",
        "-c",
        script,
        "{%}",
        ":::",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
    ];
    let Output { status, stdout, stderr } = batch(folder.path(), words, b"");
    assert!(status.success(), "{}", text(&stderr));
    let slots: Vec<&str> = text(&stdout).lines().collect();
    assert!(slots.len() == 9 && slots.iter().all(|slot| ["1", "2", "3"].contains(slot)), "{slots:?}");
    // The journal knows the jobs, whatever slots they had.
    let again: Vec<&str> = words.iter().copied().map(|word| if word == "3" { "2" } else { word }).collect();
    let again = [&["--resume"], &again[..]].concat();
    let Output { status, stdout, .. } = batch(folder.path(), again, b"");
    assert!(status.success() && stdout.is_empty(), "{}", text(&stdout));
}

/// A list with one name in Latin-1 was refused whole.
#[test]
fn names_in_a_list_need_not_be_utf_8() {
    let folder = Folder::new();
    let list = b"touch caf\xe9\ntouch caf\xe8\ntouch b\n";
    let options = ["--journal", "j", "--resume"];
    assert!(batch(folder.path(), options, list).status.success());
    let expected = [&b"caf\xe9"[..], b"caf\xe8", b"b", b"j"].map(|name| OsString::from_vec(name.to_vec()));
    assert_eq!(names(folder.path()), expected.clone().into());
    let other = Folder::new();
    pasted(other.path(), &batch(other.path(), ["--dry-run"], list).stdout);
    assert_eq!(names(other.path()), expected.into_iter().filter(|name| name != "j").collect());
}

/// Lists ran under `sh`, which no page said, so that a failure in a pipeline was a success.
#[test]
fn the_shell_of_lines_can_be_chosen() {
    let folder = Folder::new();
    let bash = ["--shell", "bash -o pipefail"];
    assert!(batch(folder.path(), [""; 0], b"false | true\n").status.success());
    assert_eq!(batch(folder.path(), bash, b"false | true\n").status.code(), Some(1));
    let words = [&bash[..], &["--", "false | echo {}", ":::", "a"]].concat();
    let Output { status, stdout, .. } = batch(folder.path(), words, b"");
    assert_eq!((status.code(), text(&stdout)), (Some(1), "a\n"));
    folder
        .file("jobs.toml", "[[job]]\ncommand='[[ ab == a* ]] && echo bash'\nshell='bash'\n[[job]]\ncommand='echo sh'");
    assert_eq!(printed(folder.path(), "-j 1 jobs.toml", ""), "bash\nsh\n");
    // Commands with several lines, each ended by a zero byte.
    assert_eq!(printed(folder.path(), "-0 -j 1", "echo a\necho b\0echo c"), "a\nb\nc\n");
}
