//! The suite that every store must pass. It knows the traits of the port and nothing else: a store implements
//! [`StoreSite`] and runs `conformance_tests!` for what an engine needs; a store that keeps everything a server needs
//! implements [`ServerSite`], too, and runs `conformance_tests!(server …)` in addition.

mod access;
mod catalog;
mod commits;
mod leases;
mod lists;
mod mail;
mod memories;
mod objects;
mod outbox;
mod quarantine;
mod registry;
mod retention;
mod schedule_queues;
mod schedules;
mod secrets;
mod state;
mod tasks;
mod timers;
mod values;
mod workers;
pub mod world;

pub use access::*;
pub use catalog::*;
pub use commits::*;
pub use leases::*;
pub use lists::*;
pub use mail::*;
pub use memories::*;
pub use objects::*;
pub use outbox::*;
pub use quarantine::*;
pub use registry::*;
pub use retention::*;
pub use schedule_queues::*;
pub use schedules::*;
pub use secrets::*;
pub use state::*;
pub use tasks::*;
pub use timers::*;
pub use values::*;
pub use workers::*;

use crate::commit::{Applied, Commit, Position, Write};
use crate::entry::Entry;
use crate::secrets::Secrets;
use crate::server_reader::ServerReader;
use crate::store::{Reader, Store};

/// The place of a store. It is empty when it is made; opening it again finds what was written.
pub trait StoreSite {
    type Store: Store;

    fn open(&self) -> Self::Store;
}

/// The place of a store with everything that a server reads.
pub trait ServerSite: StoreSite<Store: Store<Reader: ServerReader>> {
    type Secrets: Secrets;

    /// Opens the secrets of a store that was opened before.
    fn secrets(&self) -> Self::Secrets;
}

/// Makes one test per case. The expression makes a new, empty [`StoreSite`], or [`ServerSite`] after `server`.
#[macro_export]
macro_rules! conformance_tests {
    (@each $site:expr; $($case:ident)*) => {
        $(#[test]
        fn $case() {
            $crate::conformance::$case(&$site);
        })*
    };
    (server $site:expr) => {
        $crate::conformance_tests! { @each $site;
            versions_of_a_workflow_are_listed_newest_first
            workflows_are_listed_by_status_and_name_until_they_are_deleted
            versions_of_older_compilers_are_listed_until_they_are_compiled_again
            the_holder_of_an_idempotency_key_is_found
            executions_of_a_workflow_are_counted_up_to_a_bound
            durations_are_those_of_completed_executions
            a_hook_belongs_to_one_workflow_of_a_tenant
            tasks_of_a_tenant_are_listed_until_they_are_answered
            gates_of_a_tenant_are_listed_until_they_open
            held_executions_of_a_tenant_are_listed_until_they_are_resumed_or_end
            a_tenant_is_created_and_changed
            a_token_is_stored_used_revoked_once_and_deleted
            the_audit_log_is_read_newest_first_by_its_tenant
            only_a_change_that_takes_effect_is_audited
            memories_are_found_by_key_prefix_and_words_within_their_workflow
            an_execution_with_a_webhook_is_listed_from_its_first_commit_on
            deliveries_have_one_numbering_and_wait_in_order
            an_outbox_is_closed_when_nothing_is_pending_and_opened_by_a_redelivery
            deliveries_to_a_receiver_that_was_given_up_are_given_up
            deliveries_are_listed_newest_first_by_their_tenant
            a_schedule_has_one_name_and_is_changed_from_its_newest_revision
            a_tenant_reads_its_own_schedules_only
            schedules_of_a_tenant_are_counted
            schedules_of_triggers_follow_the_versions_of_their_workflow
            sch_02_sch_13_due_occurrences_become_runs_exactly_once
            sch_03_a_run_is_claimed_once_and_within_the_policies_of_its_schedule
            sch_05_sch_15_only_the_holder_of_a_run_ends_it_and_its_end_is_final
            sch_06_sch_07_a_failed_run_and_its_retry_are_one_write
            sch_09_the_last_failed_attempt_is_a_dead_letter
            sch_10_sch_11_an_expired_lease_returns_a_claimed_run_and_fails_a_running_one
            sch_14_a_renewed_lease_does_not_expire
            sch_23_a_newer_occurrence_supersedes_one_that_waits
            occurrences_beyond_a_full_queue_are_skipped_with_that_reason
            a_backfill_starts_what_has_no_run_and_what_was_skipped
            a_second_backfill_of_the_same_time_starts_nothing
            a_dead_letter_is_redriven_while_the_queue_has_room
            a_dead_letter_is_discarded_although_the_queue_is_full
            sch_23_a_redriven_occurrence_supersedes_one_that_waits
            a_notice_is_written_with_its_dead_letter_and_sent_until_it_arrives
            runs_are_pruned_with_their_whole_occurrence
            an_open_dead_letter_keeps_its_runs
            a_run_that_waits_can_be_cancelled
            a_dead_letter_is_resolved_once
            a_run_without_a_lease_ends_with_its_execution
            a_schedule_is_deleted_with_its_runs_unless_one_is_active
            revisions_of_an_action_are_kept_until_it_is_deleted
            a_routing_target_is_put_polled_and_deleted_by_its_tenant
            steps_that_wait_for_their_route_are_found_until_they_go_on
            copies_of_artifacts_are_uploaded_and_deleted_by_attempts
            another_object_store_has_no_copies_yet
            every_tenant_has_its_earliest_objects_listed
            executions_that_wait_for_uploads_are_found_with_what_they_name
            a_quarantined_execution_is_listed_and_not_worked_on
            an_unfinished_execution_in_quarantine_is_not_continued
            an_abandoned_execution_is_over_and_keeps_its_journal
            a_forgotten_execution_is_deleted_in_pieces_and_no_other_is
            rows_of_a_forgotten_execution_are_not_taken_for_those_of_a_new_one
            an_execution_that_is_needed_is_not_forgettable
            an_execution_stays_while_its_sub_executions_have_its_large_values
            an_answer_that_is_not_fetched_protects_an_execution_for_a_time
            an_execution_that_is_needed_since_it_was_listed_is_not_forgotten
            every_artifact_that_a_row_refers_to_is_found
            a_check_sees_every_row_of_a_sound_store
            a_check_finds_no_problem_in_executions_of_every_kind
            sessions_of_workers_are_kept_until_they_are_closed
            receipts_of_reports_are_kept_until_they_are_dropped_or_their_session_is_closed
            a_group_of_workers_belongs_to_one_tenant
            an_artifact_belongs_to_the_execution_that_stored_it_and_its_sub_executions
            a_secret_is_read_back_and_listed_by_name
            versions_follow_each_other
            a_deleted_secret_is_gone
            rewrapping_changes_all_or_nothing
            tenants_have_secrets_of_their_own
        }
    };
    ($site:expr) => {
        $crate::conformance_tests! { @each $site;
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
            progress_needs_the_lease
            nothing_is_leased_after_a_refused_commit
            what_must_stop_is_listed_until_it_has
            mail_is_consumed_exactly_once
            mail_comes_with_its_commit
            an_answer_waits_until_it_is_fetched
            settled_mail_is_not_given_again
            numbers_of_mail_are_never_used_twice
            mail_of_one_execution_is_listed_oldest_first
            offers_are_listed_page_by_page
            executions_are_listed_newest_first
            executions_are_listed_by_phase
            executions_are_found_by_what_was_recorded_with_their_start
            executions_are_found_by_tag_and_phase_as_it_changes
            an_execution_is_listed_with_its_newest_retry
            open_executions_of_a_tenant_are_counted_up_to_a_bound
            an_idempotency_key_starts_one_execution_until_it_expires
            what_goes_on_by_itself_is_found
            definitions_are_numbered_per_name
            a_workflow_is_found_by_its_own_tenant_alone
            nets_are_found_by_digest
            logs_are_read_on_from_a_place
            lists_do_not_go_on_from_nowhere
            timers_come_due_in_order_and_page_by_page
            a_hold_keeps_timers_from_coming_due
            outputs_and_items_are_loaded_by_need
            imported_outputs_are_loaded_by_need
            a_forked_journal_is_an_execution_of_its_own
            answers_are_loaded_as_the_journal_has_them
            an_artifact_is_loaded_for_its_own_tenant_alone
            numbers_come_back_as_they_were
            rows_are_what_the_journal_says_after_every_commit
        }
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

fn entry(store: &mut impl Store, entry: Entry) -> Applied {
    answered(store, Write::Entry(Box::new(entry)))
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

/// Reads a whole list in pages of `size`.
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

/// Returns all rows of one execution, as text, to detect changes.
fn everything(reader: &mut impl Reader, execution: windlass_kernel::ExecutionId) -> String {
    let rows = reader.rows(execution).expect("a healthy store");
    let journal = reader.journal(execution, 0, usize::MAX).expect("a healthy store");
    let inbox = reader.inbox(None, usize::MAX).expect("a healthy store");
    let stops = reader.stops(None, usize::MAX).expect("a healthy store");
    let offers = reader.offers(None, usize::MAX).expect("a healthy store");
    format!("{rows:?}\n{journal:?}\n{inbox:?}\n{stops:?}\n{offers:?}")
}
