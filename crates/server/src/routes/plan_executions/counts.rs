//! Numbers of steps by phase, for lists: from the histories of the executions, which are cached.

use crate::app::App;
use crate::auth::Caller;
use crate::database::DatabaseReader;
use crate::feed::leases;
use crate::histories::{Histories, HistoryRead};
use crate::loaded::ReadError;
use crate::problem::Problem;
use crate::readers::Slice;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_dialects::plan::step_counts;
use windlass_kernel::ExecutionId;
use windlass_store::Reader as _;

/// Maximum number of records that a list reads of one execution. A plan of 1,000 steps has about 5,000, and as many after each
/// loss of its worker.
const RECORDS_MAX: u64 = 50_000;
/// Maximum number of records of the executions of a page.
const RECORDS_OF_PAGE_MAX: u64 = 200_000;

/// The executions of a page, counted one after the other.
struct Counting {
    histories: Arc<Histories>,
    /// Executions that are not counted yet, the next one last.
    left: Vec<ExecutionId>,
    /// Number of records that may still be read.
    records_left: u64,
    /// An execution whose history is not folded to its end.
    begun: Option<HistoryRead>,
    counted: BTreeMap<ExecutionId, Value>,
}

/// Returns the numbers of steps of executions of the caller. An execution that has been deleted meanwhile, or whose records exceed
/// the limits, has none.
pub(super) async fn count_steps(
    app: &App,
    caller: &Caller,
    executions: impl DoubleEndedIterator<Item = ExecutionId>,
) -> Result<BTreeMap<ExecutionId, Value>, Problem> {
    let counting = Counting {
        histories: app.histories.clone(),
        left: executions.rev().collect(),
        records_left: RECORDS_OF_PAGE_MAX,
        begun: None,
        counted: BTreeMap::new(),
    };
    app.readers.of(&caller.tenant).read_in_slices(counting, Counting::proceed).await
}

impl Counting {
    /// Counts until the slice is over. Returns the result when all executions are counted.
    fn proceed(
        reader: &mut DatabaseReader,
        counting: &mut Counting,
        slice: Slice,
    ) -> Result<Option<BTreeMap<ExecutionId, Value>>, Problem> {
        while !slice.is_over() {
            let Some(next) = counting.left.last().copied() else {
                return Ok(Some(std::mem::take(&mut counting.counted)));
            };
            // A list shows the other executions, whatever has become of this one.
            let is_counted = counting.count(reader, next, slice).unwrap_or_else(|error| {
                tracing::warn!(%error, "the steps of an execution cannot be counted");
                true
            });
            if is_counted {
                counting.left.pop();
            }
        }
        Ok(None)
    }

    /// Counts the steps of an execution. Returns false when the slice ends first.
    fn count(
        &mut self,
        reader: &mut DatabaseReader,
        execution: ExecutionId,
        slice: Slice,
    ) -> Result<bool, ReadError> {
        let begun = match self.begun.take() {
            Some(begun) => Some(begun),
            None => {
                let stored = reader.load(execution)?;
                let records_max = RECORDS_MAX.min(self.records_left);
                let stored = stored.filter(|stored| stored.state.head.version <= records_max);
                stored.map(|stored| {
                    self.records_left -= stored.state.head.version;
                    self.histories.begin(stored)
                })
            }
        };
        let Some(read) = begun else { return Ok(true) };
        if !self.histories.catch_up(reader, &read, slice)? {
            self.begun = Some(read);
            return Ok(false);
        }
        let leases = leases(reader, execution)?;
        let counts = self.histories.look(&read, |net, history| step_counts(net, history, &leases))?;
        self.counted.insert(execution, counts);
        Ok(true)
    }
}
