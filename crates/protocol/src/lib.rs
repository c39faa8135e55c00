//! Types that pass between engine and worker: serialised data without logic.

mod call;
mod duration;
mod group;
mod link;
mod pipeline;
mod plan;
mod resource;
mod tools;
mod work;

pub use call::{
    AgentAnswer, AgentAsk, AgentCall, Beat, Call, Order, PROTOCOL_VERSION, Register, Registered, Reply,
    ReplyTo, Verdict,
};
pub use duration::{DURATION_FORM, DURATION_MAX_MS, duration_ms, timeout_ms};
pub use group::{GROUP_NAME_MAX, GroupTask, group_task, is_group_name, operation_of};
pub use link::{
    BYTES_TYPE, CALLS_BYTES_MAX, CALLS_PER_BATCH_MAX, CallBatch, NewSession, OpenedSession, OrderList,
    OrdersRequest, PROTOCOL_HEADER, ReplyBatch, SESSION_HEADER, UNIT_HEADER,
};
pub use pipeline::{
    Action, Backoff, Key, KeyScope, KeySource, Node, OnUnmatched, Pipeline, Provider, Rule, Task,
};
pub use plan::{
    Binding, BuiltinAction, DRILLED_BYTES_MAX, PLAN_STEP_KIND, PlanStep, RefSource, RoutingTarget, StepInput,
    StepLog, StepOutput, StepProgram, StepVariable, drill_into,
};
pub use resource::{
    Body, BodyFile, DatabaseQuota, EgressRules, Memory, MemorySearch, NoRoom, ResourceAsk, ResourceCall,
    ResourceReply, Rights, SecretValue, Variables, WorkerRules,
};
pub use tools::{
    CHILD_KIND, COMMON_FIELDS, Tool, ToolEffect, ToolFamily, ToolField, ToolRow, WORKER_KIND, field, idle,
};
pub use windlass_failure::{ErrorClass, Failure, FailureCode, FailureFacts, FailureSite, codes};
pub use work::{
    Checkpoint, ChildEnd, Iter, LEASE_TTL_MS, Level, Line, Log, Outcome, Progress, Report, Returned,
    STOP_GRACE_MS, Scope, SessionId, Stream, TOO_DEEP, TaskTry, TryTimes, Unit, VALUE_DEPTH_MAX, Work,
    idempotency_key, is_too_deep,
};
