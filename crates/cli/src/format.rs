//! Text for people: durations, failures, events.

use crate::embedded::now;
use crate::follow::LogLine;
pub use crate::text::plain;
use crate::text::{Colours, legible};
use serde_json::Value;
use std::fmt::{self, Display};
use windlass_kernel::{Failure, Millis, Net, Outcome, PauseReason, Phase, Role, Times, any_of};
use windlass_protocol::Stream;
use windlass_views::{
    ExecutionChange, FiringChange, FiringRef, Occurrence, TimelineEntry, TokenChange, TokenRef, execution_id,
    gate_keys, label, status, time,
};

pub use windlass_views::duration;

/// Maximum number of characters of a question to a person; the rest is in `executions get --json`.
const MESSAGE_MAX: usize = 500;

/// Formats a count with its noun: `1 step`, `2 steps`, `2 retries`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    match (count == N::from(1), noun.strip_suffix("ry")) {
        (true, _) => format!("{count} {noun}"),
        (false, Some(stem)) => format!("{count} {stem}ries"),
        (false, None) => format!("{count} {noun}s"),
    }
}

/// Formats a duration in one unit: `12 s`, `5 min`, `3 h`, `40 d`.
pub fn age(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Formats the age of a time of the API in one unit.
pub fn since(text: &str) -> String {
    let at: Result<jiff::Timestamp, _> = text.parse();
    at.map_or_else(|_| "-".to_owned(), |at| age(now().since(Millis(at.as_millisecond()))))
}

/// Formats a line of a log with its step. Lines of the worker itself are not output of the step.
pub fn log_line(line: &LogLine, colours: Colours) -> String {
    let between = if line.stream == Stream::Worker { ":" } else { " |" };
    format!("{}{between} {}", label(&line.step, &line.path), legible(&line.text, colours))
}

pub fn failure(failure: &Failure) -> String {
    format!("{} ({})", plain(&failure.message), failure.code)
}

/// Formats a question to a person: `: Ship it? (asked: ann; until 2026-…)`. A large message is left out.
#[derive(Debug)]
pub struct Question<'q> {
    pub message: &'q Value,
    pub approvers: &'q Value,
    pub deadline: Option<String>,
}

impl Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = self.message.as_str() {
            write!(f, ": {}", shorten(&plain(message), MESSAGE_MAX))?;
        }
        let names = self.approvers.as_array().into_iter().flatten().filter_map(Value::as_str);
        let names: Vec<&str> = names.chain(self.approvers.as_str()).collect();
        let asked = (!names.is_empty()).then(|| format!("asked: {}", plain(&names.join(", "))));
        let until = self.deadline.as_ref().map(|until| format!("until {until}"));
        let notes: Vec<String> = asked.into_iter().chain(until).collect();
        if notes.is_empty() { Ok(()) } else { write!(f, " ({})", notes.join("; ")) }
    }
}

pub fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns a sentence about a record; None if it is of no interest to people.
pub fn sentence(net: &Net, entry: &TimelineEntry) -> Option<String> {
    match &entry.occurrence {
        Occurrence::Execution(change) => execution_sentence(change),
        Occurrence::Firing(firing, change) => {
            let noun = if matches!(firing.role, Role::Hook { .. }) { "compensation of" } else { "step" };
            let what = firing_sentence(firing, change, entry.at)?;
            Some(format!("{noun} {} {what}", label(&net.step(firing.step).name, &firing.path.0)))
        }
        Occurrence::Token(TokenChange::Denied { at: Some(TokenRef { step, path }), deadline, .. }) => {
            let keys: Vec<String> = gate_keys(net, *step).iter().map(|key| format!("ctx.{key}")).collect();
            let by =
                if keys.is_empty() { String::new() } else { format!(", which reads {}", keys.join(", ")) };
            let until = deadline.map(|until| format!(", until {}", time(until))).unwrap_or_default();
            Some(format!("step {} waits at its gate{by}{until}", label(&net.step(*step).name, &path.0)))
        }
        Occurrence::Token(TokenChange::Joined { at: TokenRef { step, .. }, arrived }) => {
            let branches = if *arrived == 1 { "branch" } else { "branches" };
            Some(format!("step {} joins {arrived} {branches}", net.step(*step).name))
        }
        Occurrence::Token(
            TokenChange::Denied { at: None, .. } | TokenChange::Discarded(_) | TokenChange::Admitted(_),
        ) => None,
        Occurrence::Cleared { dropped, .. } if dropped.is_empty() => None,
        Occurrence::Cleared { dropped, .. } => {
            let name = |firing: &FiringRef| label(&net.step(firing.step).name, &firing.path.0);
            let names: Vec<String> = dropped.iter().map(|(firing, _)| name(firing)).collect();
            Some(format!("given up: {}", names.join(", ")))
        }
    }
}

fn execution_sentence(change: &ExecutionChange) -> Option<String> {
    Some(match change {
        ExecutionChange::Started => "started".to_owned(),
        ExecutionChange::Forked { parent, .. } => format!("takes over from {}", execution_id(*parent)),
        ExecutionChange::Paused(PauseReason::Waiting) => "paused: only a person can continue it".to_owned(),
        ExecutionChange::Held { by, reason } => {
            let because = if reason.is_empty() { String::new() } else { format!(": {}", plain(reason)) };
            format!("held by {by}{because}")
        }
        ExecutionChange::Released { by } => format!("released by {by}"),
        ExecutionChange::Restarted { generation } => {
            format!("restarted from scratch (generation {generation})")
        }
        ExecutionChange::Patched { patch, by } => {
            let keys: Vec<&str> = patch.keys().map(String::as_str).collect();
            format!("context changed by {by}: {}", keys.join(", "))
        }
        ExecutionChange::Ended { outcome, failure: why } => {
            // The failure is described by the following report.
            let why = why.as_ref().filter(|_| *outcome == Outcome::Cancelled);
            let why = why.map(|why| format!(": {}", failure(why))).unwrap_or_default();
            format!("{}{why}", status(Phase::Ended(*outcome)))
        }
        ExecutionChange::Paused(PauseReason::Held)
        | any_of![ExecutionChange: Created Resumed Draining Compensating Finalizing NotCompensated
            Bookkeeping] => return None,
    })
}

fn firing_sentence(firing: &FiringRef, change: &FiringChange, at: Millis) -> Option<String> {
    // The lease has the time at which the work began; the offer may be earlier.
    let took = |times: &Option<Times>| {
        let began = times.map(|times| times.started_at).or(firing.began_at);
        began.map(|began| format!(" {}", duration(at.since(began)))).unwrap_or_default()
    };
    Some(match change {
        FiringChange::Offered { attempt: 1 } => "queued".to_owned(),
        FiringChange::Offered { attempt } => format!("queued, attempt {attempt}"),
        FiringChange::LoopStarted { total: Some(total) } => {
            format!("started, {}", counted(*total, "iteration"))
        }
        FiringChange::LoopStarted { total: None } => "started".to_owned(),
        FiringChange::ChildStarted { child, .. } => format!("started {}", execution_id(*child)),
        FiringChange::Done { times, .. } => format!("done{}", took(times)),
        FiringChange::Failed { failure: why, handled, times, .. } => {
            let handled = if *handled { ", handled" } else { "" };
            format!("failed{}{handled}: {}", took(times), failure(why))
        }
        FiringChange::RetryScheduled { until, failure: why } => {
            format!("failed: {}; next attempt in {}", failure(why), duration(until.since(at)))
        }
        FiringChange::Yielded { until } => format!("continues in {}", duration(until.since(at))),
        FiringChange::Lost => "lost its worker and is queued again".to_owned(),
        FiringChange::Waiting { until } | FiringChange::Delayed { until } => {
            format!("waits until {}", time(*until))
        }
        FiringChange::AwaitingManual { question, deadline, .. } => {
            let deadline = deadline.map(time);
            let question =
                Question { message: &question["message"], approvers: &question["approvers"], deadline };
            format!("waits for a person{question}")
        }
        FiringChange::ChildPaused { paused: true, child: Some(child) } => {
            format!("waits: only a person can continue {}", execution_id(*child))
        }
        FiringChange::Skipped(_) => "skipped".to_owned(),
        FiringChange::Dropped(_) => "cancelled".to_owned(),
        any_of![FiringChange: Fired Woken CompletedManually Noted IterationStarted IterationEnded ChildPaused
            ChildReturned AgentDecided Routed] => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        for (ms, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min 0 s"),
            (3_599_999, "59 min 59 s"),
            (3_600_000, "1 h 0 min"),
            (100_000_000, "27 h 46 min"),
        ] {
            assert_eq!(duration(ms), expected);
        }
    }

    #[test]
    fn nouns_follow_their_number() {
        for (count, noun, expected) in [
            (0, "step", "0 steps"),
            (1, "step", "1 step"),
            (2, "retry", "2 retries"),
            (1, "retry", "1 retry"),
        ] {
            assert_eq!(counted(count, noun), expected);
        }
    }

    #[test]
    fn ages_have_one_unit() {
        for (ms, expected) in
            [(0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (7_200_000, "2 h"), (172_800_000, "2 d")]
        {
            assert_eq!(age(ms), expected);
        }
    }
}
