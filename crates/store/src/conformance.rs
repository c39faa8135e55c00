//! The suite that every store must pass. It knows the traits [`Store`] and [`Reader`] and nothing else: a store gives
//! it a [`Place`] and runs `conformance_tests!`.

mod commits;
mod leases;
mod lists;
mod mail;
mod secrets;
mod state;
mod timers;
mod values;
pub mod world;

pub use commits::*;
pub use leases::*;
pub use lists::*;
pub use mail::*;
pub use secrets::*;
pub use state::*;
pub use timers::*;
pub use values::*;

use crate::commit::{Applied, Commit, Position, Write};
use crate::store::{Reader, Store};

/// Where a store lies. It is empty when it is made; opening it again finds what was written.
pub trait Place {
    type Store: Store;

    fn open(&self) -> Self::Store;
}

/// One test per case. The expression gives a new, empty [`Place`].
#[macro_export]
macro_rules! conformance_tests {
    ($place:expr) => {
        $crate::conformance_tests! { @each $place;
            a_commit_is_read_back_whole
            a_batch_is_applied_in_order
            positions_rise_over_all_executions
            a_journal_is_read_from_any_version_on
            an_execution_is_created_once
            a_conflict_writes_nothing
            a_conflict_refuses_later_commits_of_its_execution_and_no_others
            what_follows_a_refused_creation_is_refused
            a_commit_of_an_unknown_execution_is_a_conflict
            an_answer_counts_under_the_open_fence_only
            reopening_loses_nothing
            an_offer_is_leased_once
            a_commit_may_lease_its_own_offers
            a_new_offer_clears_the_lease_before_it
            a_change_within_an_offer_keeps_its_lease
            a_cursor_needs_the_lease
            nothing_is_leased_after_a_refused_commit
            what_must_stop_is_listed_until_it_has
            mail_is_consumed_exactly_once
            mail_comes_with_its_commit
            an_answer_waits_until_it_is_fetched
            settled_mail_is_not_given_again
            numbers_of_mail_are_never_used_twice
            offers_are_listed_page_by_page
            executions_are_listed_newest_first
            executions_are_listed_by_phase
            what_goes_on_by_itself_is_found
            definitions_are_numbered_per_name
            nets_are_found_by_digest
            logs_are_read_on_from_a_place
            lists_do_not_go_on_from_nowhere
            timers_come_due_in_order_and_page_by_page
            a_hold_keeps_timers_from_coming_due
            outputs_and_items_are_loaded_by_need
            imported_outputs_are_loaded_by_need
            a_forked_journal_is_an_execution_of_its_own
            answers_are_loaded_as_the_journal_tells_them
            numbers_come_back_as_they_were
            rows_are_what_the_journal_says_after_every_commit
        }
    };
    (@each $place:expr; $($case:ident)*) => {
        $(#[test]
        fn $case() {
            $crate::conformance::$case(&$place);
        })*
    };
}

fn commit(commit: Commit) -> Write {
    Write::Commit(Box::new(commit))
}

/// Writes that must be answered as written.
fn written(store: &mut impl Store, writes: &[Write]) -> Vec<Applied> {
    let applied = store.write(writes).expect("a healthy store");
    for (write, applied) in writes.iter().zip(&applied) {
        let refused = matches!(applied, Applied::Conflict | Applied::Fenced | Applied::Duplicate);
        assert!(!refused, "{write:?} was answered {applied:?}");
    }
    applied
}

/// The answer to one write.
fn answered(store: &mut impl Store, write: Write) -> Applied {
    let applied = store.write(&[write]).expect("a healthy store");
    assert_eq!(applied.len(), 1, "one answer for one write");
    applied[0]
}

fn position(applied: Applied) -> Position {
    match applied {
        Applied::Committed(position) => position,
        other => panic!("a commit was answered {other:?}"),
    }
}

fn reader<S: Store>(store: &S) -> S::Reader {
    store.reader().expect("a reader")
}

/// Everything a list gives, read in pages of `size`.
fn pages<T: Clone>(size: usize, mut page: impl FnMut(Option<&T>, usize) -> Vec<T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    loop {
        let more = page(found.last(), size);
        assert!(more.len() <= size, "a page of {size} has {} entries", more.len());
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Everything of one execution, as text, to see whether anything changed.
fn everything(reader: &mut impl Reader, execution: windlass_kernel::ExecutionId) -> String {
    let rows = reader.rows(execution).expect("a healthy store");
    let journal = reader.journal(execution, 0, usize::MAX).expect("a healthy store");
    let inbox = reader.inbox(None, usize::MAX).expect("a healthy store");
    let stops = reader.stops(None, usize::MAX).expect("a healthy store");
    let offers = reader.offers(None, usize::MAX).expect("a healthy store");
    format!("{rows:?}\n{journal:?}\n{inbox:?}\n{stops:?}\n{offers:?}")
}
