//! Bytes of state rows. They are derived from the journal and can be made again, so their form is compact and may
//! change with a migration; only the form of the journal is guaranteed.

use crate::rows::{HeadRow, LiveRun, Part, PartRow, WHOLE};
use crate::store::{StoreError, StoreResult};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use windlass_kernel::{Execution, ExecutionId, Head, NetDigest, RunId};

/// Initial size: most rows fit, and a larger one grows.
const ROW_BYTES: usize = 256;

pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ROW_BYTES);
    // Writing plain data to memory cannot fail.
    rmp_serde::encode::write(&mut bytes, value).expect("state rows are plain data");
    bytes
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> StoreResult<T> {
    rmp_serde::from_slice(bytes)
        .map_err(|error| StoreError::Undecodable(format!("a state row cannot be read: {error}")))
}

/// Returns the state from all its rows; the opposite of `project` over a whole state.
pub fn assemble(
    id: ExecutionId,
    net: NetDigest,
    inputs: Arc<Value>,
    head: &HeadRow,
    ctx: Option<&[u8]>,
    runs: &[(RunId, LiveRun)],
    parts: &[PartRow],
) -> StoreResult<Execution<'static>> {
    let head = Head { id, net, inputs, ..decode(&head.state)? };
    let mut state = Execution { head, ..Execution::default() };
    if let Some(ctx) = ctx {
        state.head.ctx = decode(ctx)?;
    }
    for (run, row) in runs.iter().filter(|(run, _)| *run != WHOLE) {
        state.runs.insert(*run, decode(&row.state)?);
    }
    for row in parts {
        place(&mut state, row)?;
    }
    Ok(state)
}

fn place(state: &mut Execution<'static>, row: &PartRow) -> StoreResult<()> {
    let Some(value) = &row.value else { return Ok(()) };
    macro_rules! put {
        ($table:ident) => {
            state.$table.insert(decode(&row.key)?, decode(value)?)
        };
    }
    match row.part {
        Part::Arrived => put!(arrived),
        Part::Gated => put!(gated),
        Part::Join => put!(joins),
        Part::Ready => put!(ready),
        Part::Hungry => put!(hungry),
        Part::Scope => put!(scopes),
        Part::Region => put!(regions),
        Part::Latest => put!(latest),
        Part::Owed => put!(owed),
        Part::Parked => put!(parked),
        Part::Joining => put!(joining),
    };
    Ok(())
}
