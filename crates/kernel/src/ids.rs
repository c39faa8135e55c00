//! Identifiers. Each has a type of its own, so that a fence cannot be passed where a run is expected.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Milliseconds since the Unix epoch. The caller passes them in, because the kernel has no clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Millis(pub i64);

impl Millis {
    #[must_use]
    pub fn plus(self, delay_ms: u64) -> Millis {
        Millis(self.0.saturating_add(i64::try_from(delay_ms).unwrap_or(i64::MAX)))
    }

    /// Returns the milliseconds from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Millis) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// Id of an execution: 128 bits, formatted as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ExecutionId(pub u128);

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<ExecutionId> for String {
    fn from(id: ExecutionId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for ExecutionId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| text.len() == 32);
        number
            .map(ExecutionId)
            .ok_or_else(|| format!("`{text}` is not an execution id: 32 hex digits are expected"))
    }
}

/// Position of a step in its Net.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId(pub u32);

impl StepId {
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of bits that hold the count; the bits above them hold the generation (R11).
const GENERATION_SHIFT: u32 = 32;

macro_rules! generational {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u64);

        impl $name {
            #[must_use]
            pub fn first(generation: u32) -> Self {
                Self(u64::from(generation) << GENERATION_SHIFT)
            }
            #[must_use]
            pub fn generation(self) -> u32 {
                u32::try_from(self.0 >> GENERATION_SHIFT).unwrap_or(u32::MAX)
            }
            /// Returns the count within the generation, from 0.
            #[must_use]
            pub fn number(self) -> u64 {
                self.0 & ((1 << GENERATION_SHIFT) - 1)
            }
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

generational! {
    /// Id of one firing of a step. It rises within an execution, across generations, so it never names another
    /// firing.
    RunId;
    /// The right to answer for one offer of a step-run. Every offer has a new, higher fence, and an answer under any
    /// fence but that of the open offer changes nothing (K3).
    Fence;
    /// Id of one enabled token: control that has arrived at a step.
    TokenId;
}

/// Iteration numbers of the enclosing loops, outermost first; empty outside loops.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Path(pub Vec<u32>);

impl Path {
    #[must_use]
    pub fn child(&self, index: u32) -> Path {
        let mut numbers = Vec::with_capacity(self.0.len() + 1);
        numbers.extend_from_slice(&self.0);
        numbers.push(index);
        Path(numbers)
    }

    #[must_use]
    pub fn parent(&self) -> Path {
        Path(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    #[must_use]
    pub fn truncated(&self, depth: usize) -> Path {
        Path(self.0[..self.0.len().min(depth)].to_vec())
    }

    #[must_use]
    pub fn index(&self) -> Option<u32> {
        self.0.last().copied()
    }
}
