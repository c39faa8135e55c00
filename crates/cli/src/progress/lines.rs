//! One line per change, for pipes and files.

use super::say;
use crate::format::{duration, log_line, sentence};
use windlass_kernel::{Millis, Net};
use windlass_server::follow::Seen;
use windlass_views::{ExecutionChange, Occurrence, TimelineEntry};

#[derive(Debug, Default)]
pub struct Lines {
    started_at: Option<Millis>,
}

impl Lines {
    pub fn tell(&mut self, net: &Net, seen: &[Seen]) {
        // What a fork took over happened to another execution, and was told there.
        let own = seen.iter().rposition(is_fork).unwrap_or(0);
        for seen in &seen[own..] {
            match seen {
                Seen::Line(line) => say(&log_line(line)),
                Seen::Record(followed) => self.record(net, &followed.entry),
            }
        }
    }

    fn record(&mut self, net: &Net, entry: &TimelineEntry) {
        if let Occurrence::Execution(ExecutionChange::Started | ExecutionChange::Forked { .. }) =
            entry.occurrence
        {
            self.started_at = Some(entry.at);
        }
        let is_end = matches!(entry.occurrence, Occurrence::Execution(ExecutionChange::Ended { .. }));
        let took = self.started_at.filter(|_| is_end).map(|from| duration(entry.at.since(from)));
        if let Some(sentence) = sentence(net, entry) {
            let took = took.map(|took| format!(" after {took}")).unwrap_or_default();
            say(&format!("{sentence}{took}"));
        }
    }
}

fn is_fork(seen: &Seen) -> bool {
    let is_fork = |entry: &TimelineEntry| {
        matches!(entry.occurrence, Occurrence::Execution(ExecutionChange::Forked { .. }))
    };
    matches!(seen, Seen::Record(followed) if is_fork(&followed.entry))
}
