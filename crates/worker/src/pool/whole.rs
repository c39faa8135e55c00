//! An execution that this worker holds as a whole: the folder that its steps share, from the claim to the end.

use super::unit::{Result, UnitChannels, store_cursor};
use crate::failure::failure;
use crate::folder::{make_folder, remove_folder};
use crate::halt::Halt;
use crate::tools::Kit;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;
use windlass_protocol::{Failure, Outcome, PlanStep, Report, Unit, Work, codes};

/// Returns the folder that all steps of one generation of an execution share. It exists while the worker holds the
/// execution, and is empty when the first step begins.
pub(crate) fn execution_folder(folders: &Path, unit: Unit) -> PathBuf {
    folders.join(format!("exec_{:032x}-{}", unit.execution, unit.generation()))
}

/// Holds the execution until it is stopped. Its steps are units of their own, and are stopped on their own.
pub(super) async fn run(work: Work, mut channels: UnitChannels, mut halt: Halt) -> Result {
    let unit = work.unit;
    let folder = execution_folder(&channels.kit.folders, unit);
    let made = folder.clone();
    let made = spawn_blocking(move || make_folder(&made)).await.unwrap_or_else(|error| Err(error.into()));
    if let Err(error) = made {
        let message = format!("cannot create the folder of the execution at {}: {error}", folder.display());
        let failed = failure(codes::NO_WORK_DIR, message);
        let outcome = Outcome::Failed(*failed);
        return Some(Box::new(Report { unit, outcome, patch: Map::new(), metadata: Map::new() }));
    }
    if let Err(failed) = resolve_secrets(&work, &channels.kit).await {
        let outcome = Outcome::Failed(*failed);
        return Some(Box::new(Report { unit, outcome, patch: Map::new(), metadata: Map::new() }));
    }
    if store_cursor(json!({}), &mut channels, unit, &mut halt).await.is_some() && !halt.is_requested() {
        halt.requested().await;
    }
    if channels.kit.keeps_workdirs {
        return None;
    }
    let shown = folder.display().to_string();
    let removed =
        spawn_blocking(move || remove_folder(&folder)).await.unwrap_or_else(|error| Err(error.into()));
    if let Err(error) = removed {
        tracing::warn!(folder = shown, %error, "the folder of an ended execution cannot be removed");
    }
    None
}

/// Resolves the secrets that parameters are bound to: an execution without one of them does not begin, all steps read the
/// same values, and the outputs of all steps are searched for all of them. An execution that begins again resolves them again.
async fn resolve_secrets(work: &Work, kit: &Kit) -> std::result::Result<(), Box<Failure>> {
    let inputs = crate::node::whole(kit, &work.scope.workload).await?;
    let bound = inputs.get(PlanStep::SECRET_NAMES).and_then(Value::as_object);
    for (param, name) in bound.into_iter().flatten() {
        if let Err(mut failed) = kit.keeper.resolve(name.as_str().unwrap_or_default()).await {
            failed.message = format!("parameter `{param}`: {}", failed.message);
            return Err(failed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_one_generation_share_a_folder() {
        let place = Path::new("/work");
        let unit = Unit { execution: 7, run: Unit::WHOLE, fence: 3 << 32 };
        let folder = execution_folder(place, unit);
        assert!(folder.ends_with("exec_00000000000000000000000000000007-3"));
        let step = Unit { run: (3 << 32) + 5, fence: (3 << 32) + 9, ..unit };
        assert_eq!(execution_folder(place, step), folder);
    }
}
