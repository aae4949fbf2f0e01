//! The dense buffer gives the result of ten sequential lines, in any plan and whichever worker dies.

mod common;

use std::time::Duration;

use gristmill::internal::{MOMENTS, Moment};
use gristmill::options::{Buffer, Combining, Exchange, PagePolicy};
use gristmill::{Chunk, Emit, Input, Isolation, Job, MapReduce, ProgramError, Records};

fn main() {
    common::run(
        &[
            ("any_plan_gives_the_same_result", plans),
            ("a_worker_killed_at_any_moment_changes_nothing", deaths),
            ("settings_that_cannot_be_honoured_are_refused", refusals),
            ("a_key_outside_the_domain_is_named", outside),
        ],
        &[],
    );
}

/// Counts the occurrences of each byte; declares `keys` as its domain.
struct ByteCounts {
    keys: Option<usize>,
}

impl MapReduce for ByteCounts {
    type Key = u16;
    type Value = u64;

    fn keys(&self) -> Option<usize> {
        self.keys
    }

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u16, u64>) -> Result<(), ProgramError> {
        for byte in chunk.bytes() {
            out.emit(u16::from(*byte), 1);
        }
        Ok(())
    }
}

/// Has signed keys, which cannot be array indexes.
struct Signed;

impl MapReduce for Signed {
    type Key = i16;
    type Value = u64;

    fn keys(&self) -> Option<usize> {
        Some(256)
    }

    fn map(&self, _: &mut Chunk<'_>, _: &mut impl Emit<i16, u64>) -> Result<(), ProgramError> {
        Ok(())
    }
}

const DOMAIN: ByteCounts = ByteCounts { keys: Some(256) };

fn job<'j, J: MapReduce>(program: &'j J, path: &std::path::Path) -> Job<'j, J> {
    // Many tasks and small pages, so that epochs end and pages fill up.
    Job::new(program, Input::paths([path])).records(Records::Fixed(1)).split_bytes(1000).page_bytes(4096)
}

fn refusal<J: MapReduce>(job: Job<'_, J>) -> String {
    job.run().map(|_| ()).expect_err("a setting that cannot be honoured").to_string()
}

/// Writes a file of `bytes` bytes, in which 200 and above never occur; returns the count of each byte.
fn input(bytes: u32) -> (tempfile::TempDir, std::path::PathBuf, Vec<(u16, u64)>) {
    let content: Vec<u8> = (0..bytes).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 200).collect();
    let (dir, path) = common::input_of(&content);
    let mut counts = [0u64; 256];
    content.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let expected = (0..256).map(|key| (key, counts[usize::from(key)])).filter(|pair| pair.1 > 0).collect();
    (dir, path, expected)
}

fn plans() {
    let (_dir, path, expected) = input(100_003);
    for isolation in [Isolation::Process, Isolation::Thread] {
        for exchange in [Exchange::Pipelined, Exchange::Barrier] {
            for combine in [Combining::Both, Combining::Map] {
                for pages in [PagePolicy::Fresh, PagePolicy::Reuse, PagePolicy::Prealloc] {
                    for (map_workers, reduce_workers) in [(None, None), (Some(2), Some(1)), (Some(1), Some(3))] {
                        for buffer in [Buffer::Auto, Buffer::Dense] {
                            let mut job = job(&DOMAIN, &path).isolation(isolation).exchange(exchange).combine(combine);
                            job = job.pages(pages).buffer(buffer).workers(3);
                            if let (Some(map), Some(reduce)) = (map_workers, reduce_workers) {
                                job = job.map_workers(map).reduce_workers(reduce);
                            }
                            let (counts, _) = job.run().expect("the job runs");
                            assert_eq!(
                                counts.iter().collect::<Vec<_>>(),
                                expected,
                                "{isolation:?} {exchange:?} {combine:?} {pages:?} {map_workers:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Each worker of both topologies dies at its first, second, third ... moment of each kind, until it no longer reaches
/// it.
fn deaths() {
    let (_dir, path, expected) = input(12_003);
    let mut died_at = Vec::new();
    for (separate, worker) in [(false, 1), (true, 1), (true, 3)] {
        for moment in MOMENTS {
            let mut survived = 0;
            for nth in 1.. {
                let mut job = job(&SlowDomain, &path).buffer(Buffer::Dense).die_at(worker, moment, nth);
                job = if separate { job.map_workers(2).reduce_workers(2) } else { job.workers(2) };
                let (counts, summary) = job.run().expect("somebody takes its place");
                assert_eq!(counts.iter().collect::<Vec<_>>(), expected, "worker {worker} at its {nth}. {moment:?}");
                died_at.extend(summary.deaths.iter().map(|_| moment));
                // Chance decides which worker gets which task, so a single survival proves nothing.
                survived = if summary.deaths.is_empty() { survived + 1 } else { 0 };
                if survived == 2 {
                    break;
                }
            }
        }
    }
    for moment in [Moment::Claimed, Moment::Sent, Moment::Received, Moment::Flushed, Moment::Committed, Moment::Drained]
    {
        assert!(died_at.contains(&moment), "nobody died at {moment:?}");
    }
}

/// `DOMAIN`, but so slow that every worker gets a task.
struct SlowDomain;

impl MapReduce for SlowDomain {
    type Key = u16;
    type Value = u64;

    fn keys(&self) -> Option<usize> {
        DOMAIN.keys()
    }

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        DOMAIN.combiner()
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u16, u64>) -> Result<(), ProgramError> {
        std::thread::sleep(Duration::from_micros(300));
        DOMAIN.map(chunk, out)
    }
}

fn refusals() {
    let (_dir, path, _) = input(1000);
    let refused = refusal(job(&ByteCounts { keys: None }, &path).buffer(Buffer::Dense));
    assert!(refused.contains("declares no domain of keys") && refused.contains("Buffer::Hash"), "{refused}");
    let refused = refusal(job(&DOMAIN, &path).buffer(Buffer::Dense).combine(Combining::Reduce));
    assert!(refused.contains("combining in map is off"), "{refused}");
    let refused = refusal(job(&ByteCounts { keys: Some(70_000) }, &path));
    assert!(refused.contains("0..70000") && refused.contains("65536"), "{refused}");
    let refused = refusal(job(&Signed, &path));
    assert!(refused.contains("no unsigned integer"), "{refused}");
}

fn outside() {
    let (_dir, path, _) = input(1000);
    let outside = job(&ByteCounts { keys: Some(10) }, &path).run().map(|_| ()).expect_err("keys above 9").to_string();
    assert!(outside.contains("all keys are below 10"), "{outside}");
}
