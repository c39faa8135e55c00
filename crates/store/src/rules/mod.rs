//! The rules of a store: which writes are refused, in which order, and what an accepted write changes.
//!
//! Every rule is a function over facts that a store has looked up, so that all stores answer alike: a new store adds
//! lookups and statements, and no rule. Where a rule needs several lookups, it asks for them one by one through a trait
//! and stops at the first refusal.

mod commits;
mod definitions;
mod deliveries;
mod mail;
mod objects;
mod offers;
mod pages;
mod registry;
mod retention;
mod schedules;
mod timers;
mod values;

pub use commits::{
    CommitFacts, CommitVerdict, KeyHolder, Refusals, find_broken_promise, holds_key, judge_commit,
};
pub use definitions::{
    DefinitionFacts, DefinitionVerdict, WorkflowFacts, audit_definition, judge_definition,
};
pub use deliveries::{DeliveryStatus, begin_delivery, continues_numbering, give_up, redeliver};
pub use mail::{MailEnding, MailFacts, end_mail, may_fetch};
pub use objects::{ObjectRow, change_object, put_object};
pub use offers::{OfferClaim, OfferFacts, judge_offer_write, keeps_lease};
pub use pages::fill_page;
pub use registry::{ActionVerdict, KnownAction, apply_poll, judge_action, put_target};
pub use retention::{EndedFacts, may_forget};
pub use schedules::{
    FollowUp, LEASE_EXPIRED, QUEUE_MAX, RunClaimFacts, RunEnd, RunEndFacts, dead_letter_id, end_run,
    expire_run, is_queue_full, judge_run_claim, retry_id,
};
pub use timers::{TimerPlace, TimerTable, gate_timer, head_timer, merge_timers, run_timer, table_fires};
pub use values::{JournalLookup, artifact_keys, load_values};
