//! Rendered calls that wait for their result. A call that is not cached here is rendered again when its result is
//! reported.

use super::is_same;
use std::collections::{BTreeMap, HashMap, VecDeque};
use windlass_engine::SessionKey;
use windlass_protocol::Unit;
use windlass_store::Tenant;

/// Memory of the calls of one tenant. A call has a few KiB, so it is enough for some thousands of claimed calls.
const TENANT_MEMORY_MAX: u64 = 16 << 20;
/// Memory of the calls of all tenants.
const MEMORY_MAX: u64 = 128 << 20;
/// Memory of a call in addition to its values.
const OVERHEAD: u64 = 2 << 10;

#[derive(Debug)]
pub(super) struct Calls<C> {
    tenants: BTreeMap<Tenant, TenantCalls<C>>,
    memory: u64,
}

#[derive(Debug)]
struct TenantCalls<C> {
    /// Calls, each with the session that holds it, and its memory.
    calls: HashMap<Unit, (SessionKey, C, u64)>,
    /// Keys in the order of their insertion; some may have no call any more.
    order: VecDeque<Unit>,
    memory: u64,
}

impl<C> Default for Calls<C> {
    fn default() -> Self {
        Calls { tenants: BTreeMap::new(), memory: 0 }
    }
}

impl<C> Default for TenantCalls<C> {
    fn default() -> Self {
        TenantCalls { calls: HashMap::new(), order: VecDeque::new(), memory: 0 }
    }
}

impl<C> Calls<C> {
    /// Keeps a call, unless it is too large. Older calls of the tenant make room for it, then those of the tenant with most.
    pub(super) fn put(&mut self, unit: Unit, session: SessionKey, call: C, memory: u64) {
        let (tenant, memory) = (session.tenant.clone(), memory.saturating_add(OVERHEAD));
        self.remove(&tenant, &unit);
        if memory > TENANT_MEMORY_MAX {
            return;
        }
        let of = self.tenants.entry(tenant.clone()).or_default();
        of.calls.insert(unit, (session, call, memory));
        of.order.push_back(unit);
        of.memory += memory;
        self.memory += memory;
        while self.tenants.get(&tenant).is_some_and(|of| of.memory > TENANT_MEMORY_MAX) {
            self.evict(&tenant);
        }
        while self.memory > MEMORY_MAX
            && let Some(most) =
                self.tenants.iter().max_by_key(|(_, of)| of.memory).map(|(tenant, _)| tenant.clone())
        {
            self.evict(&most);
        }
    }

    fn evict(&mut self, tenant: &Tenant) {
        let oldest = self.tenants.get_mut(tenant).and_then(|of| of.order.pop_front());
        if let Some(oldest) = oldest {
            self.remove(tenant, &oldest);
        }
    }

    /// Takes the call of a unit that this session claimed.
    pub(super) fn take(&mut self, unit: &Unit, session: &SessionKey) -> Option<C> {
        let (claimed, ..) = self.tenants.get(&session.tenant)?.calls.get(unit)?;
        if !is_same(claimed, session) {
            return None;
        }
        self.remove(&session.tenant, unit)
    }

    pub(super) fn remove(&mut self, tenant: &Tenant, unit: &Unit) -> Option<C> {
        let of = self.tenants.get_mut(tenant)?;
        let (_, call, memory) = of.calls.remove(unit)?;
        of.memory -= memory;
        self.memory -= memory;
        // Keys of calls that were taken out would grow without end.
        if of.order.len() > 2 * of.calls.len() {
            let calls = &of.calls;
            of.order.retain(|unit| calls.contains_key(unit));
        }
        if of.calls.is_empty() {
            self.tenants.remove(tenant);
        }
        Some(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::SessionId;

    const KIB: u64 = 1 << 10;

    fn session(tenant: &str, id: u64) -> SessionKey {
        SessionKey { id: SessionId(id), digest: [0; 32], tenant: Tenant::new(tenant), group: None }
    }

    fn unit(number: u64) -> Unit {
        Unit { execution: 1, run: number, fence: number }
    }

    #[test]
    fn calls_of_a_tenant_take_bounded_memory_and_the_newest_stay() {
        let mut calls = Calls::default();
        for number in 0..40 {
            calls.put(unit(number), session("a", 1), number, 1 << 20);
        }
        let kept: Vec<u64> =
            (0..40).filter_map(|number| calls.take(&unit(number), &session("a", 1))).collect();
        assert_eq!(kept, (25..40).collect::<Vec<_>>());
        assert_eq!((calls.tenants.len(), calls.memory), (0, 0), "nothing of it is left");
        calls.put(unit(1), session("a", 1), 1, TENANT_MEMORY_MAX);
        assert_eq!(calls.take(&unit(1), &session("a", 1)), None, "it is rendered again");
    }

    #[test]
    fn calls_of_the_largest_tenant_are_evicted_before_those_of_others() {
        let mut calls = Calls::default();
        calls.put(unit(0), session("small", 1), 0, KIB);
        for tenant in 0..20 {
            for number in 1..100 {
                calls.put(unit(number), session(&format!("large-{tenant}"), 1), number, 200 * KIB);
            }
        }
        assert!(calls.memory <= MEMORY_MAX, "{}", calls.memory);
        assert_eq!(calls.take(&unit(0), &session("small", 1)), Some(0));
    }

    #[test]
    fn only_the_session_that_claimed_a_call_takes_it_and_keys_do_not_pile_up() {
        let mut calls = Calls::default();
        calls.put(unit(1), session("a", 1), 1, KIB);
        assert_eq!(calls.take(&unit(1), &session("a", 2)), None);
        assert_eq!(calls.take(&unit(1), &session("b", 1)), None);
        for number in 2..1_000 {
            calls.put(unit(number), session("a", 1), number, KIB);
            assert_eq!(calls.take(&unit(number), &session("a", 1)), Some(number));
        }
        assert!(calls.tenants[&Tenant::new("a")].order.len() <= 3);
        assert_eq!(calls.take(&unit(1), &session("a", 1)), Some(1));
    }
}
