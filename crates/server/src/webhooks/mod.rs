//! Events of executions, delivered to the URL of the start: at least once, in order per execution.
//!
//! | module | content |
//! |---|---|
//! | [`event`] | the seven events, made from the messages of a feed |
//! | [`signature`] | the signatures of a body in its canonical form |
//! | [`courier`] | the task that finds events and sends them in order |
//! | [`ready`] | the queues of receivers |
//! | [`delivery`] | one attempt, its result, and the schedule of retries |

pub(crate) mod courier;
pub(crate) mod delivery;
pub(crate) mod event;
mod ready;
mod route;
pub(crate) mod signature;
