//! Text for people: durations, failures, events.

use crate::embedded::now;
use crate::follow::LogLine;
pub use crate::text::plain;
use crate::text::{Colours, legible};
use std::fmt::{self, Display};
use windlass_kernel::{Millis, any_of};
use windlass_views::{
    ExecutionStatus, FiringRole, LogStream, ProgressChange, ProgressEntry, ProgressFailure, ProgressFiring,
    ProgressFiringChange, ProgressTimes, label, time,
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
    let between = if line.stream == LogStream::Worker { ":" } else { " |" };
    format!("{}{between} {}", label(&line.step, &line.path), legible(&line.text, colours))
}

pub fn failure(failure: &ProgressFailure) -> String {
    format!("{} ({})", plain(&failure.message), failure.code)
}

/// Formats a question to a person: `: Ship it? (asked: ann; until 2026-…)`. A large message is left out.
#[derive(Debug)]
pub struct Question<'q> {
    pub message: Option<&'q str>,
    pub approvers: &'q [String],
    pub deadline: Option<String>,
}

impl Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = self.message {
            write!(f, ": {}", shorten(&plain(message), MESSAGE_MAX))?;
        }
        let asked =
            (!self.approvers.is_empty()).then(|| format!("asked: {}", plain(&self.approvers.join(", "))));
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

/// Returns a sentence about an entry; None if it is of no interest to people.
pub fn sentence(entry: &ProgressEntry) -> Option<String> {
    let name = |firing: &ProgressFiring| label(&firing.step, &firing.path);
    Some(match &entry.change {
        ProgressChange::Started => "started".to_owned(),
        ProgressChange::TakenOver { from } => format!("takes over from {from}"),
        ProgressChange::Paused => "paused: only a person can continue it".to_owned(),
        ProgressChange::Held { by, reason } => {
            let because = if reason.is_empty() { String::new() } else { format!(": {}", plain(reason)) };
            format!("held by {by}{because}")
        }
        ProgressChange::Released { by } => format!("released by {by}"),
        ProgressChange::Restarted { generation } => {
            format!("restarted from scratch (generation {generation})")
        }
        ProgressChange::ContextChanged { keys, by } => {
            format!("context changed by {by}: {}", keys.join(", "))
        }
        ProgressChange::Ended { status, failure: why } => {
            // The failure is described by the following report.
            let why = why.as_ref().filter(|_| *status == ExecutionStatus::Cancelled);
            let why = why.map(|why| format!(": {}", failure(why))).unwrap_or_default();
            format!("{}{why}", status.word())
        }
        ProgressChange::Firing { firing, change } => {
            let noun = if firing.role == FiringRole::Compensation { "compensation of" } else { "step" };
            let what = firing_sentence(change, entry.timestamp)?;
            format!("{noun} {} {what}", name(firing))
        }
        ProgressChange::Gated { step, path, keys, deadline } => {
            let keys: Vec<String> = keys.iter().map(|key| format!("ctx.{key}")).collect();
            let by =
                if keys.is_empty() { String::new() } else { format!(", which reads {}", keys.join(", ")) };
            let until = deadline.map(|until| format!(", until {}", time(until))).unwrap_or_default();
            format!("step {} waits at its gate{by}{until}", label(step, path))
        }
        ProgressChange::Joined { step, branches } => {
            let noun = if *branches == 1 { "branch" } else { "branches" };
            format!("step {step} joins {branches} {noun}")
        }
        ProgressChange::GivenUp { firings } => {
            let names: Vec<String> = firings.iter().map(name).collect();
            format!("given up: {}", names.join(", "))
        }
    })
}

fn firing_sentence(change: &ProgressFiringChange, at: Millis) -> Option<String> {
    // The worker has the time at which the work began; the offer may be earlier.
    let took = |times: &ProgressTimes| {
        let began = times.started_at.or(times.queued_at);
        began.map(|began| format!(" {}", duration(at.since(began)))).unwrap_or_default()
    };
    Some(match change {
        ProgressFiringChange::Queued { attempt: 1 } => "queued".to_owned(),
        ProgressFiringChange::Queued { attempt } => format!("queued, attempt {attempt}"),
        ProgressFiringChange::LoopStarted { total: Some(total) } => {
            format!("started, {}", counted(*total, "iteration"))
        }
        ProgressFiringChange::LoopStarted { total: None } => "started".to_owned(),
        ProgressFiringChange::ChildStarted { child_id } => format!("started {child_id}"),
        ProgressFiringChange::Done { times } => format!("done{}", took(times)),
        ProgressFiringChange::Failed { failure: why, handled, times } => {
            let handled = if *handled { ", handled" } else { "" };
            format!("failed{}{handled}: {}", took(times), failure(why))
        }
        ProgressFiringChange::RetryScheduled { until, failure: why } => {
            format!("failed: {}; next attempt in {}", failure(why), duration(until.since(at)))
        }
        ProgressFiringChange::Yielded { until } => format!("continues in {}", duration(until.since(at))),
        ProgressFiringChange::Lost => "lost its worker and is queued again".to_owned(),
        ProgressFiringChange::Waiting { until } => format!("waits until {}", time(*until)),
        ProgressFiringChange::AwaitingPerson { message, approvers, deadline } => {
            let deadline = deadline.map(time);
            let question = Question { message: message.as_deref(), approvers, deadline };
            format!("waits for a person{question}")
        }
        ProgressFiringChange::ChildPaused { child_id: Some(child) } => {
            format!("waits: only a person can continue {child}")
        }
        ProgressFiringChange::Skipped => "skipped".to_owned(),
        ProgressFiringChange::Cancelled => "cancelled".to_owned(),
        ProgressFiringChange::ChildPaused { child_id: None }
        | any_of![ProgressFiringChange: Fired IterationEnded ChildContinued] => return None,
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
