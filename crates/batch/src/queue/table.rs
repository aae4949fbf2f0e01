//! A list of jobs in TOML, with dependencies.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use toml_edit::{Document, Item, Table, Value};

use crate::queue::job::BatchJob;
use crate::queue::shell::Shell;

const FIELDS: [&str; 14] = [
    "name",
    "command",
    "shell",
    "directory",
    "environment",
    "inputs",
    "after",
    "after_any",
    "timeout",
    "retries",
    "retry_delay",
    "priority",
    "memory",
    "threads",
];

/// Reads the tables `[[job]]`. `shell` runs a command that is text, unless its job names another; `bytes` parses a
/// size like `2GiB`.
///
/// # Errors
///
/// A sentence that names the job and the field: wrong TOML, an unknown field, a name that is used twice, a dependency
/// that there is not, or a circle of dependencies.
///
/// ```
/// let text = "
///     [[job]]
///     name = 'sort'
///     command = 'sort words.txt -o sorted.txt'
///     memory = '1GiB'
///     timeout = '5min'
///
///     [[job]]
///     command = ['uniq', 'sorted.txt', 'unique.txt']
///     after = ['sort']
/// ";
/// let jobs = gristmill_batch::queue::table(text, &gristmill_batch::queue::Shell::default(), |size| (size == "1GiB").then_some(1 << 30).ok_or("no size".to_owned()))?;
/// assert_eq!((jobs[0].memory_bytes, &jobs[1].after[..]), (1 << 30, &[0][..]));
/// # Ok::<(), String>(())
/// ```
pub fn table(text: &str, shell: &Shell, bytes: impl Fn(&str) -> Result<u64, String>) -> Result<Vec<BatchJob>, String> {
    let document = Document::parse(text)
        .map_err(|error| wrong_toml(text, error.span().map_or(0, |span| span.start), error.message()))?;
    if let Some((name, _)) = document.iter().find(|(name, _)| *name != "job") {
        return Err(format!("{name} is unknown here: jobs are tables [[job]]"));
    }
    let tables: Vec<&Table> = match document.get("job") {
        None => Vec::new(),
        Some(Item::ArrayOfTables(tables)) => tables.iter().collect(),
        Some(_) => return Err("job is not a list of tables: write [[job]] before each".to_owned()),
    };
    let mut jobs = Vec::new();
    let mut names = BTreeMap::new();
    for (at, table) in tables.iter().enumerate() {
        let job = job(table, shell, &bytes).map_err(|error| format!("job {}: {error}", at + 1))?;
        if table.contains_key("name") && names.insert(job.name.clone(), at).is_some() {
            return Err(format!("job {}: the name {} is used twice", at + 1, job.name));
        }
        jobs.push(job);
    }
    for (at, table) in tables.iter().enumerate() {
        let places = |field: &str| {
            let place = |name: String| names.get(&name).copied().ok_or(format!("{field}: no job has the name {name}"));
            texts(table, field)?.into_iter().map(place).collect::<Result<Vec<usize>, String>>()
        };
        let wrong = |error| format!("job {}: {error}", at + 1);
        jobs[at].after = places("after").map_err(wrong)?;
        jobs[at].after_any = places("after_any").map_err(wrong)?;
    }
    no_circle(&jobs)?;
    Ok(jobs)
}

/// Says in one line what is wrong at a byte of a text in TOML.
fn wrong_toml(text: &str, at: usize, why: &str) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |start| start.chars().count()) + 1;
    format!("line {line}, column {column}: this is not TOML: {}", why.trim_end().replace('\n', "; "))
}

fn job(table: &Table, shell: &Shell, bytes: &impl Fn(&str) -> Result<u64, String>) -> Result<BatchJob, String> {
    if let Some((name, _)) = table.iter().find(|(name, _)| !FIELDS.contains(name)) {
        return Err(format!("{name} is no field; there are {}", FIELDS.join(", ")));
    }
    let mut job = match table.get("command") {
        None => return Err("there is no command".to_owned()),
        Some(Item::Value(Value::String(line))) => {
            let own =
                text(table, "shell")?.map(|shell| Shell::parse(&shell).map_err(|error| format!("shell: {error}")));
            own.transpose()?.as_ref().unwrap_or(shell).job(line.value().into())
        }
        Some(_) if table.contains_key("shell") => {
            return Err("shell is for a command that is text, and this one is a list of words".to_owned());
        }
        Some(_) => BatchJob::words(texts(table, "command")?.into_iter().map(OsString::from).collect()),
    };
    if job.words.first().is_none_or(|program| program.is_empty()) || job.name.trim().is_empty() {
        return Err("command is empty".to_owned());
    }
    if let Some(name) = not_empty(table, "name")? {
        job.name = name;
    }
    job.directory = not_empty(table, "directory")?.map(PathBuf::from);
    job.inputs = texts(table, "inputs")?.into_iter().map(PathBuf::from).collect();
    job.environment = environment(table)?;
    job.timeout = time(table, "timeout")?;
    job.retry_delay = time(table, "retry_delay")?;
    if let Some(size) = text(table, "memory")? {
        job.memory_bytes = bytes(&size).map_err(|error| format!("memory: {error}"))?;
        if job.memory_bytes == 0 {
            return Err("memory is 0; leave it out if it is not known".to_owned());
        }
    }
    job.retries = number(table, "retries")?;
    job.priority = match table.get("priority") {
        None => 0,
        Some(item) => item
            .as_integer()
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| format!("priority is not a whole number from {} to {}", i32::MIN, i32::MAX))?,
    };
    job.threads = match number(table, "threads")? {
        Some(0) => return Err("threads is 0; a program has at least 1".to_owned()),
        threads => threads.unwrap_or(1) as usize,
    };
    no_zero_byte(&job)?;
    Ok(job)
}

/// Refuses what the kernel would take for the end of a text.
fn no_zero_byte(job: &BatchJob) -> Result<(), String> {
    let directory = job.directory.iter().map(|directory| directory.as_os_str());
    let texts = (job.words.iter().map(|word| ("command", &word[..])))
        .chain(directory.map(|directory| ("directory", directory)))
        .chain(job.environment.iter().map(|(_, value)| ("environment", OsStr::new(value))));
    match texts.into_iter().find(|(_, text)| text.as_bytes().contains(&0)) {
        Some((field, _)) => Err(format!("{field} has a zero byte (\\u0000), which no program can be given")),
        None => Ok(()),
    }
}

fn text(table: &Table, name: &str) -> Result<Option<String>, String> {
    let Some(item) = table.get(name) else { return Ok(None) };
    item.as_str().map(|text| Some(text.to_owned())).ok_or_else(|| format!("{name} is not a text in quotes"))
}

fn not_empty(table: &Table, name: &str) -> Result<Option<String>, String> {
    match text(table, name)? {
        Some(text) if text.trim().is_empty() => Err(format!("{name} is empty")),
        other => Ok(other),
    }
}

fn texts(table: &Table, name: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("{name} is not a list of texts, like ['a', 'b']");
    let Some(item) = table.get(name) else { return Ok(Vec::new()) };
    let list = item.as_array().ok_or_else(wrong)?;
    list.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

fn time(table: &Table, name: &str) -> Result<Option<Duration>, String> {
    let parse =
        |time: String| humantime::parse_duration(&time).map_err(|error| format!("{name}: {error}; write 30s or 5min"));
    text(table, name)?.map(parse).transpose()
}

fn number(table: &Table, name: &str) -> Result<Option<u32>, String> {
    let Some(item) = table.get(name) else { return Ok(None) };
    let number = item.as_integer().and_then(|number| u32::try_from(number).ok());
    number.map(Some).ok_or_else(|| format!("{name} is not a whole number"))
}

fn environment(table: &Table) -> Result<Vec<(String, String)>, String> {
    let wrong = || "environment is not a table of texts, like { LANG = 'C' }".to_owned();
    let Some(item) = table.get("environment") else { return Ok(Vec::new()) };
    let table = item.as_table_like().ok_or_else(wrong)?;
    let variable = |(name, value): (&str, &Item)| match name {
        // The kernel would take the part after the = as the beginning of the value.
        name if name.is_empty() || name.contains(['=', '\0']) => {
            Err(format!("environment: {name:?} is no name of a variable"))
        }
        name => Ok((name.to_owned(), value.as_str().ok_or_else(wrong)?.to_owned())),
    };
    table.iter().map(variable).collect()
}

/// The members of a circle that its message names.
const MEMBERS_NAMED: usize = 8;

/// Refuses jobs that wait for each other in a circle. Each job and each `after` is looked at once.
fn no_circle(jobs: &[BatchJob]) -> Result<(), String> {
    let before = |job: &BatchJob| [&job.after[..], &job.after_any].concat();
    let mut waits: Vec<usize> = jobs.iter().map(|job| before(job).len()).collect();
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); jobs.len()];
    for (at, job) in jobs.iter().enumerate() {
        before(job).into_iter().for_each(|before| behind[before].push(at));
    }
    let mut free: Vec<usize> = (0..jobs.len()).filter(|at| waits[*at] == 0).collect();
    while let Some(done) = free.pop() {
        for at in std::mem::take(&mut behind[done]) {
            waits[at] -= 1;
            if waits[at] == 0 {
                free.push(at);
            }
        }
    }
    match waits.iter().position(|count| *count > 0) {
        Some(start) => Err(circle(jobs, &waits, start)),
        None => Ok(()),
    }
}

/// Says which jobs form the circle that this one waits for. It and all jobs that wait in vain have one before them
/// that does so too.
fn circle(jobs: &[BatchJob], waits: &[usize], start: usize) -> String {
    let mut met: Vec<Option<usize>> = vec![None; jobs.len()];
    let (mut way, mut at) = (Vec::new(), start);
    while met[at].is_none() {
        met[at] = Some(way.len());
        way.push(at);
        let mut before = jobs[at].after.iter().chain(&jobs[at].after_any);
        at = *before.find(|before| waits[**before] > 0).expect("it waits for one that waits");
    }
    let members = &way[met[at].expect("it was met")..];
    let name = |at: &usize| format!("{:?}", jobs[*at].name);
    if let [alone] = members {
        return format!("job {} waits for itself: after names {}", alone + 1, name(alone));
    }
    let named: Vec<String> = members.iter().take(MEMBERS_NAMED).map(name).collect();
    let more = match members.len() - named.len() {
        0 => String::new(),
        more => format!(" after {more} more,"),
    };
    format!("jobs wait for each other in a circle: {},{more} after {}", named.join(" after "), name(&members[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message had a drawing of several lines, whose line ends the command printed as a literal \n.
    #[test]
    fn a_text_that_is_not_toml_is_one_line_that_says_where() {
        for (text, place) in [
            ("[[job]]\ncommand = \"echo\n", "line 2, column 16"),
            ("[[job]]\ncommand = 'echo'\nretries = 1.5x\n", "line 3, column 14"),
            ("[[job]]\ncommand = 'é'\nretries = 99999999999999999999999\n", "line 3, column 11"),
            ("[[job]]\ncommand = 'é' x\n", "line 2, column 15"),
            ("[[job]\n", "line 1, column 7"),
        ] {
            let why = read(text).expect_err(text);
            assert!(why.starts_with(&format!("{place}: this is not TOML: ")), "{why}");
            assert!(!why.contains(['\n', '|', '^']), "{why}");
        }
    }

    fn read(text: &str) -> Result<Vec<BatchJob>, String> {
        table(text, &Shell::default(), |size| size.parse().map_err(|_| "no number".to_owned()))
    }

    #[test]
    fn every_field_is_read() {
        let text = "[[job]]\nname='a'\ncommand=['b','c']\ndirectory='d'\nenvironment={E='f'}\ninputs=['g']\n\
                    timeout='2s'\nretries=3\nretry_delay='1min'\npriority=-6\nmemory='4'\nthreads=5\n\
                    [[job]]\ncommand='h'\nafter=['a']\n[[job]]\ncommand='i'\nafter_any=['a']";
        let jobs = read(text).expect("it is right");
        let first = BatchJob {
            slots: Vec::new(),
            name: "a".into(),
            words: vec!["b".into(), "c".into()],
            directory: Some("d".into()),
            environment: vec![("E".into(), "f".into())],
            inputs: vec!["g".into()],
            after: vec![],
            after_any: vec![],
            timeout: Some(Duration::from_secs(2)),
            retries: Some(3),
            retry_delay: Some(Duration::from_secs(60)),
            priority: -6,
            memory_bytes: 4,
            threads: 5,
        };
        let others = [
            BatchJob { after: vec![0], ..Shell::default().job("h".into()) },
            BatchJob { after_any: vec![0], ..Shell::default().job("i".into()) },
        ];
        assert_eq!(jobs[0], first);
        assert_eq!(jobs[1..], others);
        let jobs = read("[[job]]\ncommand='a|b'\nshell='bash -o pipefail'").expect("it is right");
        assert_eq!((jobs[0].name.as_str(), &jobs[0].words[..2]), ("a|b", &["bash".into(), "-o".into()][..]));
    }

    #[test]
    fn errors_name_the_job_and_the_field() {
        for (text, part) in [
            ("[[job]]\ncommand=", "line 2"),
            ("[jobs]", "jobs is unknown"),
            ("job = 3", "[[job]]"),
            ("[[job]]\nname='a'", "job 1: there is no command"),
            ("[[job]]\ncommand='a'\ntimout='1s'", "timout is no field"),
            ("[[job]]\ncommand='a'\nretries=-1", "retries is not"),
            ("[[job]]\ncommand='a'\nmemory='x'", "memory: no number"),
            ("[[job]]\ncommand='a'\nmemory='0'", "memory is 0"),
            ("[[job]]\ncommand='a'\nname=''", "name is empty"),
            ("[[job]]\ncommand='a'\ndirectory=''", "directory is empty"),
            ("[[job]]\ncommand=[]", "command is empty"),
            ("[[job]]\ncommand=['a']\nshell='bash'", "shell is for a command that is text"),
            ("[[job]]\ncommand='a'\nshell=''", "shell: write the name"),
            ("[[job]]\ncommand=['', 'a']", "command is empty"),
            ("[[job]]\ncommand=' '", "command is empty"),
            ("[[job]]\ncommand='a'\nthreads=0", "threads is 0"),
            // "nul byte found in provided data" did not say where.
            ("[[job]]\ncommand=\"a\\u0000\"", "job 1: command has a zero byte"),
            ("[[job]]\ncommand='a'\nenvironment={A=\"\\u0000\"}", "environment has a zero byte"),
            ("[[job]]\ncommand=['a']\ndirectory=\"\\u0000\"", "directory has a zero byte"),
            ("[[job]]\ncommand='a'\nenvironment={'A=B'='x'}", "is no name of a variable"),
            ("[[job]]\ncommand='a'\nenvironment={''='x'}", "is no name of a variable"),
            ("[[job]]\ncommand='a'\nafter=['z']", "no job has the name z"),
            ("[[job]]\ncommand='a'\nname='n'\n[[job]]\ncommand='b'\nname='n'", "used twice"),
            (
                "[[job]]\ncommand='a'\nname='n'\nafter=['m']\n[[job]]\ncommand='b'\nname='m'\nafter=['n']",
                "\"n\" after \"m\", after \"n\"",
            ),
            (
                "[[job]]\ncommand='a'\nname='n'\nafter_any=['m']\n[[job]]\ncommand='b'\nname='m'\nafter=['n']",
                "\"n\" after \"m\", after \"n\"",
            ),
            ("[[job]]\ncommand='a'\nname='n'\nafter=['n']", "job 1 waits for itself"),
            ("[[job]]\ncommand='a'\nafter_any=['z']", "after_any: no job has the name z"),
            ("[[job]]\ncommand='a'\npriority=2.5", "priority is not a whole number"),
            ("[[job]]\ncommand='a'\nretry_delay='soon'", "retry_delay: "),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(read(""), Ok(Vec::new()));
    }
    /// A chain of 20,000 jobs took 7 s, and one of 50,000 about 45 s.
    #[test]
    fn a_long_chain_is_read_and_its_circle_is_named() {
        let job = |at: usize| format!("[[job]]\nname='{at}'\ncommand='true'\nafter=['{}']\n", at + 1);
        let chain: String = (0..49_999).map(job).collect();
        let jobs = read(&format!("{chain}[[job]]\nname='49999'\ncommand='true'\n")).expect("it is right");
        assert_eq!((jobs.len(), &jobs[49_998].after[..]), (50_000, &[49_999][..]));
        // It ends in a circle of ten, which those before it are no part of.
        let error = read(&format!("{chain}[[job]]\nname='49999'\ncommand='true'\nafter=['49990']\n"));
        let members: Vec<String> = (49_990..49_998).map(|at| format!("\"{at}\"")).collect();
        let named = format!("{}, after 2 more, after \"49990\"", members.join(" after "));
        assert_eq!(error, Err(format!("jobs wait for each other in a circle: {named}")));
    }
}
