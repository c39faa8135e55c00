//! Events from outside, and the times that they are planned for.

use crate::seen::{Firing, Reply, Verdict, Wish};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use windlass_kernel::{Input, Timer};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Happening {
    Timer(Timer),
    Hold,
    Resume,
    Cancel {
        force: bool,
        compensate: bool,
    },
    Patch {
        flag: usize,
        value: bool,
    },
    Assign,
    Begin,
    /// The one worker that has everything dies.
    WorkerDies {
        generation: u32,
    },
    Answer {
        firing: Firing,
        fence: u64,
        reply: Reply,
        sets: Option<(usize, bool)>,
    },
    Lose {
        firing: Firing,
        fence: u64,
        started: bool,
    },
    TimeOut {
        firing: Firing,
        fence: u64,
    },
    ChildEnds {
        firing: Firing,
        fence: u64,
        reply: Reply,
    },
    Person {
        firing: Firing,
        fence: u64,
        verdict: Verdict,
        right: bool,
    },
    RouteReady {
        firing: Firing,
    },
    Uploads {
        failed: bool,
    },
    Agent {
        firing: Firing,
        fence: u64,
        call: u32,
        wish: Wish,
    },
    /// Something that was accepted before comes once more.
    Again(Box<Input>),
    /// An input that means nothing here and must be refused.
    Nonsense,
}

#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(i64, u64)>>,
    plans: std::collections::BTreeMap<u64, Happening>,
    count: u64,
}

impl Agenda {
    pub(super) fn plan(&mut self, at: i64, happening: Happening) {
        self.heap.push(Reverse((at, self.count)));
        self.plans.insert(self.count, happening);
        self.count += 1;
    }

    pub(super) fn next_at(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn take(&mut self) -> Option<(i64, Happening)> {
        let Reverse((at, number)) = self.heap.pop()?;
        Some((at, self.plans.remove(&number)?))
    }
}
