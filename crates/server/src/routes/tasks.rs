//! `GET /api/v1/tasks`: approvals and manual steps of every dialect that wait for people.

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
use windlass_store::{Reader as _, StoreError, StoredTask, TaskQuery, Tasks as _};
use windlass_views::{execution_id, label, reference, time, workflow_id};

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
    /// The name of the step in the path of the signal, with the iteration in a loop
    action_id: String,
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
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_tasks))
}

/// List tasks that wait for people
///
/// Approvals and manual steps of all executions of the tenant. A page may have fewer entries than its limit; only the last one
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
    let list = readers.read(move |reader| wanted.list(reader, &histories)).await?;
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
    after: Option<(ExecutionId, RunId)>,
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
            after: LIST.place(filter.cursor.as_deref(), parse_place)?,
        })
    }

    fn list(&self, reader: &mut DatabaseReader, histories: &Histories) -> Result<TaskList, Problem> {
        if let Some((execution, _)) = self.after
            && reader.load(execution)?.is_none_or(|stored| stored.origin.tenant != self.caller.tenant)
        {
            return Err(Paged::refuses());
        }
        let (mut tasks, mut after, mut scanned) = (Vec::new(), self.after, 0);
        loop {
            let page = self.page(reader, after)?;
            let is_last = page.len() < LIST.most;
            scanned += page.len();
            for (place, found) in page.iter().enumerate() {
                after = Some((found.execution.execution, found.run));
                tasks.extend(self.task(reader, histories, found)?);
                let has_more = !is_last || place + 1 < page.len();
                if tasks.len() == self.limit && has_more {
                    return Ok(TaskList { tasks, pagination: LIST.next(after.map(format_place)) });
                }
            }
            if is_last || scanned >= SCANNED_MAX {
                let next = after.filter(|_| !is_last).map(format_place);
                return Ok(TaskList { tasks, pagination: LIST.next(next) });
            }
        }
    }

    fn page(
        &self,
        reader: &mut DatabaseReader,
        after: Option<(ExecutionId, RunId)>,
    ) -> Result<Vec<StoredTask>, StoreError> {
        let (tenant, execution) = (self.caller.tenant.clone(), self.execution);
        reader.tasks(&TaskQuery { tenant, execution, after, limit: LIST.most })
    }

    /// Returns the entry of a task, if it is wanted.
    fn task(
        &self,
        reader: &mut DatabaseReader,
        histories: &Histories,
        found: &StoredTask,
    ) -> Result<Option<Task>, Problem> {
        let listed = &found.execution;
        if self.workflow.is_some_and(|id| listed.origin.workflow.map(|workflow| workflow.0) != Some(id)) {
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
            TaskKind::Manual => (None, Value::Array(Vec::new())),
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
            action_id,
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

fn format_place((execution, run): (ExecutionId, RunId)) -> String {
    format!("{:032x}.{}", execution.0, run.0)
}

fn parse_place(text: &str) -> Option<(ExecutionId, RunId)> {
    let (execution, run) = text.split_once('.')?;
    Some((ExecutionId(u128::from_str_radix(execution, 16).ok()?), RunId(run.parse().ok()?)))
}
