//! Writes and units in words that a reader can follow.

use windlass_kernel::net::Work;
use windlass_kernel::{Event, ExecutionId};
use windlass_protocol::Unit;
use windlass_store::{Applied, Definition, Letter, Mail, Write};

/// The tail of an id is enough to tell executions of one world apart.
pub(super) fn execution(id: ExecutionId) -> String {
    let text = id.to_string();
    format!("…{}", &text[text.len() - 5..])
}

pub(super) fn unit(unit: Unit) -> String {
    let (run, fence) = (unit.run & 0xffff_ffff, unit.fence & 0xffff_ffff);
    format!("{}/run {run}/fence {fence}", execution(ExecutionId(unit.execution)))
}

pub(super) fn write(write: &Write, applied: &Applied) -> String {
    let what = match write {
        Write::Commit(commit) => {
            let events: Vec<String> = commit.records.iter().map(|record| event(&record.event)).collect();
            let mail: Vec<String> = commit.mail.iter().map(letter).collect();
            let mail = if mail.is_empty() { String::new() } else { format!("; mail {}", mail.join(", ")) };
            let taken: Vec<String> = commit.consumed.iter().map(|mail| mail.0.to_string()).collect();
            let taken =
                if taken.is_empty() { String::new() } else { format!("; takes mail {}", taken.join(", ")) };
            let name = execution(commit.execution);
            format!("{name} from version {}: {}{mail}{taken}", commit.expected, events.join(", "))
        }
        Write::Define(definition) => format!("definition {}", definition.name),
        Write::Lease(lease) => {
            format!("lease of {}", unit_of(lease.execution, lease.run.0, lease.fence.0))
        }
        Write::Checkpoint { execution, run, fence, cursor } => {
            format!("checkpoint of {} after {} calls", unit_of(*execution, run.0, fence.0), cursor["calls"])
        }
        Write::Accept(mail) => format!("mail {}", letter(mail)),
        Write::Settle { mail, refused } => format!("mail {} is settled, refused {refused:?}", mail.0),
        Write::Fetched { mail } => format!("the answer to mail {} is fetched", mail.0),
        Write::Stopped(stop) => {
            format!("{} has stopped", unit_of(stop.execution, stop.run.0, stop.fence.0))
        }
        Write::Log(_) => "log lines".to_owned(),
        Write::Net(_) => "a net".to_owned(),
        Write::Progress { execution, run, fence, .. } => {
            format!("progress of {}", unit_of(*execution, run.0, fence.0))
        }
        Write::Entry(_) => "an entry".to_owned(),
    };
    match applied {
        Applied::Committed(_) | Applied::Done | Applied::Defined(..) => format!("on disk: {what}"),
        Applied::Accepted(id) => format!("on disk: {what} as {}", id.0),
        refused => format!("{refused:?}: {what}"),
    }
}

fn unit_of(execution: ExecutionId, run: u64, fence: u64) -> String {
    unit(Unit { execution: execution.0, run, fence })
}

fn letter(mail: &Mail) -> String {
    let to = execution(mail.to);
    match &mail.letter {
        Letter::Input(input) => {
            let text = format!("{input:?}");
            let kind = text.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
            format!("{kind} to {to}")
        }
        Letter::Start { definition, .. } => format!("Start of {definition} as {to}"),
        Letter::Retry(retry) => format!("Retry of {} as {to}", execution(retry.of)),
        Letter::Ended { child, .. } => format!("Ended {} to {to}", execution(*child)),
    }
}

/// The name of the event, the step-run it is about and the fence, if it has one.
fn event(event: &Event) -> String {
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
        Event::ChildStarted { child, .. } => format!(" {}", execution(*child)),
        _ => String::new(),
    };
    format!("{kind}{run}{fence}{more}")
}

/// A definition, a line for each step.
pub(super) fn definition(definition: &Definition) -> Vec<String> {
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
