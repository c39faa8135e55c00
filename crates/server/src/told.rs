//! Executions as they are told: everything that is known of one, read at once.

use crate::feed::leases;
use windlass_dialects::Dialect;
use windlass_dialects::graph::{Format, TooLarge, draw, marks};
use windlass_kernel::{ExecutionId, Illegal, Net, Outputs};
use windlass_store::{Options, Quarantine, Reader, StoreError, Stored};
use windlass_views::{
    ExecutionView, Facts, Labels, Quarantined, ResultPlace, Room, Sources, Story, Workflow, response, time,
};

/// An execution with all that happened to it.
#[derive(Debug)]
pub struct Told<'s> {
    pub stored: Stored,
    pub net: &'s Net,
    pub story: &'s Story,
    pub outputs: &'s Outputs<ResultPlace>,
    pub facts: Facts,
    /// Values of its journal, and those that the journal names.
    pub sources: Sources<'s>,
}

#[derive(Debug, thiserror::Error)]
pub enum TellError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("execution {0} has just been forgotten")]
    Gone(ExecutionId),
    #[error("the net of execution {0} is missing: the data folder is damaged")]
    NoNet(ExecutionId),
    #[error("the journal of execution {0} is broken: {1}")]
    Broken(ExecutionId, Illegal),
}

impl Told<'_> {
    /// The object that stands for an execution everywhere.
    #[must_use]
    pub fn response(&self) -> ExecutionView {
        response(&self.facts, self.net, self.story, self.outputs, self.sources)
    }

    /// Room for one answer about it.
    #[must_use]
    pub fn room(&self) -> Room<'_> {
        Room::new(self.facts.execution, self.sources)
    }

    /// Its net, coloured by what became of each step.
    pub fn picture(&self, format: Format) -> Result<String, TooLarge> {
        draw(self.net, Some(&marks(self.story, &self.facts.leases)), format)
    }
}

/// As users are told.
pub fn tell_quarantine(quarantine: Quarantine) -> Quarantined {
    let Quarantine { since, reason, deaths } = quarantine;
    Quarantined { reason, since: time(since), deaths }
}

/// What is known of an execution beside its journal.
pub fn facts(reader: &mut impl Reader, stored: &Stored) -> Result<Facts, StoreError> {
    let execution = stored.state.head.id;
    let definition = match stored.origin.definition {
        Some(definition) => reader.definition(definition)?,
        None => None,
    };
    let workflow = definition.map(|definition| Workflow {
        id: definition.workflow.0,
        name: definition.name,
        version: definition.version,
        dialect: Dialect::of_name(&definition.dialect).map(Dialect::view),
    });
    let Options { by, tags, correlation, debug, .. } = stored.origin.options.clone();
    let labels = Labels { by, tags, correlation, parent: stored.origin.parent, debug };
    let trigger = stored.origin.trigger.to_string();
    let quarantined =
        reader.suspect(execution)?.and_then(|suspect| suspect.quarantine()).map(tell_quarantine);
    Ok(Facts { execution, workflow, trigger, leases: leases(reader, execution)?, labels, quarantined })
}
