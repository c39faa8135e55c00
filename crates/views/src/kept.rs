//! Values of a journal. Some are held in memory; the place of each is known, so that an evicted one can be read again.

use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Weak};
use windlass_artifact::json_bytes;
use windlass_kernel::{Event, Facet, LifeChange, RunChange, any_of};

/// Position of a value in a journal: the number of its record, and its index among the values of that record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValuePlace {
    pub version: u64,
    pub index: usize,
    /// Bytes of its JSON.
    pub bytes: usize,
}

impl ValuePlace {
    #[must_use]
    pub fn of(version: u64, index: usize, value: &Value) -> ValuePlace {
        ValuePlace { version, index, bytes: json_bytes(value) }
    }

    /// Returns the address of the value, which does not have its size.
    #[must_use]
    pub fn address(&self) -> ValueAddress {
        ValueAddress { version: self.version, index: self.index }
    }
}

/// A value of a journal as an address names it: `57.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueAddress {
    pub version: u64,
    pub index: usize,
}

impl fmt::Display for ValueAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.version, self.index)
    }
}

impl FromStr for ValueAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<ValueAddress, ()> {
        let (version, index) = text.split_once('.').ok_or(())?;
        let (Ok(version), Ok(index)) = (version.parse(), index.parse()) else { return Err(()) };
        Ok(ValueAddress { version, index })
    }
}

impl ValueAddress {
    /// Returns the value in the record that the address names. A history makes addresses for values of these events.
    #[must_use]
    pub fn value_in(&self, event: &Event) -> Option<Arc<Value>> {
        let first = |value: &Arc<Value>| (self.index == 0).then(|| value.clone());
        match event.facet() {
            Facet::Life(LifeChange::Created(created)) => {
                Some(created.create.imports.get(self.index)?.output.clone())
            }
            Facet::Run(_, RunChange::Done(output)) => first(output),
            Facet::Run(_, RunChange::Failed { output, .. }) => first(output?),
            Facet::Run(_, RunChange::Fired { args, .. }) => first(args.as_ref()?),
            Facet::Life(
                any_of![LifeChange: Forked PauseChanged Released Patched OutcomeDecided Cleared StopAsked Ended
                Restarted],
            )
            | Facet::Run(
                _,
                any_of![RunChange: Skipped LoopStarted IterationEnded Delayed Offered AwaitingManual
                ChildStarted Returned Lost Retried Dropped Routed AgentDecided Internal],
            )
            | any_of![Facet: Discarded Joined Internal] => None,
        }
    }
}

/// A result by its place. The value is available as long as it is held elsewhere.
#[derive(Debug, Clone)]
pub struct ResultPlace {
    pub place: ValuePlace,
    held: Weak<Value>,
}

impl ResultPlace {
    #[must_use]
    pub fn of(version: u64, index: usize, value: &Arc<Value>) -> ResultPlace {
        ResultPlace { place: ValuePlace::of(version, index, value), held: Arc::downgrade(value) }
    }

    pub(crate) fn held(&self) -> Option<Arc<Value>> {
        self.held.upgrade()
    }
}

/// A value of a journal, or the place where it can be read.
#[derive(Debug, Clone)]
pub struct HeldValue {
    pub place: ValuePlace,
    /// None after it was evicted.
    pub value: Option<Arc<Value>>,
}

impl HeldValue {
    pub(crate) fn new(version: u64, index: usize, value: &Arc<Value>) -> HeldValue {
        HeldValue { place: ValuePlace::of(version, index, value), value: Some(value.clone()) }
    }

    /// Evicts the value and returns the bytes that are freed.
    pub(crate) fn drop_value(&mut self) -> usize {
        self.value.take().map_or(0, |_| self.place.bytes)
    }

    pub(crate) fn bytes_held(&self) -> usize {
        if self.value.is_some() { self.place.bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for address in [ValueAddress { version: 0, index: 0 }, ValueAddress { version: 20_000, index: 3 }] {
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        for text in ["", "17", "x.y", "1.", ".1", "-1.0", "1.0.0"] {
            assert_eq!(text.parse::<ValueAddress>(), Err(()), "{text}");
        }
    }
}
