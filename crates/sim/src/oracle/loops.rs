//! Loops: iterations open in order, at most `cap` at a time, and the loop is routed once.

use super::arcs::Token;
use super::run::{End, Kind, Laps, Run, RunId, State};
use super::world::World;
use crate::scenario::{Loop, LoopKind};

/// Next move of a loop.
enum Wish {
    More,
    Nothing,
    /// More than its maximum.
    TooMuch,
}

impl World {
    fn laps(&mut self, id: RunId) -> Option<&mut Laps> {
        match &mut self.runs[id].state {
            State::Loop(laps) => Some(laps),
            _ => None,
        }
    }

    fn repeat(&self, id: RunId) -> Option<Loop> {
        self.net.step(self.runs[id].step).repeat
    }

    fn wish(&self, kind: LoopKind, laps: &Laps) -> Wish {
        match kind {
            LoopKind::ForEach(total) | LoopKind::Count(total) if laps.next < total => Wish::More,
            LoopKind::ForEach(_) | LoopKind::Count(_) => Wish::Nothing,
            LoopKind::Until { flag, .. } if self.flags.contains(&flag) => Wish::Nothing,
            LoopKind::Until { max, .. } if laps.next < max => Wish::More,
            LoopKind::Until { .. } => Wish::TooMuch,
        }
    }

    /// One move of a loop: opens an iteration or ends. False when there is nothing to do now. A hold does not keep an
    /// iteration from opening, only its work from beginning.
    pub(super) fn turn_loop(&mut self, id: RunId) -> bool {
        let (Some(repeat), State::Loop(laps)) = (self.repeat(id), &self.runs[id].state) else { return false };
        let laps = laps.clone();
        let wish = self.wish(repeat.kind, &laps);
        // A loop that just began, or whose body needs no worker, may end or fail in the same breath.
        self.input.instant = laps.next == 0 || self.input.chained;
        match (wish, laps.open) {
            (Wish::More, open) if open < repeat.cap => self.open_lap(id, repeat),
            (Wish::Nothing, 0) => self.finish_loop(id, laps.failed),
            (Wish::TooMuch, 0) => self.finish_loop(id, true),
            (Wish::More | Wish::Nothing | Wish::TooMuch, _) => return false,
        }
        true
    }

    fn finish_loop(&mut self, id: RunId, failed: bool) {
        self.finish(id, if failed { End::Failed } else { End::Done(None) });
    }

    fn open_lap(&mut self, id: RunId, repeat: Loop) {
        let Some(laps) = self.laps(id) else { return };
        let index = laps.next;
        laps.next += 1;
        laps.open += 1;
        let mut path = self.runs[id].path.clone();
        path.push(index);
        match repeat.body {
            true => self.open_body(id, index, &path),
            false => {
                let mut lap = Run::new(
                    self.runs[id].step,
                    path,
                    Kind::Iteration { of: id },
                    self.runs[id].arg,
                    self.firing_max,
                );
                lap.fresh = self.runs[id].fresh;
                self.runs.push(lap);
            }
        }
    }

    fn open_body(&mut self, id: RunId, index: u32, path: &[u32]) {
        let within = Some(self.runs[id].step);
        if let Some(laps) = self.laps(id) {
            laps.bodies.push((index, 0, false));
        }
        if self.net.body(within).next().is_none() {
            self.end_body(id, index);
        }
        let into: Vec<_> =
            self.net.into_body[self.runs[id].step].iter().map(|arc| (arc.to, arc.args)).collect();
        for (step, args) in into {
            if !self.decided() {
                self.arrive(step, path, Token::Live(args));
            }
        }
        for step in self.net.entries(within) {
            if !self.decided() {
                self.fire(step, path.to_vec(), None);
            }
        }
    }

    /// A step of a body is settled; the iteration ends with the last one.
    pub(super) fn settle_in_body(&mut self, step: usize, path: &[u32], failed: bool) {
        let Some(region) = self.net.step(step).region else { return };
        let Some((&index, above)) = path.split_last() else { return };
        let size = self.net.body(Some(region)).count();
        let is_loop =
            |run: &Run| run.step == region && run.path == above && matches!(run.state, State::Loop(_));
        let Some(id) = self.runs.iter().position(is_loop) else { return };
        let Some(laps) = self.laps(id) else { return };
        let Some(body) = laps.bodies.iter_mut().find(|body| body.0 == index) else { return };
        body.1 += 1;
        body.2 |= failed;
        if body.1 == size {
            self.end_body(id, index);
        }
    }

    fn end_body(&mut self, id: RunId, index: u32) {
        let Some(laps) = self.laps(id) else { return };
        let failed = laps.bodies.iter().any(|body| body.0 == index && body.2);
        laps.bodies.retain(|body| body.0 != index);
        self.lap_ended(id, failed);
    }

    pub(super) fn lap_ended(&mut self, id: RunId, failed: bool) {
        if let Some(laps) = self.laps(id) {
            laps.open -= 1;
            laps.failed |= failed;
        }
    }

    /// Parallel iterations that set one key to different values: the later one fails.
    pub(super) fn contradicts(&self, id: RunId, sets: Option<(usize, bool)>) -> bool {
        let (Some((flag, value)), Kind::Iteration { of }) = (sets, self.runs[id].of) else { return false };
        let parallel = self.repeat(of).is_some_and(|repeat| repeat.cap > 1);
        let wrote_other = |laps: &Laps| laps.wrote.contains(&(flag, !value));
        parallel && matches!(&self.runs[of].state, State::Loop(laps) if wrote_other(laps))
    }

    pub(super) fn note_write(&mut self, id: RunId, sets: Option<(usize, bool)>) {
        let Kind::Iteration { of } = self.runs[id].of else { return };
        if let Some(laps) = self.laps(of) {
            laps.wrote.extend(sets);
        }
    }
}
