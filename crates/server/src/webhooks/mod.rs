//! Events of executions, sent to the address that was given with the start: at least once, in order per execution.
//!
//! | part | is |
//! |---|---|
//! | [`event`] | the seven events, made from the messages of a feed |
//! | [`canonical`], [`signature`] | what is signed, and how |
//! | [`courier`] | who looks for events, and sends them one after the other |
//! | [`ready`] | whose turn it is |
//! | [`delivery`] | one try, what its answer means, and when the next try is due |

pub mod canonical;
pub mod courier;
pub mod delivery;
pub mod event;
mod ready;
mod route;
pub mod signature;
