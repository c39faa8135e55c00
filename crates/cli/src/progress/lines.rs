//! One line per change, for pipes and files.

use super::say;
use crate::words::{duration, log_line, sentence};
use windlass_kernel::{Event, Millis, Net};
use windlass_server::follow::{Happened, Seen};

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
                Seen::Record(happened) => self.record(net, happened),
            }
        }
    }

    fn record(&mut self, net: &Net, happened: &Happened) {
        let at = happened.record.at;
        let took = match happened.record.event {
            Event::Started { .. } | Event::Forked(_) => {
                self.started_at = Some(at);
                None
            }
            Event::Ended { .. } => self.started_at.map(|from| format!(" after {}", duration(at.since(from)))),
            _ => None,
        };
        if let Some(sentence) = sentence(net, happened) {
            say(&format!("{sentence}{}", took.unwrap_or_default()));
        }
    }
}

fn is_fork(seen: &Seen) -> bool {
    matches!(seen, Seen::Record(happened) if matches!(happened.record.event, Event::Forked(_)))
}
