//! Tasks that are no step-runs: tokens at gates, and held executions. Everyone who may run executions may answer them.

use super::{LIST, ParsedTaskFilter, Task, TaskKind, TaskList, TaskPlace, command};
use crate::auth::Permission;
use crate::database::DatabaseReader;
use crate::histories::Histories;
use crate::problem::Problem;
use serde_json::Value;
use windlass_kernel::{StepId, TokenId};
use windlass_store::{
    GateQuery, HeldQuery, ListedExecution, PageBounds, Reader as _, StoredGate, Tasks as _,
};
use windlass_views::{
    ExecutionHold, Waiting, execution_id, newest_hold, waiting_at_gate, waiting_for_release, workflow_id,
};

/// Maximum number of records that are searched for a hold. With more of them after it, its reason is in the view of the
/// execution only.
const HOLD_RECORDS_MAX: u64 = 256;
const HOLD_BOUNDS: PageBounds = PageBounds { rows_max: 256, bytes_max: 1 << 20 };

impl ParsedTaskFilter {
    pub(super) fn list_gates(
        &self,
        reader: &mut DatabaseReader,
        histories: &Histories,
    ) -> Result<TaskList, Problem> {
        let page = |reader: &mut DatabaseReader, after: Option<TaskPlace>| {
            let (tenant, execution) = (self.caller.tenant.clone(), self.execution);
            // A place of another list has numbers that no step has: the list continues at its end.
            let step = |number: u64| StepId(u32::try_from(number).unwrap_or(u32::MAX));
            let after = after.map(|place| (place.execution, step(place.first), TokenId(place.second)));
            reader.gates(&GateQuery { tenant, execution, after, limit: LIST.most })
        };
        let place = |found: &StoredGate| TaskPlace {
            execution: found.execution.execution,
            first: found.step.0.into(),
            second: found.token.0,
        };
        self.fill(reader, page, place, |reader, found| {
            if !self.is_wanted(&found.execution) {
                return Ok(None);
            }
            let Some(net) = histories.net(reader, found.net)? else { return Ok(None) };
            let waiting = waiting_at_gate(&net, found.step, found.asked_at, found.deadline);
            Ok(Some(entry(&found.execution, TaskKind::Gate, waiting)))
        })
    }

    pub(super) fn list_pauses(&self, reader: &mut DatabaseReader) -> Result<TaskList, Problem> {
        let page = |reader: &mut DatabaseReader, after: Option<TaskPlace>| {
            let (tenant, execution) = (self.caller.tenant.clone(), self.execution);
            let after = after.map(|place| place.execution);
            reader.held(&HeldQuery { tenant, execution, after, limit: LIST.most })
        };
        let place = |found: &ListedExecution| TaskPlace { execution: found.execution, first: 0, second: 0 };
        self.fill(reader, page, place, |reader, found| {
            if !self.is_wanted(found) {
                return Ok(None);
            }
            let hold = find_hold(reader, found)?;
            Ok(Some(entry(found, TaskKind::Pause, waiting_for_release(hold.as_ref()))))
        })
    }

    fn is_wanted(&self, listed: &ListedExecution) -> bool {
        let may_answer = !self.mine || self.caller.role.may(Permission::Execute);
        may_answer && !listed.phase.is_ended() && self.is_of_workflow(listed)
    }
}

/// Reads the hold of an execution in the newest records of its journal: after a hold, only work in flight adds records.
fn find_hold(reader: &mut DatabaseReader, held: &ListedExecution) -> Result<Option<ExecutionHold>, Problem> {
    let Some(stored) = reader.load(held.execution)? else { return Ok(None) };
    let from = stored.state.head.version.saturating_sub(HOLD_RECORDS_MAX);
    let rows = reader.journal_page(held.execution, from, HOLD_BOUNDS)?.rows;
    Ok(newest_hold(rows.iter().flat_map(|row| &row.records)))
}

fn entry(listed: &ListedExecution, kind: TaskKind, waiting: Waiting) -> Task {
    let action_id = waiting.node_id.clone();
    Task {
        execution_id: execution_id(listed.execution),
        workflow_id: listed.origin.workflow.map(|workflow| workflow_id(workflow.0)),
        workflow_name: listed.name.clone(),
        dialect: listed.dialect.clone(),
        command: command(kind, listed.execution, action_id.as_deref().unwrap_or_default()),
        action_id,
        kind,
        message: None,
        approvers: Value::Array(Vec::new()),
        deadline: waiting.deadline.clone(),
        since: waiting.since.clone(),
        started_by: listed.origin.options.by.clone(),
        held: listed.held,
        waiting: Some(waiting),
    }
}
