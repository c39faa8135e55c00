//! Executions: start, view, list, control.

mod artifact;
mod control;
mod events;
mod evidence;
pub(crate) mod key;
mod links;
mod list;
mod list_filter;
mod logs;
mod manual;
mod one;
mod options;
mod progress;
mod refused;
mod retry;
mod retry_preview;
mod start;
mod started;

pub use list::{Execution as ListedExecution, Wanted as ExecutionFilter};
pub(crate) use one::Drawn;
pub(crate) use options::{ExecutionOptions, check_webhook_url};
pub(super) use refused::unexpected;
pub(super) use start::begin;
pub(crate) use start::{Trigger, begin_version};
pub(super) use started::Accepted;
pub(crate) use started::Estimates;

use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::database::DatabaseReader;
use crate::histories::HistoryRead;
use crate::ids;
use crate::loaded::{LoadedExecution, ReadError};
use crate::problem::Problem;
use crate::readers::Slice;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_kernel::ExecutionId;
use windlass_store::{Reader, Stored};

/// Tag in the OpenAPI document.
const TAG: &str = "executions";

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(start::execute))
        .routes(routes!(list::of_workflow))
        .routes(routes!(list::search))
        .routes(routes!(one::get))
        .routes(routes!(one::status))
        .routes(routes!(one::graph))
        .routes(routes!(artifact::artifact))
        .routes(routes!(artifact::value))
        .routes(routes!(logs::logs))
        .routes(routes!(events::events))
        .routes(routes!(evidence::evidence))
        .routes(routes!(progress::progress))
        .routes(routes!(control::cancel))
        .routes(routes!(control::pause))
        .routes(routes!(control::resume))
        .routes(routes!(control::patch))
        .routes(routes!(retry::retry))
        .routes(routes!(manual::complete))
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Problem {
        match error {
            ReadError::Gone(id) => missing(id),
            ReadError::Store(error) => error.into(),
            ReadError::NoNet(_) | ReadError::Broken(..) => Problem::unreadable(error),
        }
    }
}

/// Returns an execution of the caller's tenant; those of other tenants are not found.
pub(crate) fn stored_of(
    reader: &mut impl Reader,
    caller: &Caller,
    id: ExecutionId,
) -> Result<Stored, Problem> {
    let found = reader.load(id)?.filter(|stored| stored.origin.tenant == caller.tenant);
    found.ok_or_else(|| missing(id))
}

pub(crate) fn missing(id: ExecutionId) -> Problem {
    Problem::not_found("execution", &windlass_views::execution_id(id))
}

/// Result of the first slice of a read.
enum First<T, F> {
    Viewed(T),
    /// The history is long: it is folded in slices.
    Long(Box<HistoryRead>, F),
}

/// Calls `view` with the execution of a path and its history, on the thread that read it. A long history is folded in
/// slices.
pub(crate) async fn view_execution<T: Send + 'static>(
    app: &App,
    caller: &Caller,
    id: &str,
    view: impl FnOnce(&LoadedExecution<'_>) -> T + Send + 'static,
) -> Result<T, Problem> {
    caller.may(Permission::View)?;
    let (id, caller, histories) = (ids::execution(id)?, caller.clone(), app.histories.clone());
    let readers = app.readers.of(&caller.tenant);
    let first = readers.read(move |reader| {
        let read = histories.begin(stored_of(reader, &caller, id)?);
        Ok::<_, Problem>(match histories.catch_up(reader, &read, Slice::begin())? {
            true => First::Viewed(histories.finish(reader, read, view)?),
            false => First::Long(Box::new(read), view),
        })
    });
    let (read, view) = match first.await? {
        First::Viewed(viewed) => return Ok(viewed),
        First::Long(read, view) => (*read, view),
    };
    let histories = app.histories.clone();
    let _permit = app.histories.permit(&read).await;
    let fold = move |reader: &mut DatabaseReader, state: &mut Option<(HistoryRead, _)>, slice: Slice| {
        let Some((read, view)) = state.take() else { return Ok(None) };
        match histories.catch_up(reader, &read, slice)? {
            true => histories.finish(reader, read, view).map(Some),
            false => {
                *state = Some((read, view));
                Ok::<_, ReadError>(None)
            }
        }
    };
    readers.read_in_slices(Some((read, view)), fold).await
}
