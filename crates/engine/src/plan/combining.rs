//! Combining: the buffer between map function and pages, and the stations at which values of one key become one.

use crate::error::{Error, Result};
use crate::plan::known::Known;
use crate::plan::reason::Reason::{self, Asked, Because, Instead};
use crate::plan::settings::{Buffer, Combining};

/// The largest key domain for which the plan chooses a dense buffer by itself: its array still fits in the second-level
/// cache.
const DENSE_KEYS_MAX: usize = 1 << 16;

/// The reason to ignore an option about rounded values.
const AT_THE_END: &str = "rounded values are combined at the end, in ascending order";

/// The stations at which values combine, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CombiningPlan {
    pub in_map: bool,
    /// Whether reducers combine pairs as they arrive. If not, they combine at the end.
    pub in_reduce: bool,
    /// A reducer that keeps all values begins to combine when one key has gathered more values than this.
    pub after: Option<u32>,
    /// Whether values combine in ascending order, so that rounded sums have the same bits.
    pub in_order: bool,
    /// Whether values combine in order of arrival although the result depends on it.
    pub rounds_as_it_comes: bool,
}

/// Chooses the buffer of a map worker.
pub(crate) fn buffer(known: &Known<'_>) -> Result<(Buffer, Reason)> {
    let (settings, combines, keys) = (known.settings, known.program.combines, known.program.keys);
    let in_map = combines && matches!(settings.combine, Combining::Both | Combining::Map);
    let refused = |why: String| Err(Error::Setting(why));
    let chosen = match (settings.buffer, keys) {
        (Buffer::Auto, Some(keys)) if in_map && keys <= DENSE_KEYS_MAX => (Buffer::Dense, Reason::Keys(keys)),
        (Buffer::Auto, _) if in_map && known.combines_in_order() => {
            (Buffer::Hash, Because("the values of a task combine"))
        }
        (Buffer::Auto, _) if in_map => {
            let why = "values combine; where keys hardly repeat, pairs go past the table";
            (Buffer::Hash, Because(why))
        }
        (Buffer::Auto, _) if combines => (Buffer::Array, Because("nothing is combined in map")),
        (Buffer::Auto, _) => (Buffer::Array, Because("the job has no combiner")),
        (chosen @ (Buffer::Hash | Buffer::Dense), _) if !in_map => {
            let name = if chosen == Buffer::Hash { "hash" } else { "dense" };
            let why = if combines { "combining in map is off" } else { "the job has no combiner" };
            return refused(format!("the {name} buffer combines values, but {why}; use Buffer::Array"));
        }
        // A job without a combiner has nothing to combine anywhere.
        (Buffer::Array, _) if in_map && settings.combine == Combining::Map => {
            let why = "the array buffer combines nothing, and values were to be combined in map only: use Buffer::Hash, or combine them in reduce (Job::combine)";
            return refused(why.into());
        }
        (Buffer::Dense, None) => {
            let why = "the dense buffer needs a place for every key, but the job declares no domain of keys \
                       (MapReduce::keys); use Buffer::Hash";
            return refused(why.into());
        }
        (chosen, _) => (chosen, Asked),
    };
    let keys_max = known.program.keys_max;
    match keys.filter(|keys| *keys as u64 > keys_max) {
        None => Ok(chosen),
        Some(keys) if keys_max == 0 => {
            refused(format!("the job declares the keys 0..{keys}, but its keys are of no unsigned integer type"))
        }
        Some(keys) => refused(format!("the job declares the keys 0..{keys}, but its key type has only {keys_max}")),
    }
}

/// Chooses the stations at which values combine.
pub(crate) fn combining(known: &Known<'_>, buffer: Buffer) -> (CombiningPlan, Reason) {
    let (settings, combines, in_order) = (known.settings, known.program.combines, known.combines_in_order());
    let in_map = buffer != Buffer::Array;
    let in_reduce = combines && !in_order && matches!(settings.combine, Combining::Both | Combining::Reduce);
    let why = match (settings.combine, in_map, in_reduce) {
        (Combining::Map | Combining::Reduce, ..) if !combines => Instead("this job combines no values"),
        (Combining::Map | Combining::Reduce, ..) if in_order => Instead(AT_THE_END),
        _ if !combines => Because("the job has no combiner"),
        (Combining::Map | Combining::Reduce | Combining::Off, ..) => Asked,
        (Combining::Both, true, true) => Because("less is sent, and memory grows with the keys, not with the pairs"),
        (Combining::Both, true, false) => {
            Because("each task adds up in its own order, and tasks are added up in order")
        }
        (Combining::Both, false, true) => Because("the array buffer combines nothing"),
        (Combining::Both, false, false) => Because("in ascending order, so that rounded sums have the same bits"),
    };
    let rounds_as_it_comes = known.program.rounds && !settings.deterministic;
    (CombiningPlan { in_map, in_reduce, after: None, in_order, rounds_as_it_comes }, why)
}

/// Chooses the number of values of a key after which a reducer that keeps them begins to combine.
pub(crate) fn combine_after(known: &Known<'_>, combining: CombiningPlan) -> Result<(Option<u32>, Reason)> {
    match known.settings.combine_after {
        None => Ok((None, Because("no number of values was asked for"))),
        Some(_) if !known.program.combines => {
            Err(Error::Setting("Job::combine_after needs a combiner, and this job has none".into()))
        }
        Some(_) if combining.in_order => Ok((None, Instead(AT_THE_END))),
        Some(_) if combining.in_reduce => Ok((None, Instead("values are combined in reduce as they arrive"))),
        after => Ok((after, Asked)),
    }
}
