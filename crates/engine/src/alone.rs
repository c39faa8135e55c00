//! Decides one input for one execution without recovery, workers or other executions. It repairs a data folder that no
//! process holds.

use crate::lane::{ChildCheck, Config, Lane};
use crate::reading::look_up;
use crate::wake::{Effect, EngineAnswer, Fatal, Lookup, Now, Request, Wake};
use windlass_kernel::{ExecutionId, Input};
use windlass_store::{Audit, Store, StoreError};

/// Maximum number of turns of the lane for one input. A cancel takes a few; more mean that it does not end.
const TURNS_MAX: usize = 10_000;

/// Decides the input and writes its consequences. Mail to other executions is left in their inboxes.
pub fn give_alone<S: Store>(
    store: &mut S,
    execution: ExecutionId,
    (input, audit): (Input, Option<Box<Audit>>),
    (seed, now): (u64, Now),
) -> Result<EngineAnswer, Fatal> {
    let mut reader = store.reader()?;
    let mut lane: Lane<()> = Lane::new(Config { seed, ..Config::default() }, now);
    let mut wakes = vec![Wake::Ask(Request::Give { execution, input, audit }, ())];
    let mut answered = None;
    for _ in 0..TURNS_MAX {
        for wake in wakes.drain(..) {
            lane.wake(wake, now);
        }
        lane.settle();
        for effect in lane.take_effects() {
            match effect {
                Effect::Answer((), answer) => answered = Some(answer),
                Effect::Write(batch) => wakes.push(Wake::Written(store.write(&batch))),
                Effect::Read(id, lookup) if is_of(&lookup) => {
                    wakes.push(Wake::Found(id, look_up(&mut reader, &lookup, &ChildCheck::default())));
                }
                Effect::Fatal(fatal) => return Err(fatal),
                Effect::Quarantined(_, what) => return Err(StoreError::Undecodable(what).into()),
                // Further effects of the lane are left to the process that takes the folder.
                Effect::Read(..)
                | Effect::SessionOpen(..)
                | Effect::Serve(..)
                | Effect::Order(..)
                | Effect::SessionOver(_)
                | Effect::Changed(_)
                | Effect::Stopped => {}
            }
        }
        if wakes.is_empty() {
            return answered.ok_or(Fatal::Died);
        }
    }
    Err(Fatal::Died)
}

/// Reads the data that a decision for one execution needs. Lists of work stay unread.
fn is_of(lookup: &Lookup) -> bool {
    match lookup {
        Lookup::Execution(_) | Lookup::Net(_) | Lookup::Values(..) => true,
        Lookup::Definition(_)
        | Lookup::Inputs(_)
        | Lookup::Past(..)
        | Lookup::Named(..)
        | Lookup::End(..)
        | Lookup::Result(_)
        | Lookup::Due { .. }
        | Lookup::Offers { .. }
        | Lookup::Stops { .. }
        | Lookup::Unfinished
        | Lookup::Inbox { .. }
        | Lookup::Open(..)
        | Lookup::OffersOf(_)
        | Lookup::Offer(..)
        | Lookup::InboxOf(_) => false,
    }
}
