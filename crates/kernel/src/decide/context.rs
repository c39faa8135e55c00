//! The context: patches, and the gates they open (R13).

use super::scope::Trouble;
use super::{Draft, firing};
use crate::event::{Event, TokenValue};
use crate::ids::{StepId, TokenId};
use crate::input::Rejected;
use crate::phase::Phase;
use crate::step_run::Patch;

pub(super) fn patch(d: &mut Draft<'_>, patch: &Patch, by: &str) -> Result<(), Rejected> {
    if patch.is_empty() {
        return Err(Rejected::Malformed("a patch without a key"));
    }
    if !matches!(d.phase(), Phase::Queued | Phase::Starting | Phase::Running | Phase::Paused) {
        return Err(d.conflict("nothing reads the context any more"));
    }
    d.emit(Event::Patched { patch: patch.clone(), by: by.to_owned() })?;
    reexamine(d, patch)
}

/// Looks again at the tokens whose admission reads a changed key, and at no others.
pub(super) fn reexamine(d: &mut Draft<'_>, patch: &Patch) -> Result<(), Rejected> {
    if patch.is_empty() || d.state.gated.is_empty() || !d.is_open() {
        return Ok(());
    }
    let mut tokens = Vec::new();
    for step in d.net.gates_reading(patch.keys().map(String::as_str)) {
        opened(d, step, &mut tokens)?;
    }
    if tokens.is_empty() { Ok(()) } else { d.emit(Event::Admitted { tokens }) }
}

/// A gate whose rule cannot be evaluated now opens too: its step then fails with the reason.
fn opened(d: &Draft<'_>, step: StepId, tokens: &mut Vec<(StepId, TokenId)>) -> Result<(), Rejected> {
    let Some(admit) = &d.net.step(step).admit else { return Ok(()) };
    for (key, gate) in d.state.gated.from((step, TokenId(0))).take_while(|(key, _)| key.0 == step) {
        let args = match &gate.token.value {
            TokenValue::Live(args) => args.clone(),
            TokenValue::Dead | TokenValue::Poisoned => None,
        };
        match firing::allowed(d, admit, &gate.token, &args) {
            Ok(true) => tokens.push(*key),
            Ok(false) => {}
            Err(Trouble::Rejected(rejected)) => return Err(rejected),
            Err(Trouble::Failed(_)) => {}
        }
    }
    Ok(())
}
