//! Words for people: durations, failures, what happened.

use crate::embedded::now;
use windlass_kernel::{Event, Failure, Millis, Net, PauseReason, Phase, Role};
use windlass_protocol::Stream;
use windlass_server::follow::{Happened, LogLine, Subject, label};
use windlass_views::{execution_id, gate_keys, status, time};

/// `12 ms`, `1.2 s`, `2 min 5 s`, `3 h 7 min`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// In one unit: `12 s`, `5 min`, `3 h`, `40 d`.
pub fn age(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// How long ago a time of the API was, in one unit.
pub fn since(text: &str) -> String {
    let at: Result<jiff::Timestamp, _> = text.parse();
    at.map_or_else(|_| "-".to_owned(), |at| age(now().since(Millis(at.as_millisecond()))))
}

/// Without what would steer a terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !c.is_control()).collect()
}

/// A line of a log with the step before it; what the worker itself says is no output of the step.
pub fn log_line(line: &LogLine) -> String {
    let between = if line.stream == Stream::Worker { ":" } else { " |" };
    format!("{}{between} {}", label(&line.step, &line.path), plain(&line.text))
}

pub fn failure(failure: &Failure) -> String {
    format!("{} ({})", plain(&failure.message), failure.code)
}

/// A sentence for what people want to know of; None for the rest.
pub fn sentence(net: &Net, happened: &Happened) -> Option<String> {
    let at = happened.record.at;
    Some(match &happened.record.event {
        Event::Started { .. } => "started".to_owned(),
        Event::Forked(fork) => format!("takes over from {}", execution_id(fork.parent)),
        Event::Paused { reason: PauseReason::Waiting, .. } => {
            "paused: only a person can move it on".to_owned()
        }
        Event::Held { by, reason } => format!("held by {by}{}", because(reason)),
        Event::Released { by } => format!("released by {by}"),
        Event::Restarted { generation, .. } => format!("restarted from scratch (generation {generation})"),
        Event::Patched { patch, by } => {
            let keys: Vec<&str> = patch.keys().map(String::as_str).collect();
            format!("context changed by {by}: {}", keys.join(", "))
        }
        Event::Ended { outcome, failure: why } => {
            let why = why.as_ref().map(|why| format!(": {}", failure(why))).unwrap_or_default();
            format!("{}{why}", status(Phase::Ended(*outcome)))
        }
        Event::Cleared(cleared) => {
            let gone: Vec<String> = happened.subjects.iter().map(Subject::label).collect();
            if cleared.dropped.is_empty() { return None } else { format!("given up: {}", gone.join(", ")) }
        }
        event => step_sentence(net, happened.subject()?, event, at)?,
    })
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {}", plain(reason)) }
}

fn step_sentence(net: &Net, subject: &Subject, event: &Event, at: Millis) -> Option<String> {
    let began = match event {
        // The lease knows better than the offer when the work began.
        Event::Done { times: Some(times), .. } | Event::Failed { times: Some(times), .. } => {
            Some(times.started_at)
        }
        _ => subject.began_at,
    };
    let took = began.map(|began| format!(" {}", duration(at.since(began)))).unwrap_or_default();
    let what = match event {
        Event::Offered { attempt: 1, .. } => "offered".to_owned(),
        Event::Offered { attempt, .. } => format!("offered, attempt {attempt}"),
        Event::LoopStarted { total: Some(total), .. } => format!("started, {total} iterations"),
        Event::LoopStarted { total: None, .. } => "started".to_owned(),
        Event::ChildStarted { child, .. } => format!("started {}", execution_id(*child)),
        Event::Done { .. } => format!("done{took}"),
        Event::Failed { failure: why, handled, .. } => {
            let handled = if *handled { ", handled" } else { "" };
            format!("failed{took}{handled}: {}", failure(why))
        }
        Event::RetryScheduled { until, failure: why, .. } => {
            format!("failed: {}; again in {}", failure(why), duration(until.since(at)))
        }
        Event::Yielded { until, .. } => format!("goes on in {}", duration(until.since(at))),
        Event::Lost { .. } => "lost its worker and is offered again".to_owned(),
        Event::Waiting { until, .. } | Event::Delayed { until, .. } => {
            format!("waits until {}", time(*until))
        }
        Event::AwaitingManual { .. } => "waits for a person to complete it".to_owned(),
        Event::Skipped { .. } => "skipped".to_owned(),
        Event::Dropped { .. } => "cancelled".to_owned(),
        Event::Denied { .. } => gate(net, subject),
        _ => return None,
    };
    let noun = if matches!(subject.role, Role::Hook { .. }) { "compensation of" } else { "step" };
    Some(format!("{noun} {} {what}", subject.label()))
}

fn gate(net: &Net, subject: &Subject) -> String {
    let keys: Vec<String> = gate_keys(net, subject.step).iter().map(|key| format!("ctx.{key}")).collect();
    let by = if keys.is_empty() { String::new() } else { format!(", which looks at {}", keys.join(", ")) };
    format!("waits at its gate{by}")
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
    fn ages_have_one_unit() {
        for (ms, expected) in
            [(0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (7_200_000, "2 h"), (172_800_000, "2 d")]
        {
            assert_eq!(age(ms), expected);
        }
    }

    #[test]
    fn a_text_does_not_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\rc\td"), "a[2Jbc d");
    }
}
