//! Rows of one execution, typed: what `project` makes and stores write. Values are bytes that only [`crate::codec`]
//! reads.

use windlass_kernel::{Fence, Millis, Phase, RunId};

/// Number that a lease names instead of a step-run when it is on the whole execution (R11). Its fence is the first one of
/// the generation. It is higher than every number of a step-run, also as a signed number.
pub const WHOLE: RunId = RunId(u64::MAX >> 1);

/// Upserts and deletes of one commit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    pub head: HeadRow,
    /// Present when the context changed.
    pub ctx: Option<Vec<u8>>,
    pub runs: Vec<RunRow>,
    pub parts: Vec<PartRow>,
    /// Step-runs whose output or list of items later decisions may read: they are in this commit's journal row.
    pub facts: Vec<RunId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HeadRow {
    /// State after the commit.
    pub version: u64,
    pub phase: Phase,
    pub held: bool,
    pub at: Millis,
    /// The execution's own timer: its start or its deadline.
    pub due: Option<Millis>,
    /// Whether the newest record is `Continued`: more follows without an input from outside.
    pub goes_on: bool,
    pub state: Vec<u8>,
}

impl Default for HeadRow {
    fn default() -> Self {
        HeadRow {
            version: 0,
            phase: Phase::Blank,
            held: false,
            at: Millis(0),
            due: None,
            goes_on: false,
            state: Vec::new(),
        }
    }
}

/// The table part that a live step-run is in: rows that must be found at once after a crash are next to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Offered = 0,
    Other = 1,
    /// The step-run waits for a person.
    Asked = 2,
    /// The step-run waits for its route.
    Routed = 3,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub run: RunId,
    /// The class of the row before this commit, if it exists.
    pub before: Option<Class>,
    /// None: it has ended.
    pub after: Option<LiveRun>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LiveRun {
    pub class: Class,
    pub fence: Option<Fence>,
    pub due: Option<Millis>,
    pub state: Vec<u8>,
}

/// The other tables of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Arrived = 1,
    Gated = 2,
    Join = 3,
    Ready = 4,
    Hungry = 5,
    Scope = 6,
    Region = 7,
    Latest = 8,
    Owed = 9,
    Parked = 10,
    Joining = 11,
}

impl Part {
    pub const ALL: [Part; 11] = [
        Part::Arrived,
        Part::Gated,
        Part::Join,
        Part::Ready,
        Part::Hungry,
        Part::Scope,
        Part::Region,
        Part::Latest,
        Part::Owed,
        Part::Parked,
        Part::Joining,
    ];

    /// Returns the name of the part in reports of a check.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Arrived => "arrived",
            Part::Gated => "gated",
            Part::Join => "join",
            Part::Ready => "ready",
            Part::Hungry => "hungry",
            Part::Scope => "scope",
            Part::Region => "region",
            Part::Latest => "latest",
            Part::Owed => "owed",
            Part::Parked => "parked",
            Part::Joining => "joining",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct PartRow {
    pub part: Part,
    pub key: Vec<u8>,
    pub due: Option<Millis>,
    /// None deletes the row.
    pub value: Option<Vec<u8>>,
}
