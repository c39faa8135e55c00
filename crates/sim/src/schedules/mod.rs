//! Schedules over simulated weeks: several servers plan and dispatch over one real store while processes die between two
//! writes, freeze past their leases, and clocks jump.
//!
//! | module | content |
//! |---|---|
//! | [`population`] | random schedules in six time zones |
//! | [`world`] | servers, their jobs, and what happens to them |
//! | [`judge`] | the rules that the rows must keep |

mod judge;
mod population;
mod world;

pub use judge::{Broken, Ledger};
pub use world::{ScheduleCounts, ScheduleExtent, simulate};
