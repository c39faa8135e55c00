//! Text of writes, units and definitions for the events of a world.

use windlass_kernel::net::Work;
use windlass_kernel::{Event, ExecutionId};
use windlass_protocol::Unit;
use windlass_store::{Applied, Definition, Letter, Mail, Write};

/// Formats the last characters of an id, which are different for all executions of a world.
pub(super) fn format_execution(id: ExecutionId) -> String {
    let text = id.to_string();
    format!("…{}", &text[text.len() - 5..])
}

pub(super) fn format_unit(unit: Unit) -> String {
    let (run, fence) = (unit.run & 0xffff_ffff, unit.fence & 0xffff_ffff);
    format!("{}/run {run}/fence {fence}", format_execution(ExecutionId(unit.execution)))
}

pub(super) fn format_write(write: &Write, applied: &Applied) -> String {
    let what = match write {
        Write::Commit(commit) => {
            let events: Vec<String> =
                commit.records.iter().map(|record| format_event(&record.event)).collect();
            let mail: Vec<String> = commit.mail.iter().map(format_mail).collect();
            let mail = if mail.is_empty() { String::new() } else { format!("; mail {}", mail.join(", ")) };
            let taken: Vec<String> = commit.consumed.iter().map(|mail| mail.0.to_string()).collect();
            let taken =
                if taken.is_empty() { String::new() } else { format!("; takes mail {}", taken.join(", ")) };
            let name = format_execution(commit.execution);
            format!("{name} from version {}: {}{mail}{taken}", commit.expected, events.join(", "))
        }
        Write::Define(definition) => format!("definition {}", definition.name),
        Write::Lease(lease) => {
            format!("lease of {}", format_run(lease.execution, lease.run.0, lease.fence.0))
        }
        Write::Checkpoint { execution, run, fence, cursor } => {
            format!(
                "checkpoint of {} after {} calls",
                format_run(*execution, run.0, fence.0),
                cursor["calls"]
            )
        }
        Write::Accept(mail) => format!("mail {}", format_mail(mail)),
        Write::Settle { mail, refused } => format!("mail {} is settled, refused {refused:?}", mail.0),
        Write::Fetched { mail } => format!("the answer to mail {} is fetched", mail.0),
        Write::Stopped(stop) => {
            format!("{} has stopped", format_run(stop.execution, stop.run.0, stop.fence.0))
        }
        Write::Log(_) => "log lines".to_owned(),
        Write::Net(_) => "a net".to_owned(),
        Write::Progress { execution, run, fence, .. } => {
            format!("progress of {}", format_run(*execution, run.0, fence.0))
        }
        Write::Entry(_) => "an entry".to_owned(),
    };
    match applied {
        Applied::Committed(_) | Applied::Done | Applied::Defined(..) => format!("on disk: {what}"),
        Applied::Accepted(id) => format!("on disk: {what} as {}", id.0),
        refused => format!("{refused:?}: {what}"),
    }
}

fn format_run(execution: ExecutionId, run: u64, fence: u64) -> String {
    format_unit(Unit { execution: execution.0, run, fence })
}

fn format_mail(mail: &Mail) -> String {
    let to = format_execution(mail.to);
    match &mail.letter {
        Letter::Input(input) => {
            let text = format!("{input:?}");
            let kind = text.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
            format!("{kind} to {to}")
        }
        Letter::Start { definition, .. } => format!("Start of {definition} as {to}"),
        Letter::Retry(retry) => format!("Retry of {} as {to}", format_execution(retry.of)),
        Letter::Ended { child, .. } => format!("Ended {} to {to}", format_execution(*child)),
    }
}

/// Formats the name of the event, its step-run and its fence, if it has one.
fn format_event(event: &Event) -> String {
    let text = format!("{event:?}");
    let kind = text.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
    let number = |key: &str| {
        let (_, rest) = text.split_once(key)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok().map(|number| number & 0xffff_ffff)
    };
    let run = number("run: RunId(").map(|run| format!(" r{run}")).unwrap_or_default();
    let fence = number("Fence(").map(|fence| format!(" f{fence}")).unwrap_or_default();
    let more = match event {
        Event::Lost { started, .. } => format!(" started {started}"),
        Event::Ended { outcome, .. } | Event::Draining { outcome, .. } => format!(" {outcome:?}"),
        Event::Failed { failure, .. } | Event::RetryScheduled { failure, .. } => format!(" {}", failure.code),
        Event::ChildStarted { child, .. } => format!(" {}", format_execution(*child)),
        _ => String::new(),
    };
    format!("{kind}{run}{fence}{more}")
}

/// Formats a definition: a line for its policy and one for each step.
pub(super) fn format_definition(definition: &Definition) -> Vec<String> {
    let policy = definition.net.policy();
    let head = format!(
        "{}: join {:?}, failure {:?}, recovery {:?}, timeout {:?}, parallel {:?}, finish {:?}, {} firings a decide",
        definition.name,
        policy.join,
        policy.failure,
        policy.recovery,
        policy.timeout_ms,
        policy.max_parallel,
        policy.finish,
        policy.limits.firings_per_decide
    );
    let steps = definition.net.steps().map(|(_, step)| {
        let arcs: Vec<String> = step.router.arcs.iter().map(|arc| arc.to.0.to_string()).collect();
        let work = match &step.work {
            Work::Task { spec } => format!("task {}", spec["tasks"]),
            other => format!("{other:?}"),
        };
        format!(
            "  {}: {work}, attempts {}, timeout {:?}, arcs to [{}]",
            step.name,
            step.retry.attempts_max,
            step.timeout_ms,
            arcs.join(", ")
        )
    });
    std::iter::once(head).chain(steps).collect()
}
