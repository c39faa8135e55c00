//! Schedules, their runs and dead letters.

use super::world::{chain, definition};
use super::{ServerSite, entry, reader, written};
use crate::commit::{Applied, Definition, Target, WorkflowId, Write};
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::rules::LEASE_EXPIRED;
use crate::schedules::{
    Attention, DeadLetterQuery, LeaseKey, NewRun, OccurrencePlan, Receipt, RunHolder, RunLease, RunOutcome,
    RunQuery, RunResult, ScheduleId, ScheduleQuery, ScheduleRunId, ScheduleWrite, Schedules as _, StoredRun,
    StoredSchedule, WaitingQuery,
};
use crate::store::Store;
use windlass_kernel::{ExecutionId, Millis};
use windlass_schedule::{Misfire, Overlap, RetryPolicy, RunPolicy, RunStatus, Strategy};

pub(super) const ONE: ScheduleId = ScheduleId(1);
pub(super) const MINUTE: i64 = 60_000;

pub(crate) fn schedule(id: u128, name: &str) -> StoredSchedule {
    StoredSchedule {
        id: ScheduleId(id),
        tenant: Tenant::default(),
        name: name.to_owned(),
        enabled: true,
        spec: "{}".to_owned(),
        policy: RunPolicy {
            overlap: Overlap::Forbid,
            misfire: Misfire::RunOnceIfLate,
            timeout_seconds: 300,
            max_concurrency: 1,
            jitter_seconds: 0,
        },
        retry: RetryPolicy {
            max_attempts: 2,
            strategy: Strategy::Exponential,
            initial_delay_seconds: 30,
            max_delay_seconds: 900,
        },
        revision: 1,
        paused_at: None,
        next_run_at: Some(Millis(MINUTE)),
        last_run_at: None,
        definition: None,
        workflow: None,
        dead_letter_url: None,
        created_at: Millis(1),
        updated_at: Millis(1),
    }
}

pub(super) fn with_overlap(overlap: Overlap, max_concurrency: u32) -> StoredSchedule {
    let one = schedule(1, "one");
    StoredSchedule { policy: RunPolicy { overlap, max_concurrency, ..one.policy }, ..one }
}

pub(super) fn write(store: &mut impl Store, write: ScheduleWrite) -> Applied {
    entry(store, Entry::Schedule(Box::new(write)))
}

pub(super) fn create(store: &mut impl Store, schedule: StoredSchedule) -> Applied {
    write(store, ScheduleWrite::Create(Box::new(schedule)))
}

pub(crate) fn new_run(id: u128) -> NewRun {
    let nominal_time = Millis(i64::try_from(id).expect("a small number") * MINUTE);
    NewRun {
        id: ScheduleRunId(id),
        occurrence_key: format!("one:{id}"),
        nominal_time,
        due_time: nominal_time,
        skipped: None,
        note: None,
        requested_by: None,
    }
}

/// Plans the occurrence of a minute; the next one is a minute later.
pub(super) fn plan(store: &mut impl Store, minute: u128) -> Applied {
    let run = new_run(minute);
    let planned_from = run.nominal_time;
    let plan = OccurrencePlan {
        schedule: ONE,
        revision: 1,
        planned_from,
        runs: vec![run],
        next_run_at: Some(Millis(planned_from.0 + MINUTE)),
        at: planned_from,
    };
    write(store, ScheduleWrite::Plan(Box::new(plan)))
}

pub(super) fn claim(store: &mut impl Store, run: u128, key: u64, at: i64) -> Applied {
    let (run, worker_id) = (ScheduleRunId(run), format!("w{key}"));
    let lease = RunLease { run, worker_id, lease_key: LeaseKey(key), expires_at: Millis(at + 30_000) };
    write(store, ScheduleWrite::Claim { lease, at: Millis(at) })
}

fn begin(store: &mut impl Store, run: u128, key: u64, keeps_lease: bool) -> Applied {
    let (run, lease_key, execution) = (ScheduleRunId(run), LeaseKey(key), Some(ExecutionId(900)));
    write(store, ScheduleWrite::Begin { run, lease_key, execution, keeps_lease, at: Millis(70_000) })
}

pub(super) fn finish(store: &mut impl Store, run: u128, holder: RunHolder, outcome: RunOutcome) -> Applied {
    let receipt =
        Receipt { receipt_kind: "stdout".into(), content_type: "text/plain".into(), body: "hi".into() };
    let result = RunResult {
        http_status_code: Some(503),
        exit_code: Some(7),
        result_json: Some("{\"a\":1}".to_owned()),
        error_text: (outcome != RunOutcome::Succeeded).then(|| "it broke".to_owned()),
        receipts: vec![receipt],
    };
    let (run, result, at) = (ScheduleRunId(run), Box::new(result), Millis(80_000));
    write(store, ScheduleWrite::Finish { run, holder, outcome, result, at })
}

pub(super) fn held(key: u64) -> RunHolder {
    RunHolder::Lease(LeaseKey(key))
}

fn expire(store: &mut impl Store, at: i64) -> Applied {
    write(store, ScheduleWrite::Expire { at: Millis(at), only_worker: None })
}

fn runs<P: ServerSite>(store: &P::Store) -> Vec<StoredRun> {
    let query =
        RunQuery { tenant: Tenant::default(), schedule: Some(ONE), status: None, before: None, limit: 99 };
    let mut found = reader(store).schedule_runs(&query).expect("runs");
    found.sort_by_key(|run| (run.nominal_time, run.attempt));
    found
}

/// Status and attempt of all runs, by occurrence.
pub(super) fn statuses<P: ServerSite>(store: &P::Store) -> String {
    let texts = runs::<P>(store).into_iter().map(|run| format!("{} {}", run.attempt, run.status.name()));
    texts.collect::<Vec<_>>().join(", ")
}

pub(super) fn run<P: ServerSite>(store: &P::Store, id: u128) -> StoredRun {
    reader(store).schedule_run(&Tenant::default(), ScheduleRunId(id)).expect("an answer").expect("a run")
}

/// A store with one schedule and the run of its first minute, claimed under lease 5 and begun.
pub(super) fn running<P: ServerSite>(site: &P, schedule: StoredSchedule) -> P::Store {
    let mut store = site.open();
    assert_eq!(create(&mut store, schedule), Applied::Done);
    assert_eq!(plan(&mut store, 1), Applied::Done);
    assert_eq!(claim(&mut store, 1, 5, MINUTE), Applied::Done);
    assert_eq!(begin(&mut store, 1, 5, true), Applied::Done);
    store
}

pub fn a_schedule_has_one_name_and_is_changed_from_its_newest_revision<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let one = schedule(1, "one");
    assert_eq!(create(&mut store, one.clone()), Applied::Done);
    assert_eq!(create(&mut store, schedule(2, "one")), Applied::Taken);
    assert_eq!(create(&mut store, schedule(2, "two")), Applied::Done);
    let change = |schedule: &StoredSchedule| ScheduleWrite::Change {
        schedule: Box::new(schedule.clone()),
        keeps_times: false,
    };
    let renamed = StoredSchedule { name: "two".to_owned(), ..one.clone() };
    assert_eq!(write(&mut store, change(&renamed)), Applied::Taken);
    let paused =
        StoredSchedule { enabled: false, paused_at: Some(Millis(9)), next_run_at: None, ..one.clone() };
    assert_eq!(write(&mut store, change(&paused)), Applied::Done);
    assert_eq!(write(&mut store, change(&one)), Applied::Conflict, "an older revision");
    assert_eq!(write(&mut store, change(&schedule(9, "nine"))), Applied::Duplicate);
    drop(store);
    let found = reader(&site.open()).schedule(&Tenant::default(), ONE).expect("an answer");
    let paused = StoredSchedule { revision: 2, ..paused };
    assert_eq!(found, Some(paused.clone()));
    let renamed = StoredSchedule { name: "three".to_owned(), next_run_at: Some(Millis(5)), ..paused };
    let kept = ScheduleWrite::Change { schedule: Box::new(renamed), keeps_times: true };
    let mut store = site.open();
    assert_eq!(write(&mut store, kept), Applied::Done);
    let found = reader(&store).schedule(&Tenant::default(), ONE).expect("an answer").expect("a schedule");
    assert_eq!((found.name.as_str(), found.next_run_at), ("three", None));
}

pub fn a_tenant_reads_its_own_schedules_only<P: ServerSite>(site: &P) {
    let mut store = running(site, schedule(1, "one"));
    for (id, name) in [(2, "two"), (3, "three")] {
        create(&mut store, StoredSchedule { enabled: id == 3, ..schedule(id, name) });
    }
    finish(&mut store, 1, held(5), RunOutcome::Failed);
    let mut reader = reader(&store);
    let own = ScheduleQuery { tenant: Tenant::default(), enabled: None, name: None, before: None, limit: 9 };
    let mut names = |query: ScheduleQuery| {
        let found = reader.schedules(&query).expect("schedules");
        found.into_iter().map(|schedule| schedule.name).collect::<Vec<_>>()
    };
    assert_eq!(names(own.clone()), ["three", "two", "one"]);
    assert_eq!(names(ScheduleQuery { enabled: Some(false), ..own.clone() }), ["two"]);
    assert_eq!(names(ScheduleQuery { name: Some("one".into()), ..own.clone() }), ["one"]);
    assert_eq!(names(ScheduleQuery { before: Some(ScheduleId(3)), limit: 1, ..own.clone() }), ["two"]);
    let other = Tenant::new("tnt_other");
    assert!(names(ScheduleQuery { tenant: other.clone(), ..own }).is_empty());
    assert_eq!(reader.schedule(&other, ONE), Ok(None));
    assert_eq!(reader.schedule_run(&other, ScheduleRunId(1)), Ok(None));
    let query = RunQuery { tenant: other, schedule: None, status: None, before: None, limit: 9 };
    assert_eq!(reader.schedule_runs(&query), Ok(Vec::new()));
    let failed = RunQuery { tenant: Tenant::default(), status: Some(RunStatus::Failed), ..query };
    assert_eq!(reader.schedule_runs(&failed).expect("runs").len(), 1);
}

pub fn schedules_of_a_tenant_are_counted<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let other = Tenant::new("tnt_other");
    for (id, name) in [(1, "one"), (2, "two"), (3, "three")] {
        assert_eq!(
            create(&mut store, StoredSchedule { enabled: id == 3, ..schedule(id, name) }),
            Applied::Done
        );
    }
    create(&mut store, StoredSchedule { tenant: other.clone(), ..schedule(4, "one") });
    create(&mut store, schedule(5, "one"));
    let counts = |store: &P::Store| {
        let mut reader = reader(store);
        [Tenant::default(), other.clone(), Tenant::new("tnt_none")]
            .map(|tenant| reader.count_schedules(&tenant).expect("a count"))
    };
    assert_eq!(counts(&store), [3, 1, 0], "disabled ones count, refused ones do not");
    write(&mut store, ScheduleWrite::Delete { tenant: Tenant::default(), schedule: ONE });
    drop(store);
    assert_eq!(counts(&site.open()), [2, 1, 0]);
}

/// A version of workflow 7 with schedules of its triggers.
fn version(source: &str, schedules: Vec<StoredSchedule>) -> Write {
    let target = if source == "1" { Target::New(TRIGGERED) } else { Target::After(TRIGGERED, None) };
    let definition = Definition { target, schedules, ..definition("d", source, &chain(1)) };
    Write::Define(Box::new(definition))
}

const TRIGGERED: WorkflowId = WorkflowId(7);

pub fn schedules_of_triggers_follow_the_versions_of_their_workflow<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let with = |id, name: &str, spec: &str| StoredSchedule { spec: spec.to_owned(), ..schedule(id, name) };
    let found = |store: &P::Store| {
        let tenant = Tenant::default();
        let query = ScheduleQuery { tenant, enabled: None, name: None, before: None, limit: 9 };
        let found = reader(store).schedules(&query).expect("schedules");
        assert!(found.iter().all(|schedule| schedule.workflow == Some(TRIGGERED)));
        let of = |schedule: &StoredSchedule| {
            let StoredSchedule { id, spec, revision, enabled, next_run_at, .. } = schedule;
            (id.0, spec.clone(), *revision, *enabled, next_run_at.map(|at| at.0))
        };
        found.iter().map(of).collect::<Vec<_>>()
    };
    let row = |id: u128, spec: &str, revision: u64, enabled: bool, next: Option<i64>| {
        (id, spec.to_owned(), revision, enabled, next)
    };
    written(&mut store, &[version("1", vec![with(1, "a", "x"), with(2, "b", "x")])]);
    let first = [row(2, "x", 1, true, Some(MINUTE)), row(1, "x", 1, true, Some(MINUTE))];
    assert_eq!(found(&store), first);
    // One keeps its id and its runs, the other one has no trigger any more.
    let later = StoredSchedule { next_run_at: Some(Millis(5 * MINUTE)), ..with(3, "a", "y") };
    assert_eq!(plan(&mut store, 1), Applied::Done);
    written(&mut store, &[version("2", vec![later])]);
    assert_eq!(found(&store), [row(1, "y", 2, true, Some(5 * MINUTE))]);
    assert_eq!(statuses::<P>(&store), "1 pending");
    written(&mut store, &[version("3", vec![with(4, "a", "y")])]);
    assert_eq!(found(&store), [row(1, "y", 2, true, Some(5 * MINUTE))], "its times are the same");
    assert_eq!(claim(&mut store, 1, 5, MINUTE), Applied::Done);
    written(&mut store, &[version("4", Vec::new())]);
    assert_eq!(found(&store), [row(1, "y", 3, false, None)], "a run of it is active");
    let release = ScheduleWrite::Release { run: ScheduleRunId(1), lease_key: LeaseKey(5), at: Millis(9) };
    assert_eq!(write(&mut store, release), Applied::Done);
    let delete = Entry::WorkflowDeleted { tenant: Tenant::default(), workflow: TRIGGERED, at: Millis(9) };
    assert_eq!(entry(&mut store, delete), Applied::Done);
    assert_eq!((found(&store), statuses::<P>(&store)), (vec![], String::new()));
}

pub fn sch_02_sch_13_due_occurrences_become_runs_exactly_once<P: ServerSite>(site: &P) {
    let mut store = site.open();
    create(&mut store, schedule(1, "one"));
    let due = |store: &P::Store, until: i64| {
        reader(store).due_schedules(Millis(until), 9).expect("schedules").len()
    };
    assert_eq!((due(&store, MINUTE - 1), due(&store, MINUTE)), (0, 1));
    let next = |store: &P::Store| reader(store).next_attention(Millis(0)).expect("times");
    assert_eq!(next(&store), Attention { occurrence: Some(Millis(MINUTE)), ..Attention::default() });
    assert_eq!(plan(&mut store, 1), Applied::Done);
    assert_eq!(plan(&mut store, 1), Applied::Conflict, "another planner was first");
    assert_eq!(plan(&mut store, 3), Applied::Conflict, "not the next occurrence");
    assert_eq!((next(&store).occurrence, next(&store).run), (Some(Millis(2 * MINUTE)), Some(Millis(MINUTE))));
    let found = runs::<P>(&store);
    assert_eq!((found.len(), found[0].status, found[0].attempt), (1, RunStatus::Pending, 1));
    assert_eq!((found[0].occurrence_key.as_str(), found[0].due_time), ("one:1", Millis(MINUTE)));
    assert_eq!((due(&store, MINUTE), due(&store, 2 * MINUTE)), (0, 1));
    let skipped = NewRun { skipped: Some("too late".to_owned()), ..new_run(2) };
    let plan = OccurrencePlan {
        schedule: ONE,
        revision: 1,
        planned_from: Millis(2 * MINUTE),
        runs: vec![skipped],
        next_run_at: None,
        at: Millis(200_000),
    };
    assert_eq!(write(&mut store, ScheduleWrite::Plan(Box::new(plan))), Applied::Done);
    let skipped = run::<P>(&store, 2);
    assert_eq!((skipped.status, skipped.finished_at), (RunStatus::Skipped, Some(Millis(200_000))));
    assert_eq!(skipped.error_text.as_deref(), Some("too late"));
    assert_eq!(due(&store, i64::MAX), 0, "no occurrence is left");
}

pub fn sch_03_a_run_is_claimed_once_and_within_the_policies_of_its_schedule<P: ServerSite>(site: &P) {
    let mut store = site.open();
    create(&mut store, with_overlap(Overlap::Allow, 2));
    (1..=3).for_each(|minute| assert_eq!(plan(&mut store, minute), Applied::Done));
    create(&mut store, StoredSchedule { next_run_at: Some(Millis(0)), ..schedule(2, "two") });
    let other = NewRun { occurrence_key: "two:1".to_owned(), id: ScheduleRunId(20), ..new_run(2) };
    let trigger = ScheduleWrite::Trigger {
        tenant: Tenant::default(),
        schedule: ScheduleId(2),
        run: Box::new(other),
        at: Millis(0),
    };
    write(&mut store, trigger);
    let waiting = |after: u128, until: i64, schedules: usize, each: usize| {
        let query = WaitingQuery { after: ScheduleId(after), until: Millis(until * MINUTE), schedules, each };
        let page = reader(&store).waiting_runs(query).expect("runs");
        (page.runs.iter().map(|run| run.id.0).collect::<Vec<_>>(), page.last.map(|last| last.0))
    };
    assert_eq!(waiting(0, 3, 9, 2), (vec![1, 2, 20], Some(2)), "some of every schedule");
    assert_eq!(waiting(0, 3, 1, 9), (vec![1, 2, 3], Some(1)));
    assert_eq!(waiting(1, 1, 9, 9), (vec![], Some(2)), "it is not due");
    assert_eq!(waiting(2, 3, 9, 9), (vec![], None));
    assert_eq!(claim(&mut store, 1, 5, MINUTE - 1), Applied::Conflict, "it is not due");
    assert_eq!(claim(&mut store, 1, 5, MINUTE), Applied::Done);
    assert_eq!(claim(&mut store, 1, 6, MINUTE), Applied::Fenced, "it is claimed");
    assert_eq!(claim(&mut store, 2, 6, 2 * MINUTE), Applied::Done);
    assert_eq!(claim(&mut store, 3, 7, 3 * MINUTE), Applied::Conflict, "two are active");
    assert_eq!(claim(&mut store, 9, 7, 3 * MINUTE), Applied::Fenced, "there is no such run");
    let claimed = run::<P>(&store, 1);
    assert_eq!((claimed.status, claimed.claimed_by_worker_id.as_deref()), (RunStatus::Claimed, Some("w5")));
    assert_eq!(claimed.claim_expires_at, Some(Millis(MINUTE + 30_000)));
    assert_eq!(reader(&store).active_runs(ONE, 9).expect("runs").len(), 2);
    let release = |run, key| ScheduleWrite::Release {
        run: ScheduleRunId(run),
        lease_key: LeaseKey(key),
        at: Millis(9),
    };
    assert_eq!(write(&mut store, release(1, 6)), Applied::Fenced);
    assert_eq!(write(&mut store, release(1, 5)), Applied::Done);
    assert_eq!(run::<P>(&store, 1).claimed_by_worker_id, None);
    assert_eq!(claim(&mut store, 3, 7, 3 * MINUTE), Applied::Done);
}

pub fn sch_05_sch_15_only_the_holder_of_a_run_ends_it_and_its_end_is_final<P: ServerSite>(site: &P) {
    let mut store = running(site, schedule(1, "one"));
    let begun = run::<P>(&store, 1);
    assert_eq!((begun.status, begun.started_at), (RunStatus::Running, Some(Millis(70_000))));
    assert_eq!(begun.execution, Some(ExecutionId(900)));
    assert_eq!(finish(&mut store, 1, held(6), RunOutcome::Succeeded), Applied::Fenced);
    assert_eq!(finish(&mut store, 1, held(5), RunOutcome::Succeeded), Applied::Done);
    let done = run::<P>(&store, 1);
    assert_eq!((done.status, done.finished_at), (RunStatus::Succeeded, Some(Millis(80_000))));
    assert_eq!((done.http_status_code, done.exit_code), (Some(503), Some(7)));
    assert_eq!((done.result_json.as_deref(), done.error_text), (Some("{\"a\":1}"), None));
    let receipts = reader(&store).receipts(ScheduleRunId(1)).expect("receipts");
    assert_eq!((receipts.len(), receipts[0].0.body.as_str()), (1, "hi"));
    let found = reader(&store).schedule(&Tenant::default(), ONE).expect("an answer").expect("a schedule");
    assert_eq!(found.last_run_at, Some(Millis(80_000)));
    for outcome in [RunOutcome::Failed, RunOutcome::Cancelled, RunOutcome::Succeeded] {
        assert_eq!(finish(&mut store, 1, held(5), outcome), Applied::Fenced, "{outcome:?}");
    }
    assert_eq!(claim(&mut store, 1, 5, 90_000), Applied::Fenced);
    assert_eq!(statuses::<P>(&store), "1 succeeded");
}

pub fn sch_06_sch_07_a_failed_run_and_its_retry_are_one_write<P: ServerSite>(site: &P) {
    let mut store = running(site, schedule(1, "one"));
    assert_eq!(finish(&mut store, 1, held(5), RunOutcome::Failed), Applied::Done);
    drop(store);
    let mut store = site.open();
    assert_eq!(statuses::<P>(&store), "1 failed, 2 retry_scheduled");
    let found = runs::<P>(&store);
    assert_eq!(found[0].error_text.as_deref(), Some("it broke"));
    let retry = &found[1];
    assert_eq!((retry.occurrence_key.as_str(), retry.nominal_time), ("one:1", Millis(MINUTE)));
    assert_eq!((retry.retry_available_at, retry.due_time), (Some(Millis(110_000)), Millis(110_000)));
    assert_eq!(claim(&mut store, retry.id.0, 6, 109_999), Applied::Conflict);
    assert_eq!(claim(&mut store, retry.id.0, 6, 110_000), Applied::Done);
    // A claim that is lost leaves the retry where it was.
    assert_eq!(expire(&mut store, 140_000), Applied::Done);
    assert_eq!(statuses::<P>(&store), "1 failed, 2 pending");
}

pub fn sch_09_the_last_failed_attempt_is_a_dead_letter<P: ServerSite>(site: &P) {
    let one = schedule(1, "one");
    let mut store =
        running(site, StoredSchedule { retry: RetryPolicy { max_attempts: 1, ..one.retry }, ..one });
    assert_eq!(finish(&mut store, 1, held(5), RunOutcome::Failed), Applied::Done);
    assert_eq!(statuses::<P>(&store), "1 dead_lettered");
    let query = DeadLetterQuery { tenant: Tenant::default(), schedule: None, before: None, limit: 9 };
    let letters = reader(&store).dead_letters(&query).expect("letters");
    assert_eq!((letters.len(), letters[0].run, letters[0].schedule), (1, ScheduleRunId(1), ONE));
    assert_eq!((letters[0].occurrence_key.as_str(), letters[0].reason.as_str()), ("one:1", "it broke"));
    assert_eq!(letters[0].payload_json.as_deref(), Some("{\"a\":1}"));
    let found = reader(&store).dead_letter(&Tenant::default(), letters[0].id).expect("an answer");
    assert_eq!(found.as_ref(), letters.first());
    assert_eq!(reader(&store).dead_letter(&Tenant::new("other"), letters[0].id), Ok(None));
    let other = DeadLetterQuery { tenant: Tenant::new("other"), ..query };
    assert_eq!(reader(&store).dead_letters(&other), Ok(Vec::new()));
}

pub fn sch_10_sch_11_an_expired_lease_returns_a_claimed_run_and_fails_a_running_one<P: ServerSite>(site: &P) {
    let mut store = running(site, with_overlap(Overlap::Allow, 9));
    plan(&mut store, 2);
    claim(&mut store, 2, 6, 2 * MINUTE);
    assert_eq!(expire(&mut store, 89_999), Applied::Duplicate);
    assert_eq!(expire(&mut store, 90_000), Applied::Done);
    assert_eq!(statuses::<P>(&store), "1 failed, 2 retry_scheduled, 1 claimed");
    assert_eq!(run::<P>(&store, 1).error_text.as_deref(), Some(LEASE_EXPIRED));
    assert_eq!(finish(&mut store, 1, held(5), RunOutcome::Succeeded), Applied::Fenced, "it came too late");
    let alone = ScheduleWrite::Expire { at: Millis(90_000), only_worker: Some("w7".to_owned()) };
    assert_eq!(write(&mut store, alone), Applied::Done);
    let found = run::<P>(&store, 2);
    assert_eq!(
        (found.status, found.claimed_by_worker_id, found.claim_expires_at),
        (RunStatus::Pending, None, None)
    );
    assert_eq!(begin(&mut store, 2, 6, true), Applied::Fenced);
}

pub fn sch_14_a_renewed_lease_does_not_expire<P: ServerSite>(site: &P) {
    let mut store = running(site, schedule(1, "one"));
    let renew = |worker: &str| ScheduleWrite::Renew {
        worker_id: worker.to_owned(),
        held: vec![ScheduleRunId(1), ScheduleRunId(99)],
        at: Millis(75_000),
        expires_at: Millis(105_000),
    };
    assert_eq!(write(&mut store, renew("w9")), Applied::Duplicate);
    let nothing_held = ScheduleWrite::Renew {
        worker_id: "w5".to_owned(),
        held: Vec::new(),
        at: Millis(75_000),
        expires_at: Millis(105_000),
    };
    assert_eq!(write(&mut store, nothing_held), Applied::Duplicate);
    assert_eq!(write(&mut store, renew("w5")), Applied::Done);
    assert_eq!(run::<P>(&store, 1).claim_expires_at, Some(Millis(105_000)));
    assert_eq!(
        (expire(&mut store, 104_999), expire(&mut store, 105_000)),
        (Applied::Duplicate, Applied::Done)
    );
}

pub fn sch_23_a_newer_occurrence_supersedes_one_that_waits<P: ServerSite>(site: &P) {
    let mut store = running(site, with_overlap(Overlap::QueueLatest, 1));
    plan(&mut store, 2);
    plan(&mut store, 3);
    assert_eq!(statuses::<P>(&store), "1 running, 1 skipped, 1 pending");
    assert_eq!(run::<P>(&store, 2).error_text.as_deref(), Some("superseded by newer queued occurrence"));
    assert_eq!(run::<P>(&store, 2).finished_at, Some(Millis(3 * MINUTE)));
    finish(&mut store, 1, held(5), RunOutcome::Failed);
    plan(&mut store, 4);
    assert_eq!(statuses::<P>(&store), "1 failed, 2 retry_scheduled, 1 skipped, 1 skipped, 1 pending");
}

pub fn a_run_that_waits_can_be_cancelled<P: ServerSite>(site: &P) {
    let mut store = running(site, schedule(1, "one"));
    plan(&mut store, 2);
    let cancel = |tenant: &str, run: u128| ScheduleWrite::Cancel {
        tenant: Tenant::new(tenant),
        run: ScheduleRunId(run),
        reason: "enough".to_owned(),
        at: Millis(9),
    };
    assert_eq!(write(&mut store, cancel("default", 1)), Applied::Conflict, "it runs");
    assert_eq!(write(&mut store, cancel("other", 2)), Applied::Duplicate);
    assert_eq!(write(&mut store, cancel("default", 2)), Applied::Done);
    assert_eq!(write(&mut store, cancel("default", 2)), Applied::Conflict, "it has ended");
    assert_eq!(statuses::<P>(&store), "1 running, 1 cancelled");
    assert_eq!(finish(&mut store, 1, held(5), RunOutcome::Cancelled), Applied::Done);
    assert_eq!(statuses::<P>(&store), "1 cancelled, 1 cancelled", "no retry follows");
}

pub fn a_dead_letter_is_resolved_once<P: ServerSite>(site: &P) {
    let one = schedule(1, "one");
    let mut store =
        running(site, StoredSchedule { retry: RetryPolicy { max_attempts: 0, ..one.retry }, ..one });
    finish(&mut store, 1, held(5), RunOutcome::Failed);
    let query = DeadLetterQuery { tenant: Tenant::default(), schedule: Some(ONE), before: None, limit: 9 };
    let letter = reader(&store).dead_letters(&query).expect("letters").remove(0).id;
    let redriven = Some(Box::new(NewRun { occurrence_key: "manual:1".to_owned(), ..new_run(7) }));
    let resolve = |tenant: &str| ScheduleWrite::Resolve {
        tenant: Tenant::new(tenant),
        letter,
        redriven: redriven.clone(),
        at: Millis(99_000),
    };
    assert_eq!(write(&mut store, resolve("other")), Applied::Duplicate);
    assert_eq!(write(&mut store, resolve("default")), Applied::Done);
    assert_eq!(write(&mut store, resolve("default")), Applied::Conflict);
    assert_eq!(statuses::<P>(&store), "1 dead_lettered, 1 pending");
    let resolved =
        reader(&store).dead_letter(&Tenant::default(), letter).expect("an answer").expect("a letter");
    assert_eq!(
        (resolved.resolved_at, resolved.resolution.as_deref()),
        (Some(Millis(99_000)), Some("redriven"))
    );
}

pub fn a_run_without_a_lease_ends_with_its_execution<P: ServerSite>(site: &P) {
    let mut store = site.open();
    create(&mut store, schedule(1, "one"));
    plan(&mut store, 1);
    claim(&mut store, 1, 5, MINUTE);
    assert!(reader(&store).runs_of_executions(None, 9).expect("runs").is_empty());
    assert_eq!(begin(&mut store, 1, 5, false), Applied::Done);
    let found = reader(&store).runs_of_executions(None, 9).expect("runs");
    assert_eq!(found.iter().map(|run| run.id.0).collect::<Vec<_>>(), [1]);
    assert!(reader(&store).runs_of_executions(Some(ScheduleRunId(1)), 9).expect("runs").is_empty());
    assert_eq!(expire(&mut store, i64::MAX), Applied::Duplicate, "there is no lease");
    assert_eq!(finish(&mut store, 1, held(5), RunOutcome::Succeeded), Applied::Fenced);
    let execution = |id| RunHolder::Execution(ExecutionId(id));
    assert_eq!(finish(&mut store, 1, execution(901), RunOutcome::Succeeded), Applied::Fenced);
    assert_eq!(finish(&mut store, 1, execution(900), RunOutcome::Succeeded), Applied::Done);
    assert_eq!(statuses::<P>(&store), "1 succeeded");
}

pub fn a_schedule_is_deleted_with_its_runs_unless_one_is_active<P: ServerSite>(site: &P) {
    let mut store = running(site, schedule(1, "one"));
    let delete = |tenant: &str| ScheduleWrite::Delete { tenant: Tenant::new(tenant), schedule: ONE };
    assert_eq!(write(&mut store, delete("default")), Applied::Conflict);
    finish(&mut store, 1, held(5), RunOutcome::Succeeded);
    let trigger = |tenant: &str| ScheduleWrite::Trigger {
        tenant: Tenant::new(tenant),
        schedule: ONE,
        run: Box::new(NewRun {
            note: Some("\"why\"".to_owned()),
            requested_by: Some("user_9".to_owned()),
            ..new_run(8)
        }),
        at: Millis(5),
    };
    assert_eq!(write(&mut store, trigger("other")), Applied::Duplicate);
    assert_eq!(write(&mut store, trigger("default")), Applied::Done);
    assert_eq!(run::<P>(&store, 8).result_json.as_deref(), Some("\"why\""));
    assert_eq!(run::<P>(&store, 8).requested_by.as_deref(), Some("user_9"));
    assert_eq!(write(&mut store, delete("other")), Applied::Duplicate);
    assert_eq!(write(&mut store, delete("default")), Applied::Done);
    assert_eq!(write(&mut store, delete("default")), Applied::Duplicate);
    assert!(runs::<P>(&store).is_empty());
    assert_eq!(reader(&store).receipts(ScheduleRunId(1)), Ok(Vec::new()));
}
