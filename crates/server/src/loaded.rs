//! One execution with all data about it, read at once.

use crate::children::children_waiting;
use crate::feed::leases;
use crate::histories::Histories;
use crate::problem::Problem;
use crate::versions::{ViewedManifest, inputs_schema_of, viewed_manifest};
use windlass_dialects::Dialect;
use windlass_dialects::graph::{Format, TooLarge, draw, marks};
use windlass_duties::SodConstraint;
use windlass_kernel::{ExecutionId, Illegal, Net};
use windlass_store::{Options, Origin, Quarantine, Reader, StoreError, Stored};
use windlass_views::{
    AnswerBudget, ExecutionView, Facts, History, Metadata, Quarantined, Sources, Workflow, execution_id,
    response, time,
};

#[derive(Debug)]
pub struct LoadedExecution<'s> {
    pub stored: Stored,
    pub net: &'s Net,
    pub history: &'s History,
    pub facts: Facts,
    /// Values of its journal, and those that the journal names.
    pub sources: Sources<'s>,
    /// Constraints of its definition on the people who answer it; `Err` if they cannot be read.
    pub constraints: Result<Vec<SodConstraint>, Problem>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("execution {0} has just been deleted")]
    Gone(ExecutionId),
    #[error("the net of execution {0} is missing: the data folder is damaged")]
    NoNet(ExecutionId),
    #[error("the journal of execution {0} is broken: {1}")]
    Broken(ExecutionId, Illegal),
}

impl LoadedExecution<'_> {
    /// Returns the view of the execution that every route responds with.
    #[must_use]
    pub fn response(&self) -> ExecutionView {
        response(&self.facts, self.net, self.history, self.sources)
    }

    /// Returns the space limit of one answer.
    #[must_use]
    pub fn budget(&self) -> AnswerBudget<'_> {
        AnswerBudget::new(self.facts.execution, self.sources)
    }

    /// Draws its net, with each step coloured by its status.
    pub fn picture(&self, format: Format) -> Result<String, TooLarge> {
        draw(self.net, Some(&marks(self.history, &self.facts.leases)), format)
    }
}

pub(crate) fn quarantined(quarantine: Quarantine) -> Quarantined {
    let Quarantine { since, reason, deaths } = quarantine;
    Quarantined { reason, since: time(since), deaths }
}

/// Returns the metadata that a view shows of an origin.
pub(crate) fn metadata(origin: &Origin) -> Metadata {
    let Options { by, tags, correlation, .. } = origin.options.clone();
    Metadata {
        triggered_by: by,
        trigger_type: origin.trigger.to_string(),
        tags,
        correlation_id: correlation,
        parent_execution_id: origin.parent.map(execution_id),
        ..Metadata::default()
    }
}

/// Reads the data about an execution apart from its journal, and the constraints of its definition.
pub(crate) fn facts(
    histories: &Histories,
    reader: &mut impl Reader,
    stored: &Stored,
) -> Result<(Facts, Result<Vec<SodConstraint>, Problem>), StoreError> {
    let execution = stored.state.head.id;
    let definition = match stored.origin.definition {
        Some(definition) => reader.definition(definition)?,
        None => None,
    };
    let viewed = definition.as_ref().map_or_else(|| Ok(ViewedManifest::default()), viewed_manifest);
    let (code, constraints) = match viewed {
        Ok(ViewedManifest { code, sod_constraints }) => (code, Ok(sod_constraints)),
        Err(problem) => (Vec::new(), Err(problem)),
    };
    let workflow = definition.map(|definition| {
        let dialect = Dialect::of_name(&definition.dialect).map(Dialect::view);
        let reads_schema = dialect.is_some_and(|view| view.reads_inputs_schema);
        Workflow {
            code,
            inputs_schema: reads_schema.then(|| inputs_schema_of(&definition)).flatten(),
            id: definition.workflow.0,
            name: definition.name,
            version: definition.version,
            dialect,
        }
    });
    let (metadata, debug) = (metadata(&stored.origin), stored.origin.options.debug);
    let suspect = reader.suspect(execution)?;
    let quarantined = suspect.and_then(|suspect| suspect.quarantine()).map(quarantined);
    let (leases, children) = (leases(reader, execution)?, children_waiting(histories, reader, stored)?);
    Ok((Facts { execution, workflow, metadata, debug, leases, quarantined, children }, constraints))
}
