//! DMR's figures and tables, what the paper found, and when this machine agrees.

use super::experiments::Experiments;
use super::figures::{against, allocators, best, caches, channels, exchange, locks, pairs, speed_up, start_up};
use crate::page::{Answer, Item, Paper};

pub static PAPER: Paper<Experiments> =
    Paper { name: "dmr", title: "DMR 1.0, design and implementation (Yu and Zhang 2017)", about: ABOUT, items: &ITEMS };

const ABOUT: &str = "Only the text of the paper was read, not its pictures, so no height of a curve is known; it does not describe its machine. \
    `The model` is a small MapReduce of this lab, which does what Phoenix and DMR do. A worker of Phoenix is a thread that maps and reduces; one \
    of DMR is two processes, of which one maps and one reduces, so with one worker DMR has two processors. The engine is Gristmill. Inputs of \
    the model are in memory: 32 MB for word count, 200 MB for histogram and for linear regression, 100 MB for string match, 1000 x 1000 \
    numbers for PCA (the paper's with `--size paper`, less with `--quick`). Numbers are medians of the rounds; in brackets are the least and \
    the greatest, of quotients those of any two runs. Times are level if their ranges overlap, or the medians differ by at most a hundredth; a claim that one is less is then \
    undecided.";

const ARRAY: &str = "crates/lab/src/dmr/model/phoenix.rs builds it, a table for each map worker and reduce worker. The engine has no \
                     array that both touch: pairs go from a map worker to a reduce worker in pages (ARCHITECTURE.md)";

const ITEMS: [Item<Experiments>; 24] = [
    Item {
        label: "figure 1",
        title: "speed-up of Phoenix",
        paper: "With the C library's allocator every application gets slower with more than 16 cores, and most do with more than 8.",
        agrees_if: "every application is faster with more workers as long as each has a processor and there are at most 16, and \
                    slower with more; it takes 32 processors to ask all of it",
        ask: speed_up::figure_1,
    },
    Item {
        label: "figure 2",
        title: "the intermediate data of Phoenix is a global array",
        paper: "A row for each map task, a column for each reduce task, and a barrier between map and reduce.",
        agrees_if: "",
        ask: |_| Ok(Answer::drawing(ARRAY)),
    },
    Item {
        label: "figure 3",
        title: "Phoenix with jemalloc against Phoenix with the C library's allocator",
        paper: "With many cores most applications are faster with jemalloc.",
        agrees_if: "with 32 workers on at least 16 processors, more than half of the applications take less time with jemalloc. An \
                    application does not count if its allocations take less than a hundredth of the time at 100 ns each",
        ask: allocators::figure_3,
    },
    Item {
        label: "figure 4",
        title: "speed-up of Phoenix with jemalloc",
        paper: "All get faster from 1 to 8 cores; word count and histogram get slower with more than 8, linear regression, string \
                match and PCA with more than 16.",
        agrees_if: "each application is faster with more workers up to that number, as long as each has a processor, and slower \
                    with more; it takes 32 processors to ask all of it",
        ask: speed_up::figure_4,
    },
    Item {
        label: "figure 5",
        title: "the share of the lock of the address space in Phoenix",
        paper: "It rises quickly with more than 8 cores: 39.6 % of the time of histogram with 16 and 51.61 % with 32. With the C \
                library's allocator 85.76 % of it come from page faults and 14.17 % from mprotect, with jemalloc 89.82 % from page \
                faults and 10.18 % from mmap.",
        agrees_if: "histogram spends a tenth of its time or more in locks with 16 workers, each with a processor, and at least \
                    twice the share that it spends with 8",
        ask: locks::figure_5,
    },
    Item {
        label: "figure 6",
        title: "the address space is protected by mmap_sem",
        paper: "All threads of a process share a tree of areas and one lock. Page faults take it to read, mmap, munmap and mprotect \
                to write.",
        agrees_if: "",
        ask: |_| {
            Ok(Answer::drawing(
                "workers of the engine are processes, each with an address space and a lock of its own (`--isolation process`, the \
                 default); newer kernels have a lock for each area, too, which page faults take first",
            ))
        },
    },
    Item {
        label: "figure 7",
        title: "the global array again",
        paper: "As figure 2.",
        agrees_if: "",
        ask: |_| Ok(Answer::drawing(ARRAY)),
    },
    Item {
        label: "figure 8",
        title: "speed-up of Phoenix without a combiner",
        paper: "Up to 4 cores more of them help; beyond, the time grows, most of all that of histogram, word count and PCA. The paper divides the \
                time by that of one core here.",
        agrees_if: "these three are faster with more workers up to 4, as long as each has a processor, and slower with more; it \
                    takes 8 processors to ask all of it",
        ask: speed_up::figure_8,
    },
    Item {
        label: "figure 9",
        title: "the share of the lock in Phoenix without a combiner",
        paper: "40.5 % of the time of histogram with 16 cores, 71.25 % with 32; it comes from page faults. The paper does not say that there is \
                no combiner; figure 8 is without one.",
        agrees_if: "histogram spends a tenth of its time or more in locks with 16 workers, each with a processor, and at least \
                    twice the share that it spends with 8",
        ask: locks::figure_9,
    },
    Item {
        label: "figure 10",
        title: "producers and consumers in MRPhi: a queue with a lock for each reducer",
        paper: "A drawing: map workers wait for the lock of the queue, and the longer the more threads there are. A queue of fixed size stops \
                them when it is full, one that grows allocates memory.",
        agrees_if: "with 32 workers a page costs more processor time through a queue with a lock than through a mailbox without \
                    one, and the difference is larger than with one worker; it takes 16 processors",
        ask: channels::figure_10,
    },
    Item {
        label: "figure 11",
        title: "producers and consumers in DMR: a channel for each pair of workers, whose pages are remapped",
        paper: "A drawing: no producer waits for another, and mapping other memory in place of a full buffer, by DMR's own kernel, is fast.",
        agrees_if: "with as many workers as processors (two at least), a page that is remapped costs less processor time than one \
                    that goes through a queue with a lock, and less than one that goes through a mailbox. If not, it cannot be asked: \
                    DMR's kernel may be faster than the calls of an ordinary one",
        ask: channels::figure_11,
    },
    Item {
        label: "figure 12",
        title: "each map worker has a pool of buffers",
        paper: "A buffer for each reduce worker; which one a pair goes to is told by its key.",
        agrees_if: "",
        ask: |_| {
            Ok(Answer::drawing(
                "each map worker has an open page for each partition, which goes to the partition's owner when it is full \
                 (ARCHITECTURE.md, steps 6 and 7; crates/engine/src/buffer)",
            ))
        },
    },
    Item {
        label: "figure 13",
        title: "DMR with hash buffers against Phoenix",
        paper: "Times stay level as cores are added; DMR is faster for histogram, PCA and string match, but not as much as was hoped.",
        agrees_if: "with as many workers as processors (16 at least, 32 at most), DMR takes less time for these three, of those in which \
                    pairs take a hundredth of the time or more",
        ask: against::figure_13,
    },
    Item {
        label: "figure 14",
        title: "cache misses of hash and array",
        paper: "Two pictures; the left one: hash buffers are copied together before they are sent, which takes much time and misses the cache; \
                arrays have fewer misses, and so are faster. The text does not say what the right one shows.",
        agrees_if: "arrays have fewer cache misses in every application in which pairs take a hundredth of the \
                    time or more",
        ask: caches::figure_14,
    },
    Item {
        label: "figure 15",
        title: "DMR with arrays against Phoenix",
        paper: "DMR is faster for histogram, word count and PCA, level for string match, and slower for linear regression.",
        agrees_if: "the same holds with as many workers as processors (16 at least, 32 at most), of applications in which pairs take a \
                    hundredth of the time or more",
        ask: against::figure_15,
    },
    Item {
        label: "figure 16",
        title: "Phoenix with jemalloc against Phoenix with the C library's allocator, without a combiner",
        paper: "With many cores histogram, word count and PCA are faster with jemalloc.",
        agrees_if: "with 32 workers on at least 16 processors, these three take less time with jemalloc. An application does not \
                    count if its allocations take less than a hundredth of the time at 100 ns each",
        ask: allocators::figure_16,
    },
    Item {
        label: "figure 17",
        title: "speed-up of Phoenix with jemalloc, without a combiner",
        paper: "Word count and histogram get slower with more than 8 cores. The lock takes 24.04 % of the time of word count with \
                16 cores, and 39.91 % with 32.",
        agrees_if: "these two are faster with more workers up to 8, as long as each has a processor, and slower with more; it takes \
                    16 processors to ask all of it",
        ask: speed_up::figure_17,
    },
    Item {
        label: "figure 18",
        title: "DMR with arrays against Phoenix with jemalloc, without a combiner",
        paper: "DMR is faster for all but linear regression, and far faster with 16 and 32 cores.",
        agrees_if: "with as many workers as processors (16 at least, 32 at most), DMR takes less time for all but linear regression, and \
                    more for that, of those in which pairs take a hundredth of the time or more",
        ask: against::figure_18,
    },
    Item {
        label: "section 4.2",
        title: "the pipeline with one worker",
        paper: "One unfinished sentence, without numbers: with a single thread the advantage of the pipeline shows.",
        agrees_if: "with one worker the pipeline takes less time than a barrier that holds all pages in every application in which pairs \
                    take a hundredth of the time or more; where the times are level, it is undecided",
        ask: exchange::section_4_2,
    },
    Item {
        label: "figure 19",
        title: "start-up of DMR",
        paper: "0.25 to 0.35 s, much the same for all applications and numbers of cores, and far longer than that of Phoenix.",
        agrees_if: "processes with their channels take at least ten times as long to start as threads, with workers that have a processor, \
                    and the longest start is at most twice the shortest. If not, it cannot be asked: DMR's kernel does most of it",
        ask: start_up::figure_19,
    },
    Item {
        label: "figure 20",
        title: "start-up of Phoenix",
        paper: "0.0002 to 0.002 s.",
        agrees_if: "threads take 0.002 s or less to start, for each application and up to 32 workers that each have a processor; \
                    where the range of the slowest contains that, it is undecided",
        ask: start_up::figure_20,
    },
    Item {
        label: "figure 21",
        title: "the share of start-up in the time of DMR",
        paper: "It is largest for linear regression, which therefore is slower than with Phoenix.",
        agrees_if: "with --size paper, linear regression has the largest share with as many workers as processors (32 at most)",
        ask: start_up::figure_21,
    },
    Item {
        label: "table 1",
        title: "the applications, their pairs and keys",
        paper: "Word count of 100 MB: 17,941,890 pairs, 123,748 keys. Histogram of 1.4 GB: 761,903 and 692. Linear regression of \
                500 MB: 2590 and 5. PCA of 4000 x 4000: 8,002,000 each. Product of 2000 x 2000: none. K-means of 100,000 points: \
                340,300,000 and 1000. String match of 500 MB: none.",
        agrees_if: "with --size paper, pairs and keys of word count, linear regression, PCA and the product are within a tenth of the \
                    table's; those of the others depend on the values of the data, which the paper does not give",
        ask: pairs::table_1,
    },
    Item {
        label: "table 2",
        title: "the best strategy of each application",
        paper: "Histogram and word count: array, no combiner. Linear regression and PCA: hash, combiner. String match: hash, no \
                combiner. We read it as the combiner in map: DMR's reduce combines in any case.",
        agrees_if: "the paper's strategy is among the fastest of all that the model has, for each application; an application is \
                    undecided if its pairs take less than a hundredth of the time",
        ask: best::table_2,
    },
];
