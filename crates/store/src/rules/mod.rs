//! The rules of a store: which writes are refused, in which order, and what an accepted write changes.
//!
//! Every rule is a function over facts that a store has looked up, so that all stores answer alike: a new store adds
//! lookups and statements, and no rule. Where a rule needs several lookups, it asks for them one by one through a trait
//! and stops at the first refusal.

mod access;
mod commits;
mod definitions;
mod deliveries;
mod hooks;
mod mail;
mod objects;
mod offers;
mod pages;
mod quarantine;
mod registry;
mod retention;
mod schedule_queues;
mod schedule_runs;
mod schedules;
mod tasks;
mod timers;
mod usage;
mod values;
mod workflows;

pub use access::{TokenFacts, is_audited, judge_token, judge_token_revocation};
pub use commits::{
    CommitFacts, CommitVerdict, KeyHolder, Refusals, find_broken_promise, holds_key, judge_commit,
};
pub use definitions::{
    DefinitionFacts, DefinitionVerdict, WorkflowFacts, audit_definition, judge_definition,
};
pub use deliveries::{
    DeliveryStatus, OutboxStatus, begin_delivery, continues_numbering, give_up_receiver,
    judge_outbox_closing, redeliver,
};
pub use hooks::{judge_hooks_read, may_claim_hook};
pub use mail::{MailEnding, MailFacts, end_mail, may_fetch};
pub use objects::{ObjectRow, change_object, end_claim, judge_place, move_object, put_object};
pub use offers::{OfferClaim, OfferFacts, judge_offer_write, keeps_lease};
pub use pages::fill_page;
pub use quarantine::{ABANDONED_ROWS, AbandonedHead, WorkRows, abandon_head};
pub use registry::{ActionVerdict, KnownAction, apply_poll, judge_action, put_target};
pub use retention::{EndedFacts, may_forget};
pub use schedule_queues::{
    LetterResolution, QUEUE_MAX, first_row, is_backfilled, judge_added_runs, judge_plan, may_prune,
    plan_runs, resolve_letter, supersede_runs,
};
pub use schedule_runs::{
    FollowUp, LEASE_EXPIRED, LeaseRecovery, RunClaimFacts, RunEnd, RunEndFacts, cancel_waiting_run, end_row,
    end_run, is_lease_over, is_new_attempt, judge_run_claim, last_run_after, letter_row, may_renew,
    recover_lease, retry_row, signal_held_run,
};
pub use schedules::{
    ScheduleFacts, TriggeredChange, TriggeredFacts, change_schedule, is_name_taken, judge_schedule_deletion,
    replace_triggered,
};
pub use tasks::is_newly_asked;
pub use timers::{TimerPlace, TimerTable, gate_timer, head_timer, merge_timers, run_timer, table_fires};
pub use usage::{count_action, count_definition, count_memory, free_action};
pub use values::{JournalLookup, artifact_keys, load_values};
pub use workflows::{WORKFLOW_DELETION, WorkflowDeletion, judge_workflow_change};
