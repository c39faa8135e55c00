//! Plans at a server: documents with registered actions, and where their executions run.
//!
//! | module | content |
//! |---|---|
//! | [`documents`] | plans read with the actions of the registry, and stored plans |
//! | [`placement`] | the cluster and the runner group of an execution |

pub(crate) mod documents;
pub(crate) mod placement;

pub(crate) use documents::{Hydrated, Plans, hydrate};

/// Name of the dialect.
pub(crate) const DIALECT: &str = "plan";
