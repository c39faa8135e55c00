//! How a worker reaches its engine.

use windlass_protocol::{
    AgentAnswer, AgentCall, Beat, Checkpoint, Log, Order, Progress, Register, Report, SessionId, Verdict,
};

/// Called at most once, from any thread. Dropped uncalled, the message counts as lost and is sent again.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// Called for every order to the registered session, from any thread, until a later registration takes its place.
pub type Orders = Box<dyn Fn(Order) + Send + Sync>;

/// No call may wait: what is given is sent, and the reply comes later. Calls of one kind are delivered in their order, and
/// a unit's log before its report. The engine answers a report, a checkpoint or a beat after it is on disk; a crash of
/// the engine before that means that there is no answer.
pub trait Port: Send + Sync + 'static {
    fn register(&self, register: Register, orders: Orders, reply: Reply<SessionId>);
    fn beat(&self, beat: Beat, reply: Reply<Verdict>);
    fn report(&self, report: Report, reply: Reply<Verdict>);
    /// Answered when what the call began has ended, which may take long; a call asked again gets the same answer.
    fn agent(&self, call: AgentCall, reply: Reply<AgentAnswer>);
    fn checkpoint(&self, checkpoint: Checkpoint, reply: Reply<Verdict>);
    /// The session ends; what it held and did not report is offered again at once, and nobody is to blame.
    fn leave(&self, session: SessionId, reply: Reply<Verdict>);
    /// The newest is what counts: one that is lost is not sent again.
    fn progress(&self, progress: Progress, reply: Reply<Verdict>);
    /// The answer says that there is room for more.
    fn log(&self, log: Log, reply: Reply<Verdict>);
}
