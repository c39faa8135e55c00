//! The engine's part in the simulated world: it passes inputs to the kernel, loads the values that decisions need,
//! folds the records in and shows the consequences to the world. A sabotage acts between decide and evolve.

use super::World;
use super::happen::Happening;
use crate::generate::FLAGS;
use crate::invariants::Broken;
use crate::lower;
use crate::scenario::Dialect;
use crate::seen::What;
use windlass_kernel::*;

impl World {
    /// Passes an input to the kernel. If it is accepted, its records are applied and shown, and their consequences are
    /// planned.
    pub(super) fn give(
        &mut self,
        mut input: Input,
        shown: impl FnOnce(bool) -> Option<What>,
    ) -> Result<bool, Broken> {
        if let Some(sabotage) = self.sabotage {
            sabotage.on_input(&mut input, &self.state);
        }
        let decided = self.decide(&input)?;
        let accepted = decided.is_ok();
        if let Some(what) = shown(accepted) {
            self.observe(what)?;
        }
        if let Ok(decision) = decided {
            self.apply(decision)?;
        }
        self.observe(What::Settled)?;
        Ok(accepted)
    }

    fn decide(&mut self, input: &Input) -> Result<Result<Decision, Rejected>, Broken> {
        let mut values = Values::default();
        let random = self.rng.bits();
        for _ in 0..20 {
            let given = Given { now: Millis(self.now), random, values: &values };
            let decided = decide(&self.state, &self.net, input, &given);
            self.decides += 1;
            if self.decides.is_multiple_of(8) && decide(&self.state, &self.net, input, &given) != decided {
                return Err(Broken::new("K6", format!("two decisions differ for {input:?}")));
            }
            match decided {
                Err(Rejected::Needs(needs)) => values.load(&self.journal, &needs),
                Err(Rejected::Broken(illegal)) => return Err(Broken::new("legality", illegal.to_string())),
                other => return Ok(other),
            }
        }
        Err(Broken::new("R4", format!("values are asked for again and again for {input:?}")))
    }

    /// Folds records in until the kernel has no more of them.
    fn apply(&mut self, mut decision: Decision) -> Result<(), Broken> {
        loop {
            let mut expected = self.state.clone();
            expected.apply(&decision.changes);
            let mut records = decision.records;
            if let Some(sabotage) = self.sabotage {
                sabotage.on_records(&mut records, &self.state, &self.net);
            }
            let more = matches!(records.last().map(|record| &record.event), Some(Event::Continued));
            for record in records {
                self.fold(record)?;
            }
            if self.sabotage.is_none() && expected != self.state {
                return Err(Broken::new("K1", "the changes of a decision are not what its records lead to"));
            }
            if !more {
                return Ok(());
            }
            match self.decide(&Input::Continue)? {
                Ok(next) => decision = next,
                Err(rejected) => return Err(Broken::new("R5", format!("cannot go on: {rejected}"))),
            }
        }
    }

    fn fold(&mut self, record: Record) -> Result<(), Broken> {
        let before = self.state.phase();
        let shown = self.show(&record.event);
        evolve(&mut self.state, &self.net, &record)
            .map_err(|illegal| Broken::new("legality", illegal.to_string()))?;
        self.invariants.after(&self.state, &record, &self.net)?;
        self.journal.push(record);
        for what in shown {
            self.plan_for(&what);
            self.observe(what)?;
        }
        if self.state.phase() != before {
            self.status(self.state.phase())?;
        }
        Ok(())
    }

    pub(super) fn create(&mut self) -> Result<(), Broken> {
        let create = Create::new(ExecutionId(1), lower::inputs());
        self.give(Input::Create(Box::new(create)), |_| Some(What::Created)).map(drop)
    }

    /// Users do a few things at random times.
    pub(super) fn plan_users(&mut self) {
        let span = 12_000;
        let count = self.rng.below(if self.trouble > 10 { 6 } else { 3 });
        for _ in 0..count {
            let at = self.now + self.rng.between(0, span) as i64;
            let ask = match self.rng.below(100) {
                0..=29 => Happening::Patch { flag: self.rng.index(FLAGS), value: self.rng.percent(85) },
                30..=49 => Happening::Hold,
                50..=64 => Happening::Resume,
                65..=79 => {
                    Happening::Cancel { force: self.rng.percent(35), compensate: self.rng.percent(40) }
                }
                _ => Happening::Nonsense,
            };
            if ask == Happening::Hold {
                // Every pause ends at some time; some users cancel instead.
                let later = at + self.rng.between(1, span) as i64;
                self.agenda.plan(later, Happening::Resume);
            }
            self.agenda.plan(at, ask);
        }
        if self.scenario.dialect != Dialect::Plan && self.rng.percent(70) {
            // Most flags are set in the end, so that gates open.
            for flag in 0..FLAGS {
                let at = self.now + self.rng.between(span, 2 * span) as i64;
                self.agenda.plan(at, Happening::Patch { flag, value: true });
            }
        }
    }
}
