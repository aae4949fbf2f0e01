//! The command `gristmill`.
use std::io::Write;
use gristmill::*;
use gristmill_apps::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let file = args[2].clone();
    let get = |name: &str| args.iter().position(|a| a == name).map(|i| args[i + 1].clone());
    let workers: usize = get("--workers").map_or(2, |w| w.parse().unwrap());
    let top: usize = get("--top").map_or(usize::MAX, |w| w.parse().unwrap());
    let iso = if get("--isolation").as_deref() == Some("thread") { Isolation::Thread } else { Isolation::Process };
    let alpha = get("--tokens").as_deref() == Some("alpha");
    fn go<J: MapReduce<Key = Bytes, Value = u64>>(j: J, r: Records, file: &str, workers: usize, top: usize, iso: Isolation, get: &dyn Fn(&str) -> Option<String>) {
        let out = std::io::stdout().lock();
        let mut out = std::io::BufWriter::new(out);
        let mut job = Job::new(&j, Input::paths([file])).records(r).workers(workers).isolation(iso).top(top);
        if let Some(b) = get("--buffer") { job = job.buffer(if b == "array" { Buffer::Array } else { Buffer::Hash }); }
        if let Some(b) = get("--page") { job = job.page_bytes(b.parse().unwrap()); }
        let s = job.run_each(|k, v| { out.write_all(k).unwrap(); writeln!(out, "\t{v}").unwrap(); });
        match s {
            Ok(s) => if get("--stats").is_some() {
                eprintln!("wall {:.1} ms start {:.2} ms pairs {}", s.wall_ns as f64 / 1e6, s.start_ns as f64 / 1e6, s.pairs);
                for w in &s.workers {
                    eprint!("w{} ", w.number);
                    for p in PHASES { eprint!("{} {:.1} ", p.name(), w.counters.time_ns(p) as f64 / 1e6); }
                    for c in COUNTS { eprint!("{} {} ", c.name(), w.counters.get(c)); }
                    eprintln!();
                }
            },
            Err(e) => { eprintln!("error: {e}"); std::process::exit(1) }
        }
    }
    if alpha { let (j, r) = alpha_words(); go(j, r, &file, workers, top, iso, &get) } else { let (j, r) = space_words(); go(j, r, &file, workers, top, iso, &get) }
}
