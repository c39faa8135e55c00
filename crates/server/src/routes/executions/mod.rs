//! Executions: started, told, listed, controlled.

mod artifact;
mod control;
mod events;
mod evidence;
mod journal;
pub(super) mod key;
mod lifecycle;
mod links;
mod list;
mod logs;
mod manual;
mod one;
mod options;
mod refused;
mod retry;
mod start;
mod started;
mod value;

pub use events::EventTeller;
pub use lifecycle::LogTeller;
pub use list::{Execution as ListedExecution, Wanted as ExecutionFilter};
pub(super) use options::ExecutionOptions;
pub(super) use refused::unexpected;
pub(super) use start::{Trigger, begin};
pub(super) use started::Accepted;
pub use started::Estimates;

use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::ids;
use crate::problem::Problem;
use crate::readers::Slice;
use crate::stories::Telling;
use crate::told::{TellError, Told};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_kernel::ExecutionId;
use windlass_store::sqlite::SqliteReader;
use windlass_store::{Reader, Stored};

/// In the OpenAPI document.
const TAG: &str = "executions";

pub fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(start::execute))
        .routes(routes!(list::of_workflow))
        .routes(routes!(list::search))
        .routes(routes!(one::get))
        .routes(routes!(one::status))
        .routes(routes!(one::graph))
        .routes(routes!(artifact::artifact))
        .routes(routes!(value::value))
        .routes(routes!(logs::logs))
        .routes(routes!(events::events))
        .routes(routes!(evidence::evidence))
        .routes(routes!(journal::journal))
        .routes(routes!(control::cancel))
        .routes(routes!(control::pause))
        .routes(routes!(control::resume))
        .routes(routes!(control::patch))
        .routes(routes!(retry::retry))
        .routes(routes!(manual::complete))
}

impl From<TellError> for Problem {
    fn from(error: TellError) -> Problem {
        match error {
            TellError::Gone(id) => missing(id),
            TellError::Store(error) => error.into(),
            TellError::NoNet(_) | TellError::Broken(..) => Problem::unreadable(error),
        }
    }
}

/// An execution of the caller's tenant; another's is not there.
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

/// What was reached in the first slice of a telling.
enum First<T, F> {
    Told(T),
    /// The story is long: it is folded in turns.
    Long(Box<Telling>, F),
}

/// The id of a path, and what is told of all that happened to its execution. A long story is folded in slices, and told
/// where it was read.
async fn told<T: Send + 'static>(
    app: &App,
    caller: &Caller,
    id: &str,
    tell: impl FnOnce(&Told<'_>) -> T + Send + 'static,
) -> Result<T, Problem> {
    caller.may(Permission::View)?;
    let (id, caller, stories) = (ids::execution(id)?, caller.clone(), app.stories.clone());
    let readers = app.readers.of(&caller.tenant);
    let first = readers.read(move |reader| {
        let telling = stories.begin(stored_of(reader, &caller, id)?);
        Ok::<_, Problem>(match stories.catch_up(reader, &telling, Slice::begin())? {
            true => First::Told(stories.finish(reader, telling, tell)?),
            false => First::Long(Box::new(telling), tell),
        })
    });
    let (telling, tell) = match first.await? {
        First::Told(told) => return Ok(told),
        First::Long(telling, tell) => (*telling, tell),
    };
    let stories = app.stories.clone();
    let _turn = stories.turn(&telling).await;
    let stories = app.stories.clone();
    let fold = move |reader: &mut SqliteReader, state: &mut Option<(Telling, _)>, slice: Slice| {
        let Some((telling, tell)) = state.take() else { return Ok(None) };
        match stories.catch_up(reader, &telling, slice)? {
            true => stories.finish(reader, telling, tell).map(Some),
            false => {
                *state = Some((telling, tell));
                Ok::<_, TellError>(None)
            }
        }
    };
    readers.read_in_slices(Some((telling, tell)), fold).await
}
