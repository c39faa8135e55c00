//! Filters of lists of executions for which the store has no index. A request reads a bounded number of rows; with
//! these filters, a page may have fewer entries than its limit and still have a cursor.

use super::list::{Execution, Executions, ExecutionsQuery, LIST};
use crate::problem::Problem;
use serde::Deserialize;
use utoipa::ToSchema;
use windlass_dialects::Dialect;
use windlass_kernel::ExecutionId;
use windlass_store::{Catalog, ListedExecution, Query};
use windlass_views::execution_id;

/// Maximum number of rows that one request reads, in a few ten milliseconds.
const SCANNED_MAX: usize = 1_000;
const CHUNK: usize = 200;
const TEXT_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TriggerName {
    Manual,
    Schedule,
    Webhook,
    Api,
    Workflow,
}

impl TriggerName {
    fn name(self) -> &'static str {
        match self {
            TriggerName::Manual => "manual",
            TriggerName::Schedule => "schedule",
            TriggerName::Webhook => "webhook",
            TriggerName::Api => "api",
            TriggerName::Workflow => "workflow",
        }
    }
}

#[derive(Debug)]
pub(super) struct ListFilter {
    dialect: Option<String>,
    trigger: Option<TriggerName>,
    /// The text in lower case.
    text: Option<String>,
    retried: Option<bool>,
}

impl ListFilter {
    /// Returns None if no such filter is requested.
    pub(super) fn new(search: &ExecutionsQuery) -> Result<Option<ListFilter>, Problem> {
        let ExecutionsQuery { dialect, trigger, text, retried, .. } = search;
        if dialect.as_deref().is_some_and(|name| Dialect::of_name(name).is_none()) {
            return Err(Problem::invalid("dialect", "is not the name of a dialect"));
        }
        if text.as_deref().is_some_and(|text| text.chars().count() > TEXT_MAX) {
            return Err(Problem::invalid("text", format!("must have at most {TEXT_MAX} characters")));
        }
        let text = text.as_deref().map(str::to_lowercase);
        let is_any = dialect.is_some() || trigger.is_some() || text.is_some() || retried.is_some();
        Ok(is_any.then(|| ListFilter {
            dialect: dialect.clone(),
            trigger: *trigger,
            text,
            retried: *retried,
        }))
    }

    fn accepts(&self, row: &ListedExecution) -> bool {
        let is_named = |text: &String| {
            row.name.as_deref().is_some_and(|name| name.to_lowercase().contains(text))
                || execution_id(row.execution).contains(text)
        };
        self.dialect.as_ref().is_none_or(|dialect| row.dialect.as_ref() == Some(dialect))
            && self.trigger.is_none_or(|trigger| &*row.origin.trigger == trigger.name())
            && self.retried.is_none_or(|retried| row.retried_by.is_some() == retried)
            && self.text.as_ref().is_none_or(is_named)
    }

    pub(super) fn read_page(
        &self,
        reader: &mut impl Catalog,
        query: Query,
        limit: usize,
    ) -> Result<Executions, Problem> {
        let mut query = Query { limit: CHUNK, ..query };
        let mut executions = Vec::new();
        for _ in 0..SCANNED_MAX / CHUNK {
            let rows = reader.list(&query)?;
            let is_last = rows.len() < CHUNK;
            for row in rows {
                query.before = Some(row.execution);
                if self.accepts(&row) {
                    executions.push(Execution::from(row));
                }
                if executions.len() == limit {
                    return Ok(page(executions, query.before));
                }
            }
            if is_last {
                return Ok(page(executions, None));
            }
        }
        Ok(page(executions, query.before))
    }
}

fn page(executions: Vec<Execution>, place: Option<ExecutionId>) -> Executions {
    Executions { executions, pagination: LIST.next(place) }
}
