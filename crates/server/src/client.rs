//! The client address of a request. `X-Forwarded-For` is read from trusted proxies only.

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};

/// Headers that only a proxy may send.
const FORWARDED: [HeaderName; 5] = [
    HeaderName::from_static("forwarded"),
    FORWARDED_FOR,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
];
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Address under which a client is counted; an extension of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientAddress(pub IpAddr);

impl ClientAddress {
    /// Finds the client's address. Headers of a proxy that is not trusted are removed, so that later readers can trust them.
    pub(crate) fn of(peer: IpAddr, trusted: &[IpNet], headers: &mut HeaderMap) -> ClientAddress {
        let is_trusted = |address: &IpAddr| trusted.iter().any(|range| range.contains(address));
        let peer = peer.to_canonical();
        if !is_trusted(&peer) {
            FORWARDED.iter().for_each(|name| drop(headers.remove(name)));
            return ClientAddress(client_network(peer));
        }
        // Each proxy appends the address of its peer.
        let lines = headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok());
        let seen: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
        let addresses = seen.iter().rev().map_while(|text| text.parse::<IpAddr>().ok());
        let client = addresses.map(|address| address.to_canonical()).find(|address| !is_trusted(address));
        ClientAddress(client_network(client.unwrap_or(peer)))
    }
}

/// Returns the network of a client: an IPv6 client has at least a /64.
#[must_use]
pub(crate) fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX))),
        four => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn check(peer: &str, forwarded: &[&str], client: &str, kept: usize) {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED_FOR, HeaderValue::from_str(line).unwrap());
        }
        let found = ClientAddress::of(peer.parse().unwrap(), &trusted, &mut headers);
        assert_eq!(found, ClientAddress(client.parse().unwrap()), "{peer} {forwarded:?}");
        assert_eq!(headers.len(), kept);
    }

    #[test]
    fn only_addresses_appended_by_trusted_proxies_are_used() {
        check("192.0.2.1", &["198.51.100.9"], "192.0.2.1", 0);
        check("10.0.0.1", &["198.51.100.9"], "198.51.100.9", 1);
        check("10.0.0.1", &["1.1.1.1, 198.51.100.9", "10.0.0.2"], "198.51.100.9", 2);
        check("10.0.0.1", &["nonsense"], "10.0.0.1", 1);
        check("10.0.0.1", &["198.51.100.9, nonsense"], "10.0.0.1", 1);
        check("::ffff:10.0.0.1", &["198.51.100.9"], "198.51.100.9", 1);
        check("2001:db8::1:2:3:4", &[], "2001:db8::", 0);
        check("fd00::1", &["2001:db8::9"], "2001:db8::", 1);
    }
}
