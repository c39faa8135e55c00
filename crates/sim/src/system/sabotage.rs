//! Sabotages: faults of the system that are caused from outside, by the parts around the engine and the workers. None
//! has a switch in production code. The oracle must detect each of them.

use super::disk::Laxity;
use super::store::Forgets;

macro_rules! sabotages {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Sabotage { $($(#[$doc])* $name),* }
        impl Sabotage {
            pub const ALL: &'static [Sabotage] = &[$(Sabotage::$name),*];
        }
    };
}

sabotages! {
    /// The disk loses the newest acknowledged batch in a crash.
    CommitForgotten,
    /// The engine hears that a batch is on disk when it has only been handed over.
    EffectBeforeSync,
    TimersLostAtRestart,
    MailLostAtRestart,
    /// Leases are not found again, the offers they are for are.
    LeasesLostAtRestart,
    OffersLostAtRestart,
    /// Executions that were cut short in the middle are not taken up again.
    UnfinishedLostAtRestart,
    /// The disk hands mail out again that was consumed, and lets it be consumed again.
    MailConsumedTwice,
        MailPostedTwice,
    /// The inbox is read from its end.
    MailOutOfOrder,
    /// The disk keeps only the first half of the batch in transit in a crash.
    BatchTorn,
    /// Checkpoints are acknowledged and forgotten.
    CheckpointNotKept,
    /// The disk takes leases, checkpoints and answers under any fence.
    FenceNotChecked,
    RowsDropped,
    JournalRowDropped,
    RecordsDatedBack,
    /// A worker learns that its report was accepted, and the engine never hears of it.
    VerdictForged,
    /// A worker continues work that it must stop.
    StopIgnored,
    /// A worker begins again what it ended, when the order comes twice.
    OrderBegunTwice,
    /// The engine's clock of leases runs fast: it takes work back too early.
    LeasesEndEarly,
    /// An agent that asks again calls it another call.
    AgentCallRenamed,
    /// Some answers to agents are lost, and the agents do not ask again.
    AgentAnswerLost,
}

impl Sabotage {
    pub(super) fn lax(self) -> Laxity {
        Laxity {
            fences: self == Sabotage::FenceNotChecked,
            mail: self == Sabotage::MailConsumedTwice,
            mail_twice: self == Sabotage::MailPostedTwice,
            drops_rows: self == Sabotage::RowsDropped,
            drops_journal: self == Sabotage::JournalRowDropped,
            old_times: self == Sabotage::RecordsDatedBack,
            cursors: self == Sabotage::CheckpointNotKept,
        }
    }

    /// Rows that a process does not find, and the order in which it finds the others.
    pub(super) fn forgets(self, is_first: bool) -> Forgets {
        let later = |sabotage| self == sabotage && !is_first;
        Forgets {
            timers: later(Sabotage::TimersLostAtRestart),
            mail: later(Sabotage::MailLostAtRestart),
            leases: later(Sabotage::LeasesLostAtRestart),
            offers: later(Sabotage::OffersLostAtRestart),
            unfinished: later(Sabotage::UnfinishedLostAtRestart),
            order: self == Sabotage::MailOutOfOrder,
        }
    }
}
