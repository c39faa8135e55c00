//! Answers of the engine to workers, compared with the data on disk at that moment (K7).

use super::Watch;
use super::journal::Shadow;
use super::leases::{awaits_uploads, calls, is_open, parts};
use crate::invariants::Broken;
use crate::rng::Rng;
use serde_json::Value;
use std::sync::Arc;
use windlass_kernel::{Answer, Event, Phase, WorkResult};
use windlass_protocol::{Order, Outcome, Report, SessionId, Unit, Verdict};
use windlass_store::{Reader, Write};

impl Watch {
    pub fn ordered(&self, session: SessionId, order: &Order) -> Result<(), Broken> {
        match order {
            Order::Run(work) => self.leases.ordered(session, work, &self.shadows),
            Order::Stop { unit, .. } => self.stop_ordered(*unit),
            Order::Unknown => Ok(()),
        }
    }

    /// Work is stopped because its journal says so, or because the engine wants it back from a worker that does not
    /// name it: then it may still be open.
    fn stop_ordered(&self, unit: Unit) -> Result<(), Broken> {
        let (execution, run, fence) = parts(unit);
        let asked = |event: &Event| match event {
            Event::StopAsked { leases, .. } => leases.contains(&(run, fence)),
            _ => false,
        };
        let shadow = self.shadows.get(&execution);
        let journaled = shadow.is_some_and(|shadow| shadow.records().any(|record| asked(&record.event)));
        let recalled = is_open(&self.shadows, unit);
        let is_over = |shadow: &Shadow| {
            shadow.state.phase().is_ended() || shadow.state.head.generation > unit.generation()
        };
        let let_go = unit.is_whole() && shadow.is_some_and(is_over);
        if journaled || recalled || let_go {
            return Ok(());
        }
        Err(Broken::new("K7", format!("{unit:?} was ordered to stop, and its journal does not say why")))
    }

    /// The verdict on a report.
    pub fn judged(&self, report: &Report, verdict: Verdict) -> Result<(), Broken> {
        let (execution, run, fence) = parts(report.unit);
        let answer = self.shadows.get(&execution).and_then(|shadow| shadow.answers.get(&(run, fence)));
        let untrue = |what: &str| {
            let message = format!("a report of {:?} was answered {verdict:?}: {what}", report.unit);
            Err(Broken::new("K7", message))
        };
        let open = is_open(&self.shadows, report.unit) && !awaits_uploads(&self.shadows, report.unit);
        let generation = self.shadows.get(&execution).map(|shadow| shadow.state.head.generation);
        match (verdict, answer) {
            // The execution restarted, so reports of earlier generations change nothing.
            (Verdict::Stale, _) if generation > Some(report.unit.generation()) => Ok(()),
            // A worker that gave its work up says so; that is a loss, and no answer.
            (Verdict::Accepted, None) if report.outcome == Outcome::Stopped && !open => Ok(()),
            (Verdict::Accepted, None) => untrue("no answer is on disk"),
            (Verdict::Accepted, Some(answer)) if says(answer, &report.outcome) => Ok(()),
            (Verdict::Accepted, Some(_)) => untrue("another answer is on disk"),
            (Verdict::Stale | Verdict::Conflict, _) if open => untrue("the offer is open on disk"),
            (Verdict::Conflict, None) => untrue("no other answer is on disk"),
            (Verdict::Stale | Verdict::Conflict, Some(answer)) if says(answer, &report.outcome) => {
                untrue("exactly that is on disk")
            }
            (Verdict::Stale | Verdict::Conflict, _) => Ok(()),
        }
    }

    /// A worker hears that its report was accepted.
    pub fn heard(&self, unit: Unit) -> Result<(), Broken> {
        if is_open(&self.shadows, unit) && !awaits_uploads(&self.shadows, unit) {
            let what = format!("a report of {unit:?} was accepted, and its offer is open on disk");
            return Err(Broken::new("K7", what));
        }
        Ok(())
    }

    /// The verdict on a checkpoint: one that is kept is stored with its offer until the offer is answered.
    pub fn kept(
        &self,
        unit: Unit,
        cursor: &Arc<Value>,
        verdict: Verdict,
        reader: &mut impl Reader,
    ) -> Result<(), Broken> {
        if verdict != Verdict::Accepted || !is_open(&self.shadows, unit) {
            return Ok(());
        }
        if unit.is_whole() {
            return self.steps_began(unit);
        }
        let (execution, run, fence) = parts(unit);
        let offers = reader.offers(None, usize::MAX >> 1).map_err(super::store)?;
        let offer = offers
            .into_iter()
            .find(|offer| (offer.execution, offer.run, offer.fence) == (execution, run, fence));
        // A copy of an earlier one is accepted, and leaves the newer one where it is.
        let on_disk = offer.and_then(|offer| offer.cursor);
        if on_disk.is_some() && calls(on_disk.as_deref()) >= calls(Some(cursor)) {
            return Ok(());
        }
        Err(Broken::new("K7", format!("a checkpoint of {unit:?} was accepted and is not on disk")))
    }

    /// A worker heard that it may begin with the steps.
    fn steps_began(&self, unit: Unit) -> Result<(), Broken> {
        let (execution, ..) = parts(unit);
        if self.phase(execution) == Some(Phase::Starting) {
            let what = format!("the worker of {unit:?} was answered, and its beginning is not on disk");
            return Err(Broken::new("K7", what));
        }
        Ok(())
    }

    /// Writes that a sound disk refuses: under a lease that is over, or for an offer that someone else has.
    pub fn straggler(&self, rng: &mut Rng) -> Option<Vec<Write>> {
        self.leases.straggler(&self.shadows, rng)
    }

    pub fn begun(&mut self, unit: Unit, ordered_in: u32) -> Result<(), Broken> {
        self.leases.begin(unit, ordered_in, &self.shadows)
    }
}

fn says(answer: &Answer, outcome: &Outcome) -> bool {
    let Answer::Report { result, .. } = answer else { return false };
    match (result, outcome) {
        (WorkResult::Done { output }, Outcome::Done { output: reported }) => **output == *reported,
        (WorkResult::Failed(failure), Outcome::Failed(reported)) => failure.code == reported.code,
        (WorkResult::Stopped, Outcome::Stopped) => true,
        (WorkResult::Later { delay_ms, .. }, Outcome::Later { delay_ms: reported, .. }) => {
            delay_ms == reported
        }
        (WorkResult::Child { definition, .. }, Outcome::Child { definition: reported, .. }) => {
            **definition == *reported
        }
        _ => false,
    }
}
