//! Stored ceilings of this host, in one file in the user's state folder.
//!
//! A virtual machine's memory changes over time, so several measurements are kept, each with its time. The file is a
//! convenience: if it is damaged, of a newer version, or cannot be written, a message says so and nothing else
//! happens.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::ceilings::{Ceilings, Rates};

/// The location of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    path: PathBuf,
}

const VERSION: u64 = 1;
/// The number of measurements kept per host.
const KEPT_MAX: usize = 20;
const HOSTS_MAX: usize = 100;
const BYTES_MAX: u64 = 16 << 20;

impl Kept {
    /// Returns `gristmill/ceilings.json` in `$XDG_STATE_HOME`, which defaults to `~/.local/state`. `None` if neither
    /// is an absolute path.
    pub fn in_home(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<Kept> {
        let absolute = |name| variable(name).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
        Some(Kept { path: state.join("gristmill/ceilings.json") })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the measurements of `host`, the latest last; none if there is no file.
    ///
    /// # Errors
    ///
    /// A sentence that explains why the file is not used.
    pub fn load(&self, host: &str) -> Result<Vec<Ceilings>, String> {
        let hosts = self.read()?;
        let of = hosts.get(host).and_then(Value::as_array);
        Ok(of.into_iter().flatten().filter_map(from_json).collect())
    }

    /// Adds a measurement of `host`. A damaged file is replaced; one of a newer version is not.
    ///
    /// # Errors
    ///
    /// A sentence that explains why the measurement was not kept.
    pub fn add(&self, host: &str, ceilings: &Ceilings) -> Result<(), String> {
        let mut hosts = match self.read() {
            Ok(hosts) => hosts,
            Err(why) if why.contains(NEWER) => return Err(why),
            Err(_) => Map::new(),
        };
        while hosts.len() >= HOSTS_MAX && !hosts.contains_key(host) {
            let Some(first) = hosts.keys().next().cloned() else { break };
            hosts.shift_remove(&first);
        }
        let of = hosts.entry(host).or_insert_with(|| json!([]));
        if !of.is_array() {
            *of = json!([]);
        }
        if let Some(list) = of.as_array_mut() {
            list.push(to_json(ceilings));
            let surplus = list.len().saturating_sub(KEPT_MAX);
            list.drain(..surplus);
        }
        let text = format!("{:#}\n", json!({"version": VERSION, "hosts": hosts}));
        self.write(&text).map_err(|error| format!("{} was not written: {error}", self.path.display()))
    }

    /// Reads the measurements of all hosts.
    fn read(&self) -> Result<Map<String, Value>, String> {
        let path = self.path.display();
        let not_used = |why: &str| format!("{path} is not used: {why}");
        match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => return Err(not_used(&error.to_string())),
            Ok(facts) if !facts.is_file() => return Err(not_used("it is no file")),
            Ok(facts) if facts.len() > BYTES_MAX => return Err(not_used("it is too large to be ours")),
            Ok(_) => {}
        }
        let text = fs::read(&self.path).map_err(|error| not_used(&error.to_string()))?;
        let value: Value = serde_json::from_slice(&text).map_err(|_| not_used("it is damaged"))?;
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(newer) if newer > VERSION => return Err(not_used(NEWER)),
            _ => return Err(not_used("it is damaged")),
        }
        value.get("hosts").and_then(Value::as_object).cloned().ok_or_else(|| not_used("it is damaged"))
    }

    /// Writes a temporary file and renames it, so that readers see either version as a whole.
    fn write(&self, text: &str) -> io::Result<()> {
        let folder = self.path.parent().expect("the file lies in a folder of its own");
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut aside = tempfile::NamedTempFile::new_in(folder)?;
        aside.write_all(text.as_bytes())?;
        aside.persist(&self.path)?;
        Ok(())
    }
}

const NEWER: &str = "a newer version of this program has written it";

/// Formats ceilings as in the file and in the output of `gristmill machine --json`.
pub fn to_json(ceilings: &Ceilings) -> Value {
    let whole = |rate: Option<f64>| rate.map(|rate| rate.round() as u64);
    let row = |row: &Rates| {
        json!({
            "threads": row.threads,
            "read_bytes_per_s": whole(Some(row.read)),
            "copy_bytes_per_s": whole(Some(row.copy)),
            "triad_bytes_per_s": whole(Some(row.triad)),
            "page_cache_bytes_per_s": whole(row.page_cache),
            "hand_over_bytes_per_s": whole(row.hand_over),
            "disk_read_bytes_per_s": whole(row.disk_read),
        })
    };
    json!({
        "at_unix_s": ceilings.at,
        "array_bytes": ceilings.array_bytes,
        "rows": ceilings.rows.iter().map(row).collect::<Vec<Value>>(),
        "disk_write_bytes_per_s": whole(ceilings.disk_write),
        "notes": ceilings.notes,
    })
}

/// Parses ceilings; `None` if they make no sense.
fn from_json(value: &Value) -> Option<Ceilings> {
    let row = |row: &Value| {
        let rate = |name: &str| row.get(name).and_then(Value::as_f64).filter(|rate| *rate > 0.0);
        Some(Rates {
            threads: row.get("threads").and_then(Value::as_u64).filter(|threads| *threads > 0)? as usize,
            read: rate("read_bytes_per_s")?,
            copy: rate("copy_bytes_per_s")?,
            triad: rate("triad_bytes_per_s")?,
            page_cache: rate("page_cache_bytes_per_s"),
            hand_over: rate("hand_over_bytes_per_s"),
            disk_read: rate("disk_read_bytes_per_s"),
        })
    };
    let rows: Option<Vec<Rates>> = value.get("rows")?.as_array()?.iter().map(row).collect();
    let notes = value.get("notes").and_then(Value::as_array);
    Some(Ceilings {
        at: value.get("at_unix_s")?.as_u64()?,
        array_bytes: value.get("array_bytes")?.as_u64()?,
        rows: rows.filter(|rows| !rows.is_empty())?,
        disk_write: value.get("disk_write_bytes_per_s").and_then(Value::as_f64).filter(|rate| *rate > 0.0),
        notes: notes.into_iter().flatten().filter_map(|note| Some(note.as_str()?.to_owned())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(at: u64) -> Ceilings {
        Ceilings {
            at,
            array_bytes: 1 << 27,
            rows: vec![Rates {
                threads: 2,
                read: 3e10,
                copy: 2e10,
                triad: 2.5e10,
                page_cache: Some(1e10),
                hand_over: Some(3e10),
                disk_read: None,
            }],
            disk_write: Some(1e8),
            notes: vec!["a note".to_owned()],
        }
    }

    fn kept(folder: &Path) -> Kept {
        let folder = folder.to_owned();
        Kept::in_home(move |name| (name == "XDG_STATE_HOME").then(|| folder.clone())).expect("absolute")
    }

    #[test]
    fn measurements_are_kept_for_each_host() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = kept(folder.path());
        assert_eq!(kept.load("here"), Ok(vec![]));
        for at in 0..KEPT_MAX as u64 + 3 {
            kept.add("here", &measured(at)).expect("kept");
        }
        kept.add("there", &measured(7)).expect("kept");
        let here = kept.load("here").expect("there");
        assert_eq!((here.len(), &here[KEPT_MAX - 1]), (KEPT_MAX, &measured(KEPT_MAX as u64 + 2)));
        assert_eq!(kept.load("there"), Ok(vec![measured(7)]));
        // The folder is that of the history, too.
        let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&fs::metadata(path).expect("there")) & 0o7777;
        assert_eq!([mode(kept.path()), mode(kept.path().parent().expect("a folder"))], [0o600, 0o700]);
    }

    #[test]
    fn a_damaged_file_is_reported_and_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = kept(folder.path());
        fs::create_dir_all(kept.path().parent().expect("a folder")).expect("made");
        for text in ["", "{", "[]", "{\"version\":0}", "{\"version\":1,\"hosts\":3}", "\u{0}\u{1}"] {
            fs::write(kept.path(), text).expect("written");
            let why = kept.load("here").expect_err(text);
            assert!(why.contains("ceilings.json is not used: it is damaged"), "{text}: {why}");
            kept.add("here", &measured(1)).expect("replaced");
            assert_eq!(kept.load("here"), Ok(vec![measured(1)]), "{text}");
        }
        // If only a part is damaged, the rest counts.
        let text = fs::read_to_string(kept.path()).expect("there").replace("\"threads\": 2", "\"threads\": -2");
        fs::write(kept.path(), text).expect("written");
        assert_eq!(kept.load("here"), Ok(vec![]));
    }

    #[test]
    fn a_file_of_a_newer_version_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = kept(folder.path());
        fs::create_dir_all(kept.path().parent().expect("a folder")).expect("made");
        let text = "{\"version\": 2, \"hosts\": []}";
        fs::write(kept.path(), text).expect("written");
        assert!(kept.load("here").is_err_and(|why| why.contains("newer version")));
        assert!(kept.add("here", &measured(1)).is_err_and(|why| why.contains("newer version")));
        assert_eq!(fs::read_to_string(kept.path()).expect("there"), text);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("gristmill"), "a file").expect("written");
        let why = kept(folder.path()).add("here", &measured(1)).expect_err("no folder can be made there");
        assert!(why.contains("was not written"), "{why}");
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(kept(folder.path()).path()).expect("made");
        assert!(kept(folder.path()).load("here").is_err_and(|why| why.contains("it is no file")));
    }

    #[test]
    fn the_file_lies_in_the_state_folder_of_the_user() {
        let kept_in = |state: Option<&str>, home: Option<&str>| {
            let [state, home] = [state, home].map(|path| path.map(PathBuf::from));
            let kept = Kept::in_home(move |name| if name == "HOME" { home.clone() } else { state.clone() });
            kept.map(|kept| kept.path.to_str().expect("text").to_owned())
        };
        assert_eq!(kept_in(Some("/s"), Some("/h")).as_deref(), Some("/s/gristmill/ceilings.json"));
        assert_eq!(kept_in(Some("relative"), Some("/h")).as_deref(), Some("/h/.local/state/gristmill/ceilings.json"));
        assert_eq!(kept_in(None, None), None);
    }
}
