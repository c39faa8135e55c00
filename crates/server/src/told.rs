//! Executions as they are told: everything that is known of one, read at once.

use crate::evidence::{Evidence, Ledger};
use crate::feed::leases;
use crate::follow::Witness;
use serde_json::Value;
use windlass_dialects::Dialect;
use windlass_dialects::view::{Facts, Labels, Story, Workflow, response};
use windlass_engine::journal;
use windlass_kernel::{ExecutionId, Illegal, Net, Record};
use windlass_store::{Options, Reader, StoreError, Stored};

/// An execution with all that happened to it.
#[derive(Debug)]
pub struct Told {
    pub stored: Stored,
    pub net: Net,
    pub journal: Vec<Record>,
    pub facts: Facts,
}

#[derive(Debug, thiserror::Error)]
pub enum TellError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the net of execution {0} is missing: the data folder is damaged")]
    NoNet(ExecutionId),
    #[error("the journal of execution {0} is broken: {1}")]
    Broken(ExecutionId, Illegal),
}

impl Told {
    /// None: there is no such execution.
    pub fn read(reader: &mut impl Reader, id: ExecutionId) -> Result<Option<Told>, TellError> {
        match reader.load(id)? {
            Some(stored) => Told::of(reader, stored).map(Some),
            None => Ok(None),
        }
    }

    pub fn of(reader: &mut impl Reader, stored: Stored) -> Result<Told, TellError> {
        let id = stored.state.head.id;
        let net = reader.net(stored.state.head.net)?.ok_or(TellError::NoNet(id))?;
        let facts = facts(reader, &stored)?;
        Ok(Told { net, journal: journal(reader, id)?, facts, stored })
    }

    /// The object that stands for an execution everywhere.
    pub fn response(&self) -> Result<Value, TellError> {
        response(&self.facts, &self.net, &self.journal).map_err(|illegal| self.broken(illegal))
    }

    pub fn story(&self) -> Result<Story, TellError> {
        Story::of(&self.net, &self.journal).map_err(|illegal| self.broken(illegal))
    }

    /// The whole chain: a hash depends on all that was before it.
    pub fn evidence(self) -> Result<Vec<Evidence>, TellError> {
        let mut ledger = Ledger::new(self.facts.execution, self.facts.labels.correlation.as_deref());
        let (mut witness, mut entries) = (Witness::default(), Vec::new());
        for record in self.journal {
            let happened = witness.see(&self.net, record);
            let happened = happened.map_err(|illegal| TellError::Broken(self.facts.execution, illegal))?;
            entries.extend(ledger.note(&happened));
        }
        Ok(entries)
    }

    fn broken(&self, illegal: Illegal) -> TellError {
        TellError::Broken(self.facts.execution, illegal)
    }
}

/// What is known of an execution beside its journal.
pub fn facts(reader: &mut impl Reader, stored: &Stored) -> Result<Facts, StoreError> {
    let execution = stored.state.head.id;
    let definition = match stored.definition {
        Some(definition) => reader.definition(definition)?,
        None => None,
    };
    let workflow = definition.map(|definition| Workflow {
        id: definition.workflow.0,
        name: definition.name,
        version: definition.version,
        dialect: Dialect::of_name(&definition.dialect),
    });
    let Options { by, tags, correlation, debug, .. } = (*stored.options).clone();
    let labels = Labels { by, tags, correlation, parent: stored.parent, debug };
    let trigger = stored.trigger.clone();
    Ok(Facts { execution, workflow, trigger, leases: leases(reader, execution)?, labels })
}
