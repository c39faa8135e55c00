//! `GET /api/v1/tasks`: what waits for people in executions of every dialect: approvals, manual steps, gates, and the release
//! of held executions.

mod holds;

use super::paging::{Paged, Pagination};
use super::shared::Refusals;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::body::Params;
use crate::database::DatabaseReader;
use crate::histories::Histories;
use crate::ids;
use crate::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_artifact::key;
use windlass_kernel::net::Work;
use windlass_kernel::{ExecutionId, Need, Net, RunId, RunState};
use windlass_store::{ListedExecution, Reader as _, StoreError, StoredTask, TaskQuery, Tasks as _};
use windlass_views::{Waiting, execution_id, label, reference, time, workflow_id};

const LIST: Paged = Paged { name: "tasks", usual: 20, most: 100 };
/// Maximum number of tasks that one request reads. With filters, a page may have fewer entries than its limit and still
/// have a cursor.
const SCANNED_MAX: usize = 1_000;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct TaskFilter {
    /// Only tasks that name you, one of your roles, or no one.
    mine: Option<bool>,
    /// Only tasks of this kind; without one, approvals and manual steps.
    #[param(inline)]
    kind: Option<TaskKind>,
    workflow_id: Option<String>,
    execution_id: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskKind {
    Approval,
    /// A person confirms the end of a step.
    Manual,
    /// A token waits at the gate of a step until the context opens it.
    Gate,
    /// A user paused the execution.
    Pause,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskList {
    /// Tasks, those of the oldest executions first
    tasks: Vec<Task>,
    pagination: Pagination,
}

/// A task that waits for a person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    execution_id: String,
    workflow_id: Option<String>,
    workflow_name: Option<String>,
    dialect: Option<String>,
    /// The name of the step in the path of the signal, with the iteration in a loop; of a gate its node; null for a pause
    action_id: Option<String>,
    kind: TaskKind,
    /// The question of an approval; a reference if it is very long
    message: Option<Value>,
    /// Ids of users and names of roles who may answer; empty: everyone who may run executions
    #[schema(value_type = Vec<String>)]
    approvers: Value,
    /// Time at which the task fails
    #[schema(format = DateTime)]
    deadline: Option<String>,
    #[schema(format = DateTime)]
    since: Option<String>,
    /// User who started the execution
    started_by: String,
    /// Whether the execution is held; answers are accepted even then
    held: bool,
    /// The command that answers
    command: String,
    /// Of a gate or a pause: the entry of `waitingFor` in the view of the execution; a pause that 256 records follow has no reason here
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    waiting: Option<Waiting>,
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_tasks))
}

/// List tasks that wait for people
///
/// Approvals and manual steps of all executions of the tenant; with `kind`, gates or held executions. A page may have fewer entries than its limit; only the last one
/// has no cursor. Completion tokens are in the view of the execution.
#[utoipa::path(get, path = "/api/v1/tasks", tag = "tasks", security(("bearer" = [])), params(TaskFilter),
    responses((status = 200, body = TaskList), Refusals))]
async fn list_tasks(
    State(app): State<Arc<App>>,
    caller: Caller,
    Params(filter): Params<TaskFilter>,
) -> Result<Json<TaskList>, Problem> {
    caller.may(Permission::View)?;
    let wanted = ParsedTaskFilter::of(&caller, &filter)?;
    let (readers, histories) = (app.readers.of(&caller.tenant), app.histories.clone());
    let list = readers.read(move |reader| match wanted.kind {
        None | Some(TaskKind::Approval | TaskKind::Manual) => wanted.list(reader, &histories),
        Some(TaskKind::Gate) => wanted.list_gates(reader, &histories),
        Some(TaskKind::Pause) => wanted.list_pauses(reader),
    });
    let list = list.await?;
    Ok(Json(list))
}

/// The parsed request.
struct ParsedTaskFilter {
    caller: Caller,
    mine: bool,
    kind: Option<TaskKind>,
    workflow: Option<u128>,
    execution: Option<ExecutionId>,
    limit: usize,
    after: Option<TaskPlace>,
}

/// The place of a task in its list: after the number of a step-run, or the step and the token at a gate.
#[derive(Debug, Clone, Copy)]
struct TaskPlace {
    execution: ExecutionId,
    first: u64,
    second: u64,
}

impl TaskPlace {
    fn parse(text: &str) -> Option<TaskPlace> {
        let mut parts = text.split('.');
        let execution = ExecutionId(u128::from_str_radix(parts.next()?, 16).ok()?);
        let mut number = || parts.next().map_or(Some(0), |part| part.parse().ok());
        let (first, second) = (number()?, number()?);
        parts.next().is_none().then_some(TaskPlace { execution, first, second })
    }
}

impl std::fmt::Display for TaskPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}.{}.{}", self.execution.0, self.first, self.second)
    }
}

impl ParsedTaskFilter {
    fn of(caller: &Caller, filter: &TaskFilter) -> Result<ParsedTaskFilter, Problem> {
        let bad = |field: &str, what: &str| Problem::invalid(field, format!("is not the id of {what}"));
        let workflow = filter.workflow_id.as_deref().map(ids::workflow).transpose();
        let execution = filter.execution_id.as_deref().map(ids::execution).transpose();
        Ok(ParsedTaskFilter {
            caller: caller.clone(),
            mine: filter.mine == Some(true),
            kind: filter.kind,
            workflow: workflow.map_err(|_| bad("workflowId", "a workflow"))?.map(|id| id.0),
            execution: execution.map_err(|_| bad("executionId", "an execution"))?,
            limit: LIST.limit(filter.limit)?,
            after: LIST.place(filter.cursor.as_deref(), TaskPlace::parse)?,
        })
    }

    fn list(&self, reader: &mut DatabaseReader, histories: &Histories) -> Result<TaskList, Problem> {
        let page = |reader: &mut DatabaseReader, after: Option<TaskPlace>| {
            let (tenant, execution) = (self.caller.tenant.clone(), self.execution);
            let after = after.map(|place| (place.execution, RunId(place.first)));
            reader.tasks(&TaskQuery { tenant, execution, after, limit: LIST.most })
        };
        let place = |found: &StoredTask| TaskPlace {
            execution: found.execution.execution,
            first: found.run.0,
            second: 0,
        };
        self.fill(reader, page, place, |reader, found| self.task(reader, histories, found))
    }

    /// Fills one page of tasks: reads stored ones by `page`, each with its `place`, and makes entries of those that are
    /// wanted.
    fn fill<T>(
        &self,
        reader: &mut DatabaseReader,
        page: impl Fn(&mut DatabaseReader, Option<TaskPlace>) -> Result<Vec<T>, StoreError>,
        place: impl Fn(&T) -> TaskPlace,
        mut task: impl FnMut(&mut DatabaseReader, &T) -> Result<Option<Task>, Problem>,
    ) -> Result<TaskList, Problem> {
        if let Some(after) = self.after
            && reader.load(after.execution)?.is_none_or(|stored| stored.origin.tenant != self.caller.tenant)
        {
            return Err(Paged::refuses());
        }
        let (mut tasks, mut after, mut scanned) = (Vec::new(), self.after, 0);
        loop {
            let found = page(reader, after)?;
            let is_last = found.len() < LIST.most;
            scanned += found.len();
            for (number, one) in found.iter().enumerate() {
                after = Some(place(one));
                tasks.extend(task(reader, one)?);
                let has_more = !is_last || number + 1 < found.len();
                if tasks.len() == self.limit && has_more {
                    return Ok(TaskList { tasks, pagination: LIST.next(after) });
                }
            }
            if is_last || scanned >= SCANNED_MAX {
                let next = after.filter(|_| !is_last);
                return Ok(TaskList { tasks, pagination: LIST.next(next) });
            }
        }
    }

    /// Returns whether an execution belongs to the workflow that tasks are wanted of.
    fn is_of_workflow(&self, listed: &ListedExecution) -> bool {
        self.workflow.is_none_or(|id| listed.origin.workflow.map(|workflow| workflow.0) == Some(id))
    }

    /// Returns the entry of a task, if it is wanted.
    fn task(
        &self,
        reader: &mut DatabaseReader,
        histories: &Histories,
        found: &StoredTask,
    ) -> Result<Option<Task>, Problem> {
        let listed = &found.execution;
        if !self.is_of_workflow(listed) {
            return Ok(None);
        }
        let RunState::Manual { output, deadline, .. } = &found.state.state else { return Ok(None) };
        let Some(net) = histories.net(reader, found.net)? else { return Ok(None) };
        let kind = kind_of(&net, found);
        if self.kind.is_some_and(|wanted| wanted != kind) {
            return Ok(None);
        }
        let (message, approvers) = match kind {
            TaskKind::Approval => question(reader, listed.execution, output)?,
            TaskKind::Manual | TaskKind::Gate | TaskKind::Pause => (None, Value::Array(Vec::new())),
        };
        if self.mine && !(self.caller.role.may(Permission::Execute) && self.caller.is_asked(&approvers)) {
            return Ok(None);
        }
        let action_id = label(&net.step(net.shown_as(found.state.step)).name, &found.state.path.0);
        Ok(Some(Task {
            execution_id: execution_id(listed.execution),
            workflow_id: listed.origin.workflow.map(|workflow| workflow_id(workflow.0)),
            workflow_name: listed.name.clone(),
            dialect: listed.dialect.clone(),
            command: command(kind, listed.execution, &action_id),
            action_id: Some(action_id),
            waiting: None,
            kind,
            message,
            approvers,
            deadline: deadline.map(time),
            since: found.asked_at.map(time),
            started_by: listed.origin.options.by.clone(),
            held: listed.held,
        }))
    }
}

fn kind_of(net: &Net, found: &StoredTask) -> TaskKind {
    match net.step(found.state.step).work {
        Work::Approval { .. } => TaskKind::Approval,
        Work::Pure { .. } | Work::Delay { .. } | Work::Child { .. } | Work::Task { .. } => TaskKind::Manual,
    }
}

/// Returns the message and the approvers of an approval.
fn question(
    reader: &mut DatabaseReader,
    execution: ExecutionId,
    asked: &Value,
) -> Result<(Option<Value>, Value), Problem> {
    let list = |approvers: &Value| match approvers {
        Value::Array(_) => approvers.clone(),
        _ => Value::Array(Vec::new()),
    };
    let Some(artifact) = key(asked) else {
        return Ok((
            asked.get("message").map(|message| reference(execution, message)),
            list(&asked["approvers"]),
        ));
    };
    // A large question is stored as an artifact, and shown as a reference.
    let found = reader.values(execution, &[Need::Artifact(artifact.to_owned())])?.artifacts.remove(artifact);
    let approvers = found.flatten().map(|asked| list(&asked["approvers"]));
    let approvers = approvers.ok_or_else(|| Problem::internal("the question of an approval is missing"))?;
    Ok((Some(reference(execution, asked)), approvers))
}

fn command(kind: TaskKind, execution: ExecutionId, action: &str) -> String {
    let (id, action) = (execution_id(execution), quote(action));
    match kind {
        TaskKind::Approval => format!("windlass executions approve {id} {action}"),
        TaskKind::Manual => format!("windlass executions signal {id} {action} --outcome Succeeded"),
        TaskKind::Gate => format!("windlass executions patch {id} KEY=VALUE"),
        TaskKind::Pause => format!("windlass executions resume {id}"),
    }
}

/// Quotes a name for a shell, if it needs quotes.
fn quote(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}
