//! Limits on open connections: in total, and per client address.

use crate::cache::lock;
use crate::client::client_network;
use ipnet::IpNet;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections by the address that they are counted under.
type Counts = Arc<Mutex<HashMap<IpAddr, usize>>>;

#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    all: Arc<Semaphore>,
    max: u32,
    per_address_max: usize,
    by_address: Counts,
    /// Proxies, which have no limit because many clients share them.
    trusted: Vec<IpNet>,
}

/// The slot of one connection; dropping it frees it.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    counted: Option<(IpAddr, Counts)>,
}

impl ConnectionSlots {
    pub(crate) fn new(max: u32, per_address_max: usize, trusted: Vec<IpNet>) -> ConnectionSlots {
        let all = Arc::new(Semaphore::new(max as usize));
        ConnectionSlots { all, max, per_address_max, by_address: Arc::default(), trusted }
    }

    /// Waits until a slot is free.
    pub(crate) async fn next(&self) -> Option<OwnedSemaphorePermit> {
        self.all.clone().acquire_owned().await.ok()
    }

    /// Takes the slot for a client; returns None if its address has reached its limit.
    pub(crate) fn take(&self, permit: OwnedSemaphorePermit, address: IpAddr) -> Option<ConnectionSlot> {
        if self.trusted.iter().any(|range| range.contains(&address.to_canonical())) {
            return Some(ConnectionSlot { _permit: permit, counted: None });
        }
        let address = client_network(address);
        let mut counts = lock(&self.by_address);
        let count = counts.entry(address).or_default();
        if *count >= self.per_address_max {
            return None;
        }
        *count += 1;
        Some(ConnectionSlot { _permit: permit, counted: Some((address, self.by_address.clone())) })
    }

    pub(crate) fn open(&self) -> usize {
        self.max as usize - self.all.available_permits()
    }

    /// Waits until all slots are free, at most for this time. Reports whether they are.
    pub(crate) async fn all_free(&self, within: Duration) -> bool {
        tokio::time::timeout(within, self.all.acquire_many(self.max)).await.is_ok()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Some((address, counts)) = &self.counted else { return };
        let mut counts = lock(counts);
        if let Some(count) = counts.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_has_a_limit_and_a_proxy_has_none() {
        let slots = ConnectionSlots::new(5, 2, vec!["10.0.0.7/32".parse().unwrap()]);
        let take = async |from: &str| slots.take(slots.next().await.unwrap(), from.parse().unwrap());
        let first = take("192.0.2.1").await.unwrap();
        let _second = take("::ffff:192.0.2.1").await.unwrap();
        assert!(take("192.0.2.1").await.is_none(), "the same address in another form");
        drop(first);
        assert!(take("192.0.2.1").await.is_some());
        let _proxied = [take("10.0.0.7").await, take("10.0.0.7").await, take("10.0.0.7").await];
        assert_eq!(slots.open(), 4);
        assert_eq!(lock(&slots.by_address).len(), 1, "an address without connections is not kept");
    }
}
