//! Real shells run random lines with hostile values: a value arrives as it is, or its place is refused, and nothing in
//! it is run.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use gristmill_batch::queue::{Shell, Template};
use proptest::prelude::*;

/// The shells of this machine.
fn shells() -> Vec<&'static str> {
    let all = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "yash", "busybox sh"];
    let is_here = |name: &&str| {
        let name = name.split(' ').next().unwrap_or_default();
        Command::new(name).args(["-c", ":"]).stdin(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    all.into_iter().filter(is_here).collect()
}

/// A folder with the program `put`, which adds its words to the file that `OUT` names, each with a zero byte.
fn programs() -> &'static Path {
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().expect("a folder");
        // Written by another process: a file that this one has open for writing cannot be run.
        let script = "#!/bin/sh\nfor word; do printf '%s\\0' \"$word\" >> \"$OUT\"; done\n";
        let make = ["-c", "printf %s \"$1\" > put && chmod +x put", "sh", script];
        assert!(Command::new("sh").args(make).current_dir(folder.path()).status().expect("a shell").success());
        folder
    });
    FOLDER.path()
}

/// Runs a line with a value in a folder of its own; `None` if the line is refused. Returns whether it succeeded, the
/// words that `put` got, and the names in the folder afterwards.
fn run(shell: &str, line: &str, value: &str) -> Option<(bool, Vec<String>, Vec<OsString>)> {
    let shell = Shell::parse(shell).expect("a shell");
    let job = Template::parse(&[line.into()], Some(shell), 1).ok()?.job(&[value.into()], 1).expect("a value");
    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path().join("work");
    fs::create_dir(&work).expect("a folder");
    let path = format!("{}:{}", programs().display(), std::env::var("PATH").expect("a path"));
    let mut command = Command::new(&job.words[0]);
    command.args(&job.words[1..]).current_dir(&work).env("PATH", path).env("OUT", folder.path().join("out"));
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("a shell");
    Some((status.success(), words(&folder.path().join("out")), names(&work)))
}

fn words(out: &Path) -> Vec<String> {
    let text = String::from_utf8(fs::read(out).unwrap_or_default()).expect("text");
    text.split_terminator('\0').map(String::from).collect()
}

fn names(folder: &Path) -> Vec<OsString> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a name").file_name()).collect()
}

/// Text that makes a file if it is run, in one of many ways.
fn hostile() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "$(touch HIT)",
        "`touch HIT`",
        ";touch HIT;",
        "\ntouch HIT\n",
        "'",
        "\"",
        "\\",
        ")",
        "}",
        "(",
        "{",
        " ",
        "*",
        "#",
        "E\n",
        "|touch HIT;",
        "$x",
        "=",
        "a",
        "-n",
        "]",
        "<",
        ";;",
        "esac",
        "$'",
    ]);
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

/// A command that puts words, some of which are the value, in random nestings.
fn nested() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "put {}",
        "put a {} b",
        "put {} # it's",
        "true",
        "put '{}'",
        "put \"{}\"",
        "put x{}",
    ]);
    leaf.prop_map(String::from).prop_recursive(6, 24, 2, |inner| {
        let inner = || inner.clone();
        prop_oneof![
            inner().prop_map(|a| format!("x=\"$({a})\"")),
            inner().prop_map(|a| format!("put \"a$({a})b\" {{}}")),
            inner().prop_map(|a| format!("put \"`{a}`\" {{}}")),
            inner().prop_map(|a| format!("put \"${{x:-$({a})}}\"; put {{}}")),
            inner().prop_map(|a| format!("put \"${{x:-\"{{}}\"}}\"; {a}")),
            inner().prop_map(|a| format!("# don't\n{a}")),
            inner().prop_map(|a| format!("true # don't\n{a}")),
            inner().prop_map(|a| format!("true;# {{}}\n{a}")),
            inner().prop_map(|a| format!("y=$(case x in x) {a};; esac)")),
            inner().prop_map(|a| format!("y=\"$(case x in x) {a};; esac)\"")),
            inner().prop_map(|a| format!("case x in x) {a}\n;; esac")),
            inner().prop_map(|a| format!("cat <<E\n{{}}\nE\n{a}")),
            inner().prop_map(|a| format!("cat <<'E'\nit's\nE\n{a}")),
            inner().prop_map(|a| format!("({a}\n)")),
            inner().prop_map(|a| format!("put $(( 1 << 2 )) $'\\t'; {a}")),
            inner().prop_map(|a| format!("put $'\\'' ; {a}")),
            inner().prop_map(|a| format!("cat <({a}\n)")),
            inner().prop_map(|a| format!("a[1]=2; {a}")),
            (inner(), inner()).prop_map(|(a, b)| format!("{a}\n{b}")),
            (inner(), inner()).prop_map(|(a, b)| format!("{a} && {b}")),
            (inner(), inner()).prop_map(|(a, b)| format!("if {a}\nthen {b}\nfi")),
        ]
    })
}

/// Signs of the shell without any order.
fn jumbled() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "put ",
        "put {} ",
        "{}",
        " {} ",
        "\"",
        "\"",
        "'",
        "$(",
        "\"$(",
        ")",
        ")\"",
        "`",
        "${x:-",
        "${x",
        "}",
        "{ ",
        "#",
        " # ",
        " ",
        "\n",
        "\\",
        "\\\n",
        "$'",
        "$\"",
        "$",
        "$$",
        "case x in x) ",
        ";; esac",
        "<<E\n",
        "\nE\n",
        "<<<",
        ";",
        "a",
        "((",
        "$((",
        "))",
        "(",
        "x[",
        "]",
        "=",
        "|",
        "x=",
        "()",
        "<(",
        "[[ ",
        " ]]",
        "\t",
        "~",
        "!",
        "&& ",
        ">&2",
        ">& ",
        "<&",
        "$[",
    ]);
    (prop::collection::vec(part, 1..12)).prop_map(|parts| parts.concat())
}

/// `n="$(basename "{}" .txt)"` ran a file with the name `$(touch HIT)` as a command.
#[test]
fn the_same_line_is_safe_with_and_without_quotes_around_a_substitution() {
    let value = "a $(touch HIT; echo HI).txt";
    for shell in shells() {
        assert_eq!(run(shell, r#"n="$(basename "{}" .txt)"; put "[$n]""#, value), None);
        let (is_success, words, names) = run(shell, r#"n="$(basename {} .txt)"; put "[$n]""#, value).expect("taken");
        assert_eq!((is_success, words, names), (true, vec!["[a $(touch HIT; echo HI)]".to_owned()], vec![]), "{shell}");
    }
}

/// Behind `$`, `$x` and `>&`, and in a comment, values were taken for more than text, though no quotes were open.
#[test]
fn a_value_beside_other_text_stays_text() {
    for shell in shells() {
        for (line, value) in
            [("put ${}", "\\'; touch HIT #"), ("true # {}", "\ntouch HIT"), ("put $((1+{}))", "a[$(touch HIT)]")]
        {
            assert_eq!(run(shell, line, value), None, "{line}");
        }
        assert_eq!(run(shell, "put >&{}", "a$(touch HIT)"), None);
        let glued = run(shell, "x=1; put $x{} x{{},b}", "a,c").expect("taken");
        assert!(glued.1.contains(&"1a,c".to_owned()) && !glued.1.contains(&"xc".to_owned()), "{shell}: {glued:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Values ran as code in quotes within `$( )`, `${ }` and backticks, and behind a comment with an odd quote.
    #[test]
    fn a_value_arrives_as_it_is_or_its_place_is_refused(line in nested(), value in hostile()) {
        for shell in shells() {
            let Some((is_success, words, names)) = run(shell, &line, &value) else { continue };
            prop_assert_eq!(names, Vec::<OsString>::new(), "{}: {}", shell, line);
            // Where a shell reads $'\'' in its own way, words of the line itself grow together.
            let is_whole = |word: &String| !word.contains("HIT") || *word == value || *word == format!("x{value}");
            prop_assert!(words.iter().all(is_whole), "{}: {}: {:?}", shell, line, words);
            // Nobody waits for what runs in <( ).
            let puts_it = is_success && line.contains("put {}") && !line.contains("<(");
            prop_assert!(!puts_it || words.contains(&value), "{}: {}: {:?}", shell, line, words);
        }
    }

    /// Files that the line itself makes, as `>&2x[}` does in bash, are none of the value's.
    #[test]
    fn no_jumble_of_signs_makes_a_value_run(line in jumbled(), value in hostile()) {
        for shell in shells() {
            if let Some((_, _, mut names)) = run(shell, &line, &value) {
                names.retain(|name| name.to_string_lossy().contains("HIT"));
                prop_assert_eq!(names, Vec::<OsString>::new(), "{}: {}", shell, line);
            }
        }
    }
}
