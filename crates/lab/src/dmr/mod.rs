//! DMR (Yu and Zhang 2017; docs/bibliography.md): how workers share the work, and what they do with pairs.

pub mod comparisons;
