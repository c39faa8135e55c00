//! The engine: inputs in, decisions out, nothing visible before it is on disk.
//!
//! [`Lane`] is the machine, [`Engine`] runs one on threads over a store. Only this crate calls `decide` and commits.

mod engine;
mod fair;
mod folder;
mod ids;
mod lane;
mod private;
mod reading;
mod wake;

pub use engine::{Engine, Handle, Watch};
pub use fair::{FairThreads, Job, Refused, Waiting, WaitingMax};
pub use folder::{Folder, FolderError};
pub use ids::new_execution_id;
pub use lane::{Config, InputsCheck, Lane, Relower};
pub use private::make_private;
pub use reading::{journal, look_up};
pub use wake::{
    Answer, Defaults, Effect, Fatal, Found, InputsLookup, Load, Lookup, NotRetried, Now, Past, ReadId,
    Refusal, Request, SlotLimits, Start, Tally, Wake,
};
