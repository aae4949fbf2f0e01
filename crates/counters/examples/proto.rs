use gristmill_counters::kernel_symbols::Symbols;
use gristmill_os::kernel_calls::KernelCalls;
use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let symbols = Symbols::read(&gristmill_counters::files::here).expect("symbols");
    let calls = KernelCalls::start(&[0, 1], Duration::from_millis(1)).expect("calls");
    let mut child = Command::new(&a[0]).args(&a[1..]).spawn().expect("child");
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut whole: HashMap<String, usize> = HashMap::new();
    loop {
        calls.take(&mut |chain| {
            let names: Vec<&str> = chain.iter().map(|a| symbols.name(*a).unwrap_or("?")).collect();
            *whole.entry(names.join(" < ")).or_default() += 1;
            let call = names.iter().rev().take(4).copied().collect::<Vec<_>>().join(" > ");
            *counts.entry(format!("{call} ... {}", names[0])).or_default() += 1;
        });
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut all: Vec<_> = counts.into_iter().collect();
    all.sort_by_key(|x| std::cmp::Reverse(x.1));
    println!("{} samples", all.iter().map(|x| x.1).sum::<usize>());
    for (n, c) in all.iter().take(12) {
        println!("{c} {n}");
    }
    let mut all: Vec<_> = whole.into_iter().collect();
    all.sort_by_key(|x| std::cmp::Reverse(x.1));
    for (n, c) in all.iter().take(6) {
        println!("   {c} {n}");
    }
}
