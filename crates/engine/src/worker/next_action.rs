//! The next action of a worker, as a pure function of what it sees. A worker sleeps under exactly the condition that
//! this function returns [`Action::Sleep`].
//!
//! ```text
//!  receive what has arrived > map a new task > commit the open epoch > map a task that a dead worker had > give the permit back
//!  > say that the round is drained > deliver the result > sleep
//! ```

/// A worker's view of its words, its inbox and its own state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    pub job_is_over: bool,
    /// Every task of the round has been committed. Read before `has_arrived`: no later page belongs to this round, so a
    /// round that is mapped and has no arrived page is drained.
    pub round_is_mapped: bool,
    /// A page has arrived, or one that was held back may be consumed.
    pub has_arrived: bool,
    /// The worker may map: it is no pure reducer, and has not delivered its result. After that it must not map, because
    /// its pages may be held by the coordinator until another worker's result arrives, and that worker may need this
    /// one's pages.
    pub maps: bool,
    pub holds_permit: bool,
    pub permit_is_left: bool,
    /// More workers map than should, since one died for lack of memory.
    pub permit_is_wanted: bool,
    /// The round has a task that was never claimed.
    pub has_new_task: bool,
    /// The round has a task that a dead worker had claimed.
    pub has_returned_task: bool,
    /// Some tasks are mapped but not committed.
    pub has_open_epoch: bool,
    /// The worker has not reported yet that it has all pages of this round.
    pub must_drain: bool,
    /// Nothing is tainted, and the worker has not delivered its result yet.
    pub may_deliver: bool,
}

/// An action of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    End,
    Receive,
    /// Map one task. The epoch continues until it has enough.
    MapNew,
    Commit,
    /// Map one task in an epoch of its own: if it kills the worker, nothing else is lost.
    MapReturned,
    GivePermit,
    SayDrained,
    Deliver,
    Sleep,
}

pub(super) fn next_action(view: View) -> Action {
    let may_map = view.maps && (view.holds_permit && !view.permit_is_wanted || view.permit_is_left);
    match view {
        View { job_is_over: true, .. } => Action::End,
        View { has_arrived: true, .. } => Action::Receive,
        View { has_new_task: true, .. } if may_map => Action::MapNew,
        View { has_open_epoch: true, .. } => Action::Commit,
        View { has_returned_task: true, .. } if may_map => Action::MapReturned,
        View { holds_permit: true, .. } => Action::GivePermit,
        View { round_is_mapped: true, must_drain: true, .. } => Action::SayDrained,
        View { may_deliver: true, .. } => Action::Deliver,
        _ => Action::Sleep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every possible view.
    fn views() -> impl Iterator<Item = View> {
        (0..1u32 << 12).map(|bits| {
            let mut bits = (0..12).map(|bit| bits >> bit & 1 == 1);
            let mut bit = || bits.next().expect("one for each field");
            View {
                job_is_over: bit(),
                round_is_mapped: bit(),
                has_arrived: bit(),
                maps: bit(),
                holds_permit: bit(),
                permit_is_left: bit(),
                permit_is_wanted: bit(),
                has_new_task: bit(),
                has_returned_task: bit(),
                has_open_epoch: bit(),
                must_drain: bit(),
                may_deliver: bit(),
            }
        })
    }

    #[test]
    fn each_thing_to_do_is_done_and_in_this_order() {
        let idle = View { maps: true, ..View::default() };
        let permit = View { holds_permit: true, ..idle };
        let left = View { permit_is_left: true, ..idle };
        let wanted = View { permit_is_wanted: true, ..permit };
        let table = [
            (View { job_is_over: true, has_arrived: true, ..permit }, Action::End),
            (View { has_arrived: true, has_new_task: true, ..permit }, Action::Receive),
            (View { has_new_task: true, has_open_epoch: true, ..permit }, Action::MapNew),
            (View { has_new_task: true, ..left }, Action::MapNew),
            (View { has_open_epoch: true, has_returned_task: true, ..permit }, Action::Commit),
            (View { has_returned_task: true, ..permit }, Action::MapReturned),
            (View { has_returned_task: true, ..left }, Action::MapReturned),
            (permit, Action::GivePermit),
            (View { has_new_task: true, has_open_epoch: true, ..wanted }, Action::Commit),
            (View { has_new_task: true, has_returned_task: true, ..wanted }, Action::GivePermit),
            (View { round_is_mapped: true, must_drain: true, may_deliver: true, ..idle }, Action::SayDrained),
            (View { round_is_mapped: true, may_deliver: true, ..idle }, Action::Deliver),
            (View { must_drain: true, ..idle }, Action::Sleep),
            (View { has_new_task: true, has_returned_task: true, ..idle }, Action::Sleep),
            (View { maps: false, has_new_task: true, ..left }, Action::Sleep),
            (left, Action::Sleep),
            (idle, Action::Sleep),
        ];
        for (view, action) in table {
            assert_eq!(next_action(view), action, "{view:?}");
        }
    }

    #[test]
    fn nobody_sleeps_on_what_others_wait_for() {
        for view in views().filter(|view| next_action(*view) == Action::Sleep) {
            let waits =
                view.job_is_over || view.has_arrived || view.has_open_epoch || view.holds_permit || view.may_deliver;
            assert!(!(waits || view.round_is_mapped && view.must_drain), "{view:?}");
        }
    }

    #[test]
    fn only_who_may_map_maps_and_a_round_is_drained_when_nothing_arrives_any_more() {
        for view in views() {
            match next_action(view) {
                Action::MapNew => assert!(view.maps && (view.holds_permit || view.permit_is_left) && view.has_new_task),
                Action::MapReturned => assert!(view.maps && view.has_returned_task && !view.has_open_epoch),
                Action::SayDrained => assert!(view.round_is_mapped && !view.has_arrived && !view.has_open_epoch),
                Action::Deliver => assert!(!view.has_arrived && !view.holds_permit),
                _ => {}
            }
        }
    }
}
