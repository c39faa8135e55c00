//! Units of the session: one entry per offer, from the order until the report is answered.

use super::{Again, CallId, LeaseTimes, Output, Session};
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_protocol::{Call, Checkpoint, Failure, Outcome, Report, Unit, Verdict, Work};

#[derive(Debug)]
pub(super) struct HeldUnit {
    pub(super) lease_from: u64,
    pub(super) phase: Phase,
}

#[derive(Debug)]
pub(super) enum Phase {
    /// The unit waits until an older lease of the same step-run has ended here.
    Queued(Box<Work>),
    Running,
    Checkpointing {
        checkpoint: Checkpoint,
        again: Again,
    },
    /// The unit was asked to end.
    Stopping {
        then: StopFollowUp,
    },
    Reporting {
        report: Box<Report>,
        again: Again,
    },
}

/// Action after the end of stopped work.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StopFollowUp {
    Report,
    /// The unit could not continue, for this reason.
    Fail(Box<Failure>),
    /// The lease of the unit is lost, or the worker shuts down.
    Nothing,
}

impl HeldUnit {
    /// Returns whether processes of the unit may run in this worker.
    pub(super) fn is_local(&self) -> bool {
        match self.phase {
            Phase::Running | Phase::Checkpointing { .. } | Phase::Stopping { .. } => true,
            Phase::Queued(_) | Phase::Reporting { .. } => false,
        }
    }

    /// Returns whether the unit still needs its lease.
    fn needs_lease(&self) -> bool {
        match &self.phase {
            Phase::Queued(_) | Phase::Running | Phase::Checkpointing { .. } => true,
            Phase::Stopping { then } => *then != StopFollowUp::Nothing,
            Phase::Reporting { .. } => false,
        }
    }

    pub(super) fn wake_at(&self, times: LeaseTimes) -> Option<u64> {
        let again = match &self.phase {
            Phase::Checkpointing { again, .. } | Phase::Reporting { again, .. } => Some(again.at),
            Phase::Queued(_) | Phase::Running | Phase::Stopping { .. } => None,
        };
        let lease = self.needs_lease().then(|| times.give_up_at(self.lease_from));
        again.into_iter().chain(lease).min()
    }
}

impl Session {
    pub(super) fn run(&mut self, now: u64, work: Box<Work>, lease_from: u64) {
        let unit = work.unit;
        // Without a lease that will last, the unit is not begun.
        if now >= self.times.give_up_at(lease_from) {
            return;
        }
        let known = self.held.contains_key(&unit);
        if !known && self.closing.is_none() && self.recent.contains(&unit) {
            // The unit ended here, and its report may be lost: the engine must learn that it does not run here any
            // more.
            return self.report(now, stopped(unit), lease_from);
        }
        let of_run = Unit { fence: u64::MIN, ..unit }..=Unit { fence: u64::MAX, ..unit };
        let others: Vec<Unit> = self.held.range(of_run).map(|(unit, _)| *unit).collect();
        if known || self.closing.is_some() || others.iter().any(|other| other.fence > unit.fence) {
            return;
        }
        for older in &others {
            self.give_up(*older, self.times.grace_ms());
        }
        let phase = if others.iter().any(|older| self.held.contains_key(older)) {
            Phase::Queued(work)
        } else {
            self.out.push(Output::Start(work));
            Phase::Running
        };
        self.held.insert(unit, HeldUnit { lease_from, phase });
    }

    /// Stops a unit. An unknown unit counts as stopped, and a late order does not begin a unit that has ended.
    pub(super) fn stop(&mut self, now: u64, unit: Unit, grace_ms: u64, lease_from: u64) {
        let Some(held) = self.held.get_mut(&unit) else {
            return self.report(now, stopped(unit), lease_from);
        };
        match &mut held.phase {
            Phase::Reporting { .. } => {}
            Phase::Queued(_) => {
                let lease_from = held.lease_from;
                self.report(now, stopped(unit), lease_from);
            }
            Phase::Stopping { .. } => self.out.push(Output::Stop { unit, grace_ms }),
            phase @ (Phase::Running | Phase::Checkpointing { .. }) => {
                *phase = Phase::Stopping { then: StopFollowUp::Report };
                self.out.push(Output::Stop { unit, grace_ms });
            }
        }
    }

    pub(super) fn reached(&mut self, now: u64, unit: Unit, cursor: Arc<Value>) {
        let number = self.number();
        let Some(held) = self.held.get_mut(&unit) else { return };
        if let Phase::Running = held.phase {
            let checkpoint = Checkpoint { unit, number, cursor };
            self.out.push(call_checkpoint(&checkpoint));
            held.phase = Phase::Checkpointing { checkpoint, again: Again::first(now) };
        }
    }

    pub(super) fn kept(&mut self, unit: Unit, answered: u64, verdict: Verdict) {
        let Some(held) = self.held.get_mut(&unit) else { return };
        let awaits =
            matches!(&held.phase, Phase::Checkpointing { checkpoint, .. } if checkpoint.number == answered);
        if !awaits {
            return;
        }
        match verdict {
            Verdict::Accepted => {
                held.phase = Phase::Running;
                self.out.push(Output::Proceed(unit));
            }
            Verdict::Stale | Verdict::Conflict => self.give_up(unit, 0),
        }
    }

    /// Ends a unit whose checkpoint the engine can never accept.
    pub(super) fn checkpoint_refused(&mut self, unit: Unit, refused: u64, why: Box<Failure>) {
        let Some(held) = self.held.get_mut(&unit) else { return };
        if matches!(&held.phase, Phase::Checkpointing { checkpoint, .. } if checkpoint.number == refused) {
            held.phase = Phase::Stopping { then: StopFollowUp::Fail(why) };
            self.out.push(Output::Stop { unit, grace_ms: 0 });
        }
    }

    pub(super) fn ended(&mut self, now: u64, unit: Unit, report: Option<Box<Report>>) {
        let Some(held) = self.held.get(&unit) else { return };
        let lease_from = held.lease_from;
        let report = match &held.phase {
            Phase::Running | Phase::Checkpointing { .. } => report,
            Phase::Stopping { then: StopFollowUp::Report } => report.or_else(|| Some(stopped(unit))),
            Phase::Stopping { then: StopFollowUp::Fail(why) } => Some(failed(unit, (**why).clone())),
            Phase::Stopping { then: StopFollowUp::Nothing } => None,
            Phase::Queued(_) | Phase::Reporting { .. } => return,
        };
        match report {
            Some(report) => self.report(now, report, lease_from),
            None => self.remove(unit),
        }
        self.begin_next(unit);
    }

    fn report(&mut self, now: u64, report: Box<Report>, lease_from: u64) {
        self.out.push(call_report(&report));
        let unit = report.unit;
        let phase = Phase::Reporting { report, again: Again::first(now) };
        self.held.insert(unit, HeldUnit { lease_from, phase });
    }

    /// Handles a verdict, which is final: the report was accepted, or it came too late to change anything.
    pub(super) fn reported(&mut self, unit: Unit) {
        if let Some(HeldUnit { phase: Phase::Reporting { .. }, .. }) = self.held.get(&unit) {
            self.remove(unit);
        }
    }

    /// Replaces a report that the engine can never accept by the failure that says why.
    pub(super) fn report_refused(&mut self, now: u64, unit: Unit, why: Failure) {
        let Some(held) = self.held.get(&unit) else { return };
        let (lease_from, Phase::Reporting { report, .. }) = (held.lease_from, &held.phase) else { return };
        let replacement = failed(unit, why);
        // If even the failure is refused, it is sent again like a report without an answer.
        if *report != replacement {
            self.report(now, replacement, lease_from);
        }
    }

    fn remove(&mut self, unit: Unit) {
        self.held.remove(&unit);
        self.recent.add(unit);
    }

    /// Ends a unit without a report. It is removed when none of its processes runs any more.
    fn give_up(&mut self, unit: Unit, grace_ms: u64) {
        let Some(held) = self.held.get_mut(&unit) else { return };
        if held.is_local() {
            held.phase = Phase::Stopping { then: StopFollowUp::Nothing };
            self.out.push(Output::Stop { unit, grace_ms });
        } else {
            self.remove(unit);
        }
    }

    /// Gives up all units, except reports of work that has ended: they may still be accepted.
    pub(super) fn give_up_all(&mut self, grace_ms: u64) {
        let unfinished = |held: &HeldUnit| !matches!(held.phase, Phase::Reporting { .. });
        let units: Vec<Unit> =
            self.held.iter().filter(|(_, held)| unfinished(held)).map(|(unit, _)| *unit).collect();
        for unit in units {
            self.give_up(unit, grace_ms);
        }
    }

    fn begin_next(&mut self, gone: Unit) {
        let of_run = Unit { fence: u64::MIN, ..gone }..=Unit { fence: u64::MAX, ..gone };
        let mut of_run = self.held.range_mut(of_run);
        let Some((_, held)) = of_run.find(|(_, held)| matches!(held.phase, Phase::Queued(_))) else { return };
        if let Phase::Queued(work) = std::mem::replace(&mut held.phase, Phase::Running) {
            self.out.push(Output::Start(work));
        }
    }

    /// Stops all units whose lease may end soon, because no heartbeat that listed them was accepted in time.
    pub(super) fn leases(&mut self, now: u64) {
        let times = self.times;
        let lost = |held: &HeldUnit| held.needs_lease() && now >= times.give_up_at(held.lease_from);
        let units: Vec<Unit> =
            self.held.iter().filter(|(_, held)| lost(held)).map(|(unit, _)| *unit).collect();
        for unit in units {
            self.give_up(unit, times.grace_ms());
        }
    }

    pub(super) fn resend(&mut self, now: u64) {
        for held in self.held.values_mut() {
            match &mut held.phase {
                Phase::Checkpointing { checkpoint, again } if now >= again.at => {
                    *again = again.later(now);
                    self.out.push(call_checkpoint(checkpoint));
                }
                Phase::Reporting { report, again } if now >= again.at => {
                    *again = again.later(now);
                    self.out.push(call_report(report));
                }
                Phase::Queued(_) | Phase::Running | Phase::Stopping { .. } => {}
                Phase::Checkpointing { .. } | Phase::Reporting { .. } => {}
            }
        }
    }
}

fn call_checkpoint(checkpoint: &Checkpoint) -> Output {
    let Checkpoint { unit, number, .. } = *checkpoint;
    Output::Call { id: CallId::Checkpoint { unit, number }, call: Call::Checkpoint(checkpoint.clone()) }
}

fn call_report(report: &Report) -> Output {
    Output::Call { id: CallId::Report { unit: report.unit }, call: Call::Report(Box::new(report.clone())) }
}

fn stopped(unit: Unit) -> Box<Report> {
    report_of(unit, Outcome::Stopped)
}

fn failed(unit: Unit, why: Failure) -> Box<Report> {
    report_of(unit, Outcome::Failed(why))
}

fn report_of(unit: Unit, outcome: Outcome) -> Box<Report> {
    Box::new(Report { unit, outcome, patch: Map::new(), metadata: Map::new() })
}
