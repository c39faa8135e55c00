//! The engine: it takes inputs and makes decisions, and returns no result before it is on disk.
//!
//! [`Lane`] is the machine, [`Engine`] runs one on threads over a store. Only this crate calls `decide` and commits.

mod activity;
mod alone;
mod engine;
mod fair;
mod folder;
mod ids;
mod lane;
mod private;
mod reading;
mod resources;
pub mod retries;
mod wake;

pub use activity::{Activities, Activity};
pub use alone::give_alone;
pub use engine::{Engine, Handle, Watch};
pub use fair::{FairThreads, Job, Refused, Waiting, WaitingMax};
pub use folder::{Folder, FolderError};
pub use ids::new_execution_id;
pub use lane::{ChildCheck, Config, Lane};
pub use private::make_private;
pub use reading::{journal, look_up};
pub use resources::{RequestingUnit, ResourceRequest, Resources};
pub use wake::{
    ChildReading, Defaults, Effect, EngineAnswer, Fatal, Found, GroupCall, GroupLoad, GroupReply, HeldCall,
    InputsLookup, Limits, Load, Lookup, NotRetried, Now, OpenLimits, PreparedStart, ReadId, Refusal, Request,
    SessionKey, Share, SlotLimits, Start, Tally, Wake, describe_lost,
};
