//! The progress of an execution for displays that follow it: one entry per change that people see, and the state after
//! the newest. These types are the answer of the API; they map from the kernel's types by hand, so that a change of a
//! stored event changes no answer.

mod projection;

pub use projection::ProgressProjection;

use crate::response::{Leases, execution_status};
use crate::shapes::ExecutionStatus;
use crate::waiting::waiting_joins;
use crate::wire::time_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;
use windlass_kernel::{Execution, Kind, Millis, Net, RunId, StepId};
use windlass_protocol::{Level, Line, Stream};

/// Changes and lines of an execution after a cursor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressPage {
    /// Steps of the definition in its order; on the first page only
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub steps: Vec<ProgressStep>,
    /// Changes in the order in which they happened
    pub entries: Vec<ProgressEntry>,
    /// Lines of the log, in the order in which they were stored. All lines of an attempt are on the page of its end, or
    /// on an earlier one.
    pub logs: Vec<ProgressLog>,
    /// The state after the last entry; absent if more entries or lines exist
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub state: Option<ProgressState>,
    /// Send as `cursor` to continue
    pub cursor: String,
}

/// A step of the definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressStep {
    pub name: String,
    /// Whether it runs only when something calls it, such as a tool of an agent
    pub on_demand: bool,
}

impl ProgressStep {
    /// Lists the steps of a net in the order of the definition.
    #[must_use]
    pub fn list(net: &Net) -> Vec<ProgressStep> {
        let steps = net.steps();
        steps.map(|(_, step)| ProgressStep { name: step.name.clone(), on_demand: step.on_demand }).collect()
    }
}

/// The state of an execution at the end of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressState {
    pub status: ExecutionStatus,
    /// Whether a person holds it
    pub held: bool,
    /// Time of the newest change
    #[serde(with = "time_text")]
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Millis,
    /// Steps with work that is queued or runs
    pub offered: Vec<OfferedStep>,
    /// Join steps that wait for branches
    pub joins: Vec<JoinProgress>,
}

/// A step with work that is queued or runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedStep {
    pub step: String,
    /// Time at which a worker began the first of the work that runs; absent if all of it is queued
    #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime, required = false)]
    pub running_since: Option<Millis>,
}

/// A join step at which branches wait for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinProgress {
    pub step: String,
    /// Steps whose branches can still reach it, at most 20
    pub awaited: Vec<String>,
}

impl ProgressState {
    #[must_use]
    pub fn new(net: &Net, state: &Execution<'_>, leases: &Leases) -> ProgressState {
        let name = |step: StepId| net.step(step).name.clone();
        let mut since: BTreeMap<StepId, Option<Millis>> = BTreeMap::new();
        for (id, run) in state.runs.iter().filter(|(_, run)| run.state.kind() == Kind::Offered) {
            let began = since.entry(run.step).or_default();
            *began = [*began, leases.get(id).map(|lease| lease.since)].into_iter().flatten().min();
        }
        let offered = since.into_iter();
        let joins = waiting_joins(net, state).into_iter().map(|join| JoinProgress {
            step: name(join.step),
            awaited: join.awaited.into_iter().map(name).collect(),
        });
        ProgressState {
            status: execution_status(state.phase()),
            held: state.head.held,
            updated_at: state.head.at,
            offered: offered
                .map(|(step, running_since)| OfferedStep { step: name(step), running_since })
                .collect(),
            joins: joins.collect(),
        }
    }
}

/// One change of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressEntry {
    #[serde(with = "time_text")]
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Millis,
    pub change: ProgressChange,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ProgressChange {
    /// The execution has started.
    Started,
    /// The entries so far belong to another execution, which this one continues.
    TakenOver {
        /// Id of the other execution
        from: String,
    },
    /// The execution is paused: only a person can continue it.
    Paused,
    Held {
        by: String,
        reason: String,
    },
    Released {
        by: String,
    },
    /// The execution began from scratch. Earlier firings do not count.
    Restarted {
        generation: u32,
    },
    /// A person changed the context.
    ContextChanged {
        keys: Vec<String>,
        by: String,
    },
    Ended {
        status: ExecutionStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        failure: Option<ProgressFailure>,
    },
    /// A firing of a step changed.
    Firing {
        firing: ProgressFiring,
        change: ProgressFiringChange,
    },
    /// A step waits at its gate.
    Gated {
        step: String,
        path: Vec<u32>,
        /// Keys of the context that the gate reads
        keys: Vec<String>,
        #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
        #[schema(value_type = String, format = DateTime, required = false)]
        deadline: Option<Millis>,
    },
    /// A join step continues with the branches that arrived.
    Joined {
        step: String,
        branches: usize,
    },
    /// Firings were given up because the outcome is decided.
    GivenUp {
        firings: Vec<ProgressFiring>,
    },
}

/// A firing of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressFiring {
    /// Opaque id, which lines of the log repeat
    pub id: String,
    pub step: String,
    /// Iteration numbers, outermost first
    pub path: Vec<u32>,
    pub role: FiringRole,
}

/// Relation of a firing to its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum FiringRole {
    /// A firing of its own
    Whole,
    /// An iteration of the step's own loop
    Iteration,
    Compensation,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ProgressFiringChange {
    /// The firing exists from now on.
    Fired,
    Skipped,
    /// An attempt is queued for a worker.
    Queued {
        /// Counts from 1
        attempt: u32,
    },
    Waiting {
        #[serde(with = "time_text")]
        #[schema(value_type = String, format = DateTime)]
        until: Millis,
    },
    /// The worker was lost.
    Lost,
    /// An attempt failed, and another follows.
    RetryScheduled {
        #[serde(with = "time_text")]
        #[schema(value_type = String, format = DateTime)]
        until: Millis,
        failure: ProgressFailure,
    },
    /// The work continues later, without a failure.
    Yielded {
        #[serde(with = "time_text")]
        #[schema(value_type = String, format = DateTime)]
        until: Millis,
    },
    /// The firing waits for the answer of a person.
    AwaitingPerson {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        message: Option<String>,
        approvers: Vec<String>,
        #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
        #[schema(value_type = String, format = DateTime, required = false)]
        deadline: Option<Millis>,
    },
    LoopStarted {
        /// Number of iterations, if it is known
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        total: Option<u32>,
    },
    /// An iteration of the loop ended.
    IterationEnded,
    ChildStarted {
        /// Id of the execution
        child_id: String,
    },
    /// Only a person can continue the execution that it started.
    ChildPaused {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        child_id: Option<String>,
    },
    ChildContinued,
    Done {
        times: ProgressTimes,
    },
    Failed {
        times: ProgressTimes,
        failure: ProgressFailure,
        /// Whether the definition handles the failure
        handled: bool,
    },
    Cancelled,
}

/// Begin of a firing that has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressTimes {
    /// Time at which it was first queued, or began without a worker
    #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime, required = false)]
    pub queued_at: Option<Millis>,
    /// Time at which a worker began the last attempt
    #[serde(default, with = "time_text::option", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime, required = false)]
    pub started_at: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressFailure {
    pub code: String,
    pub message: String,
}

/// Lines of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressLog {
    /// Id of the firing
    pub firing: String,
    pub step: String,
    /// Counts from 1
    pub attempt: u32,
    pub lines: Vec<ProgressLine>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressLine {
    #[serde(with = "time_text")]
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Millis,
    pub stream: LogStream,
    pub level: LogLevel,
    pub text: String,
    /// Further data of a line that a node's logger wrote
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    pub data: Option<Arc<Value>>,
}

/// Origin of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum LogStream {
    Stdout,
    Stderr,
    /// The worker itself, or a node's logger
    Worker,
}

impl LogStream {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LogStream::Stdout => "stdout",
            LogStream::Stderr => "stderr",
            LogStream::Worker => "worker",
        }
    }
}

impl From<Stream> for LogStream {
    fn from(stream: Stream) -> LogStream {
        match stream {
            Stream::Out => LogStream::Stdout,
            Stream::Err => LogStream::Stderr,
            Stream::Worker => LogStream::Worker,
        }
    }
}

/// Level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }

    /// Returns this level and those above it.
    pub fn and_above(self) -> impl Iterator<Item = LogLevel> {
        let all = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];
        all.into_iter().filter(move |level| *level >= self)
    }
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> LogLevel {
        match level {
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        }
    }
}

impl ProgressLog {
    #[must_use]
    pub fn new(run: RunId, step: String, attempt: u32, lines: Vec<Line>) -> ProgressLog {
        let lines = lines.into_iter().map(|line| ProgressLine {
            timestamp: Millis(line.at),
            stream: line.stream.into(),
            level: line.level().into(),
            text: line.text,
            data: line.data,
        });
        ProgressLog { firing: firing_id(run), step, attempt, lines: lines.collect() }
    }
}

fn firing_id(run: RunId) -> String {
    format!("{:x}", run.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect_file;
    use serde_json::json;

    fn firing(change: ProgressFiringChange) -> ProgressChange {
        let firing = ProgressFiring {
            id: firing_id(RunId((1 << 32) + 10)),
            step: "ship".to_owned(),
            path: vec![3],
            role: FiringRole::Iteration,
        };
        ProgressChange::Firing { firing, change }
    }

    /// One change of each kind.
    fn changes() -> Vec<ProgressChange> {
        let (at, by) = (Millis(1_769_428_845_007), "ann".to_owned());
        let failure = ProgressFailure { code: "TIMEOUT".to_owned(), message: "too slow".to_owned() };
        let times = ProgressTimes { queued_at: Some(at), started_at: None };
        let firings = [
            ProgressFiringChange::Fired,
            ProgressFiringChange::Skipped,
            ProgressFiringChange::Queued { attempt: 2 },
            ProgressFiringChange::Waiting { until: at },
            ProgressFiringChange::Lost,
            ProgressFiringChange::RetryScheduled { until: at, failure: failure.clone() },
            ProgressFiringChange::Yielded { until: at },
            ProgressFiringChange::AwaitingPerson {
                message: Some("Ship it?".to_owned()),
                approvers: vec![by.clone()],
                deadline: Some(at),
            },
            ProgressFiringChange::LoopStarted { total: Some(5) },
            ProgressFiringChange::IterationEnded,
            ProgressFiringChange::ChildStarted { child_id: "exec_1".to_owned() },
            ProgressFiringChange::ChildPaused { child_id: Some("exec_1".to_owned()) },
            ProgressFiringChange::ChildContinued,
            ProgressFiringChange::Done { times: ProgressTimes { started_at: Some(at), ..times } },
            ProgressFiringChange::Failed { times, failure: failure.clone(), handled: true },
            ProgressFiringChange::Cancelled,
        ];
        let ended = ProgressChange::Ended { status: ExecutionStatus::Cancelled, failure: Some(failure) };
        let mut changes = vec![
            ProgressChange::Started,
            ProgressChange::TakenOver { from: "exec_2".to_owned() },
            ProgressChange::Paused,
            ProgressChange::Held { by: by.clone(), reason: "lunch".to_owned() },
            ProgressChange::Released { by: by.clone() },
            ProgressChange::Restarted { generation: 1 },
            ProgressChange::ContextChanged { keys: vec!["go".to_owned()], by },
            ProgressChange::Gated {
                step: "ship".to_owned(),
                path: Vec::new(),
                keys: vec!["go".to_owned()],
                deadline: None,
            },
            ProgressChange::Joined { step: "ship".to_owned(), branches: 2 },
        ];
        if let ProgressChange::Firing { firing, .. } = firing(ProgressFiringChange::Fired) {
            changes.push(ProgressChange::GivenUp { firings: vec![firing] });
        }
        changes.extend(firings.map(firing));
        changes.push(ended);
        changes
    }

    /// A file with every kind of change pins the form of the answer.
    #[test]
    fn the_form_of_progress_is_the_one_in_the_file() {
        let at = Millis(1_769_428_845_007);
        let line = ProgressLine {
            timestamp: at,
            stream: LogStream::Stderr,
            level: LogLevel::Warn,
            text: "careful".to_owned(),
            data: Some(Arc::new(json!({ "n": 1 }))),
        };
        let step = "ship".to_owned();
        let page = ProgressPage {
            steps: vec![ProgressStep { name: step.clone(), on_demand: false }],
            entries: changes().into_iter().map(|change| ProgressEntry { timestamp: at, change }).collect(),
            logs: vec![ProgressLog {
                firing: "a".to_owned(),
                step: step.clone(),
                attempt: 1,
                lines: vec![line],
            }],
            state: Some(ProgressState {
                status: ExecutionStatus::Running,
                held: false,
                updated_at: at,
                offered: vec![
                    OfferedStep { step: step.clone(), running_since: Some(at) },
                    OfferedStep { step: "wrap".to_owned(), running_since: None },
                ],
                joins: vec![JoinProgress { step, awaited: vec!["pack".to_owned()] }],
            }),
            cursor: "opaque".to_owned(),
        };
        let text = serde_json::to_string(&page).unwrap();
        assert_eq!(serde_json::from_str::<ProgressPage>(&text).unwrap(), page);
        let lines = text.replace("{\"timestamp\"", "\n{\"timestamp\"").replace("],\"", "],\n\"");
        expect_file!["../tests/progress.txt"].assert_eq(&format!("{lines}\n"));
    }
}
