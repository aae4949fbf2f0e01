//! The dense buffer gives the answer of ten sequential lines, however the job runs. One process without threads, because
//! its workers are forked.

use gristmill::{
    Buffer, Combine, Combining, Emit, Exchange, Input, Isolation, Job, MapReduce, PagePolicy, Records, Split,
};

/// How often each byte occurs; declares `keys` as its domain.
struct ByteCounts {
    keys: Option<usize>,
}

impl MapReduce for ByteCounts {
    type Key = u16;
    type Value = u64;
    const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);

    fn keys(&self) -> Option<usize> {
        self.keys
    }

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u16, u64>) {
        for byte in split.bytes() {
            out.emit(u16::from(*byte), 1);
        }
    }
}

/// The same with signed keys, which number no places.
struct Signed;

impl MapReduce for Signed {
    type Key = i16;
    type Value = u64;
    const COMBINE: Option<Combine<u64>> = Some(|a, b| a + b);

    fn keys(&self) -> Option<usize> {
        Some(256)
    }

    fn map(&self, _: &mut Split<'_>, _: &mut impl Emit<i16, u64>) {}
}

const DOMAIN: ByteCounts = ByteCounts { keys: Some(256) };

fn job<'j, J: MapReduce>(program: &'j J, path: &std::path::Path) -> Job<'j, J> {
    // Many tasks and small pages, so that epochs end and pages fill.
    Job::new(program, Input::paths([path])).records(Records::Fixed(1)).split_bytes(1000).page_bytes(4096)
}

fn refusal<J: MapReduce>(job: Job<'_, J>) -> String {
    job.run().map(|_| ()).expect_err("a setting that cannot be honoured").to_string()
}

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("bytes");
    // Some bytes never occur: 200 and those above.
    let content: Vec<u8> = (0..100_003u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 200).collect();
    std::fs::write(&path, &content).expect("written");
    let mut expected = [0u64; 256];
    for byte in &content {
        expected[usize::from(*byte)] += 1;
    }
    let expected: Vec<(u16, u64)> =
        (0..256).map(|key| (key, expected[usize::from(key)])).filter(|pair| pair.1 > 0).collect();

    // Any plan gives the answer of the lines above.
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

    // What cannot be honoured is refused, with the way out.
    let refused = refusal(job(&ByteCounts { keys: None }, &path).buffer(Buffer::Dense));
    assert!(refused.contains("declares no domain of keys") && refused.contains("--buffer hash"), "{refused}");
    let refused = refusal(job(&DOMAIN, &path).buffer(Buffer::Dense).combine(Combining::Reduce));
    assert!(refused.contains("combining in map is off"), "{refused}");
    let refused = refusal(job(&ByteCounts { keys: Some(70_000) }, &path));
    assert!(refused.contains("0..70000") && refused.contains("65536"), "{refused}");
    let refused = refusal(job(&Signed, &path));
    assert!(refused.contains("no unsigned integer"), "{refused}");

    // A key outside the domain is named.
    let outside = job(&ByteCounts { keys: Some(10) }, &path).run().map(|_| ()).expect_err("keys above 9").to_string();
    assert!(outside.contains("all keys are below 10"), "{outside}");
}
