//! Queues of schedules and their bounds, backfills, notices of dead letters, and retention of runs.

use super::schedules::{
    MINUTE, ONE, claim, create, finish, held, new_run, plan, run, running, schedule, statuses, with_overlap,
    write,
};
use super::{ServerSite, reader};
use crate::commit::Applied;
use crate::origin::Tenant;
use crate::rules::QUEUE_MAX;
use crate::schedules::{
    ChainQuery, DeadLetterQuery, NewRun, NoticeAttempt, OccurrencePlan, RunOutcome, ScheduleRunId,
    ScheduleWrite, Schedules as _, StoredSchedule,
};
use crate::store::Store;
use windlass_kernel::Millis;
use windlass_schedule::{Overlap, RetryPolicy, RunStatus};

/// Plans many minutes at once, from the first one on.
fn plan_minutes(store: &mut impl Store, count: usize) -> Applied {
    let runs: Vec<NewRun> = (1..=count as u128).map(new_run).collect();
    let next = Some(Millis((count as i64 + 1) * MINUTE));
    let plan = OccurrencePlan {
        schedule: ONE,
        revision: 1,
        planned_from: Millis(MINUTE),
        runs,
        next_run_at: next,
        at: Millis(9),
    };
    write(store, ScheduleWrite::Plan(Box::new(plan)))
}

fn backfill(tenant: &str, runs: Vec<NewRun>) -> ScheduleWrite {
    ScheduleWrite::Backfill { tenant: Tenant::new(tenant), schedule: ONE, runs, at: Millis(99 * MINUTE) }
}

pub fn occurrences_beyond_a_full_queue_are_skipped_with_that_reason<P: ServerSite>(site: &P) {
    let mut store = site.open();
    create(&mut store, schedule(1, "one"));
    assert_eq!(plan_minutes(&mut store, QUEUE_MAX + 2), Applied::Done);
    let status = |store: &P::Store, minute: usize| {
        let found = run::<P>(store, minute as u128);
        (found.status, found.error_text, found.finished_at)
    };
    assert_eq!(status(&store, QUEUE_MAX), (RunStatus::Pending, None, None));
    let reason = "skipped because too many occurrences of the schedule wait".to_owned();
    assert_eq!(status(&store, QUEUE_MAX + 1), (RunStatus::Skipped, Some(reason.clone()), Some(Millis(9))));
    assert_eq!(status(&store, QUEUE_MAX + 2).0, RunStatus::Skipped);
    let manual = NewRun { occurrence_key: "manual:1".to_owned(), ..new_run(5_000) };
    let trigger = || ScheduleWrite::Trigger {
        tenant: Tenant::default(),
        schedule: ONE,
        run: Box::new(manual.clone()),
        at: Millis(9),
    };
    assert_eq!(write(&mut store, trigger()), Applied::QueueFull);
    assert_eq!(write(&mut store, backfill("default", vec![new_run(6_000)])), Applied::QueueFull);
    claim(&mut store, 1, 5, MINUTE);
    assert_eq!(write(&mut store, trigger()), Applied::Done, "one place is free");
}

pub fn a_backfill_starts_what_has_no_run_and_what_was_skipped<P: ServerSite>(site: &P) {
    let mut store = running(site, with_overlap(Overlap::QueueLatest, 1));
    plan(&mut store, 2);
    plan(&mut store, 3);
    assert_eq!(statuses::<P>(&store), "1 running, 1 skipped, 1 pending");
    let again = NewRun { id: ScheduleRunId(92), occurrence_key: "manual:92".to_owned(), ..new_run(2) };
    let runs = || vec![NewRun { id: ScheduleRunId(91), ..new_run(1) }, again.clone(), new_run(50)];
    assert_eq!(write(&mut store, backfill("other", runs())), Applied::Duplicate);
    assert_eq!(write(&mut store, backfill("default", runs())), Applied::Done);
    // The newest of those that wait supersedes the others, as the policy demands.
    assert_eq!(statuses::<P>(&store), "1 running, 1 skipped, 1 skipped, 1 skipped, 1 pending");
    let mut reader = reader(&store);
    let found = reader.nominal_runs(ONE, (Millis(2 * MINUTE), Millis(3 * MINUTE)), 9).expect("runs");
    assert_eq!(found.iter().map(|run| run.id.0).collect::<Vec<_>>(), [2, 92, 3]);
    // From the newest on, and from an occurrence on; two occurrences may have one time.
    let mut pages = Vec::new();
    let mut before = None;
    loop {
        let chains = reader.chains(&ChainQuery { schedule: ONE, before, limit: 2 }).expect("runs");
        let Some(last) = chains.last() else { break };
        before = Some((last.nominal_time, last.occurrence_key.clone()));
        pages.push(chains.iter().map(|run| run.id.0).collect::<Vec<_>>());
    }
    assert_eq!(pages, [vec![50, 3], vec![2, 92], vec![1]]);
}

pub fn a_second_backfill_of_the_same_time_starts_nothing<P: ServerSite>(site: &P) {
    let mut store = running(site, schedule(1, "one"));
    let runs = |id: u128| vec![new_run(1), NewRun { id: ScheduleRunId(id), ..new_run(40) }];
    assert_eq!(write(&mut store, backfill("default", runs(40))), Applied::Done);
    let manual = NewRun { occurrence_key: "manual:41".to_owned(), id: ScheduleRunId(41), ..new_run(40) };
    assert_eq!(write(&mut store, backfill("default", vec![manual])), Applied::Done);
    assert_eq!(statuses::<P>(&store), "1 running, 1 pending");
}

/// A schedule whose first failure is a dead letter, with an address for it.
fn dead_lettered<P: ServerSite>(site: &P) -> P::Store {
    let one = schedule(1, "one");
    let retry = RetryPolicy { max_attempts: 0, ..one.retry };
    let dead_letter_url = Some("https://example.com/dead".to_owned());
    let mut store = running(site, StoredSchedule { retry, dead_letter_url, ..one });
    finish(&mut store, 1, held(5), RunOutcome::Failed);
    store
}

/// Resolves the only dead letter of the first schedule.
fn resolve<P: ServerSite>(store: &mut P::Store, redriven: Option<NewRun>) -> Applied {
    let tenant = Tenant::default();
    let query = DeadLetterQuery { tenant: tenant.clone(), schedule: Some(ONE), before: None, limit: 9 };
    let letter = reader(store).dead_letters(&query).expect("letters").remove(0).id;
    let (redriven, at) = (redriven.map(Box::new), Millis(99_000));
    write(store, ScheduleWrite::Resolve { tenant, letter, redriven, at })
}

fn manual_run(id: u128) -> NewRun {
    NewRun { occurrence_key: format!("manual:{id}"), ..new_run(id) }
}

pub fn a_dead_letter_is_redriven_while_the_queue_has_room<P: ServerSite>(site: &P) {
    let mut store = dead_lettered(site);
    let runs = (100..100 + QUEUE_MAX as u128).map(new_run).collect();
    assert_eq!(write(&mut store, backfill("default", runs)), Applied::Done);
    let query = DeadLetterQuery { tenant: Tenant::default(), schedule: Some(ONE), before: None, limit: 9 };
    let open = reader(&store).dead_letters(&query).expect("letters");
    assert_eq!(resolve::<P>(&mut store, Some(manual_run(5_000))), Applied::QueueFull);
    assert_eq!(reader(&store).dead_letters(&query), Ok(open), "it is still open");
    assert_eq!(reader(&store).schedule_run(&Tenant::default(), ScheduleRunId(5_000)), Ok(None));
    assert_eq!(claim(&mut store, 100, 5, 200 * MINUTE), Applied::Done);
    assert_eq!(resolve::<P>(&mut store, Some(manual_run(5_000))), Applied::Done, "one place is free");
    assert_eq!(run::<P>(&store, 5_000).status, RunStatus::Pending);
    assert_eq!(resolve::<P>(&mut store, Some(manual_run(5_001))), Applied::Conflict);
}

pub fn a_dead_letter_is_discarded_although_the_queue_is_full<P: ServerSite>(site: &P) {
    let mut store = dead_lettered(site);
    let runs = (100..100 + QUEUE_MAX as u128).map(new_run).collect();
    assert_eq!(write(&mut store, backfill("default", runs)), Applied::Done);
    assert_eq!(resolve::<P>(&mut store, None), Applied::Done);
}

pub fn sch_23_a_redriven_occurrence_supersedes_one_that_waits<P: ServerSite>(site: &P) {
    let one = with_overlap(Overlap::QueueLatest, 1);
    let retry = RetryPolicy { max_attempts: 0, ..one.retry };
    let mut store = running(site, StoredSchedule { retry, ..one });
    finish(&mut store, 1, held(5), RunOutcome::Failed);
    plan(&mut store, 2);
    assert_eq!(resolve::<P>(&mut store, Some(manual_run(7))), Applied::Done);
    assert_eq!(statuses::<P>(&store), "1 dead_lettered, 1 skipped, 1 pending");
    assert_eq!(run::<P>(&store, 7).status, RunStatus::Pending, "its nominal time is later");
}

pub fn a_notice_is_written_with_its_dead_letter_and_sent_until_it_arrives<P: ServerSite>(site: &P) {
    let mut store = dead_lettered(site);
    let due = |store: &P::Store, at: i64| reader(store).due_notices(Millis(at), 9).expect("notices");
    assert!(due(&store, 79_999).is_empty());
    let notice = due(&store, 80_000).remove(0);
    assert_eq!((notice.url.as_str(), notice.attempts), ("https://example.com/dead", 0));
    assert_eq!((notice.letter.run.0, notice.letter.reason.as_str()), (1, "it broke"));
    assert_eq!(reader(&store).next_attention(Millis(0)).expect("times").notice, Some(Millis(80_000)));
    let attempt = |due: Option<i64>| {
        let (letter, error_text) = (notice.letter.id, Some("refused".to_owned()));
        ScheduleWrite::Notice(NoticeAttempt { letter, attempts: 1, due: due.map(Millis), error_text })
    };
    assert_eq!(write(&mut store, attempt(Some(90_000))), Applied::Done);
    assert!(due(&store, 89_999).is_empty());
    assert_eq!(due(&store, 90_000)[0].attempts, 1);
    assert_eq!(write(&mut store, attempt(None)), Applied::Done);
    assert!(due(&store, i64::MAX).is_empty());
    write(&mut store, ScheduleWrite::Delete { tenant: Tenant::default(), schedule: ONE });
    assert_eq!(write(&mut store, attempt(None)), Applied::Duplicate);
}

pub fn runs_are_pruned_with_their_whole_occurrence<P: ServerSite>(site: &P) {
    let prune = |at: i64| ScheduleWrite::Prune { ended_before: Millis(at), occurrences_max: 9 };
    let mut store = running(site, schedule(1, "one"));
    finish(&mut store, 1, held(5), RunOutcome::Failed);
    assert_eq!(statuses::<P>(&store), "1 failed, 2 retry_scheduled");
    assert_eq!(write(&mut store, prune(i64::MAX)), Applied::Duplicate, "an attempt is still to come");
    plan(&mut store, 2);
    write(
        &mut store,
        ScheduleWrite::Cancel {
            tenant: Tenant::default(),
            run: ScheduleRunId(2),
            reason: "enough".to_owned(),
            at: Millis(5 * MINUTE),
        },
    );
    assert_eq!(write(&mut store, prune(5 * MINUTE)), Applied::Duplicate, "not before its time");
    assert_eq!(write(&mut store, prune(5 * MINUTE + 1)), Applied::Done);
    assert_eq!(statuses::<P>(&store), "1 failed, 2 retry_scheduled");
}

pub fn an_open_dead_letter_keeps_its_runs<P: ServerSite>(site: &P) {
    let mut store = dead_lettered(site);
    let prune = || ScheduleWrite::Prune { ended_before: Millis(i64::MAX), occurrences_max: 9 };
    assert_eq!(write(&mut store, prune()), Applied::Duplicate);
    let query = DeadLetterQuery { tenant: Tenant::default(), schedule: None, before: None, limit: 9 };
    let letter = reader(&store).dead_letters(&query).expect("letters")[0].id;
    let at = Millis(99_000);
    write(&mut store, ScheduleWrite::Resolve { tenant: Tenant::default(), letter, redriven: None, at });
    assert_eq!(write(&mut store, prune()), Applied::Done);
    assert_eq!(statuses::<P>(&store), "");
    assert!(reader(&store).dead_letters(&query).expect("letters").is_empty());
    assert!(reader(&store).receipts(ScheduleRunId(1)).expect("receipts").is_empty());
    let load = reader(&store).schedule_load(at).expect("counts");
    assert_eq!((load.schedules, load.enabled, load.active, load.dead_letters), (1, 1, 0, 0));
}
