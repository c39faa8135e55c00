//! The context: patches, and the gates that they open (R13).

use super::scope::NoValue;
use super::{Accepted, Draft, firing};
use crate::context::CONTEXT_BYTES_MAX;
use crate::event::{Event, TokenValue};
use crate::execution::Token;
use crate::ids::{StepId, TokenId};
use crate::input::Rejected;
use crate::phase::Phase;
use crate::step_run::{Args, Patch};
use windlass_failure::{Failure, codes};

/// Maximum number of keys that a failure lists.
const KEYS_SHOWN: usize = 5;

pub(super) fn apply_patch(d: &mut Draft<'_>, patch: &Patch, by: &str) -> Accepted {
    if patch.is_empty() {
        return Err(Rejected::Malformed("the patch has no key"));
    }
    if !matches!(d.phase(), Phase::Queued | Phase::Starting | Phase::Running | Phase::Paused) {
        return Err(d.conflict("the execution is ending and no longer reads its context"));
    }
    if let Some(bytes) = oversized_bytes(d, patch) {
        return Err(Rejected::ContextTooLarge { bytes, max: CONTEXT_BYTES_MAX });
    }
    d.emit(Event::Patched { patch: patch.clone(), by: by.to_owned() })?;
    examine_gates(d, patch)
}

/// Returns the size of the context after a patch, if it is too large. A context that grew too large under an earlier
/// release may shrink.
fn oversized_bytes(d: &Draft<'_>, patch: &Patch) -> Option<usize> {
    let ctx = &d.head().ctx;
    let bytes = ctx.bytes_with(patch, d.net.policy().limits.inline_bytes);
    (bytes > CONTEXT_BYTES_MAX && bytes > ctx.bytes()).then_some(bytes)
}

/// Returns the failure of a step whose patch makes the context too large.
pub(super) fn patch_failure(d: &Draft<'_>, patch: &Patch) -> Option<Failure> {
    let bytes = oversized_bytes(d, patch)?;
    let keys = patch.keys().map(String::as_str).take(KEYS_SHOWN).collect::<Vec<_>>().join("`, `");
    let message = format!(
        "with `{keys}` the context would have {bytes} bytes, more than {CONTEXT_BYTES_MAX}; return large values as \
         results and set fewer or smaller ones"
    );
    Some(Failure::new(codes::CONTEXT_TOO_LARGE, message))
}

/// Evaluates the gates again whose admission reads a changed key.
pub(super) fn examine_gates(d: &mut Draft<'_>, patch: &Patch) -> Accepted {
    if patch.is_empty() || d.state.gated.is_empty() || !d.is_open() {
        return Ok(());
    }
    let mut found = ExaminedGates::default();
    for step in d.net.gates_reading(patch.keys().map(String::as_str)) {
        examine_step(d, step, &mut found)?;
    }
    let ExaminedGates { opened, broken } = found;
    if !opened.is_empty() {
        d.emit(Event::Admitted { tokens: opened })?;
    }
    for (key, failure) in broken {
        let Some(gate) = d.state.gated.get(&key).cloned() else { continue };
        d.emit(Event::Admitted { tokens: vec![key] })?;
        firing::fail(d, key.1, &gate.token, token_args(&gate.token), failure)?;
    }
    Ok(())
}

/// Gates that open, and gates whose rule can no longer be evaluated; the steps of the latter fail.
#[derive(Default)]
struct ExaminedGates {
    opened: Vec<(StepId, TokenId)>,
    broken: Vec<((StepId, TokenId), Failure)>,
}

fn examine_step(d: &Draft<'_>, step: StepId, found: &mut ExaminedGates) -> Accepted {
    let Some(admit) = &d.net.step(step).admit else { return Ok(()) };
    for (key, gate) in d.state.gated.from((step, TokenId(0))).take_while(|(key, _)| key.0 == step) {
        match firing::is_allowed(d, admit, &gate.token, &token_args(&gate.token)) {
            Ok(true) => found.opened.push(*key),
            Ok(false) => {}
            Err(NoValue::Rejected(rejected)) => return Err(rejected),
            Err(NoValue::Failed(failure)) => found.broken.push((*key, *failure)),
        }
    }
    Ok(())
}

pub(super) fn token_args(token: &Token) -> Args {
    match &token.value {
        TokenValue::Live(args) => args.clone(),
        TokenValue::Dead | TokenValue::Poisoned => None,
    }
}
