//! Addresses that requests of definitions may reach. A definition chooses the destination, and a response may redirect:
//! neither may reach addresses that only this machine or its cloud can reach.
//!
//! | addresses | reached |
//! |---|---|
//! | link-local, cloud metadata, unspecified, multicast, broadcast, reserved | never |
//! | loopback and private ranges | when `allow_private` is set, or `allow` has them |
//! | others | always |
//!
//! The check applies to the address of the connection: a literal one in a URL, or each one that a name resolves to, at
//! the moment of the connection. If a name resolves to another address later, that one is checked again.

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::{EgressRules, FailureCode, codes};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Egress {
    /// Whether all loopback and private ranges are allowed.
    pub allow_private: bool,
    /// Ranges that are allowed if private ones are not. Addresses that are never reached stay blocked.
    pub allow: Vec<IpNet>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a range of addresses; write it as 10.0.0.0/8 or fd00::/8, several with commas between them"
)]
pub struct BadRange(pub String);

/// An address that may not be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub address: IpAddr,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The address is blocked because of its kind.
    Never(&'static str),
    Private(&'static str),
}

impl std::error::Error for Refused {}

/// A name that has no address, or could not be resolved. The message does not repeat the name: a URL has it in lower
/// case, where a secret in it would not be found and redacted.
#[derive(Debug, thiserror::Error)]
#[error("its host name cannot be resolved: {why}")]
pub struct Unresolved {
    pub why: String,
}

/// Returns the code of a connection that failed, by the causes of the error: the name, the address, or the connection.
pub(crate) fn connection_code(error: &(dyn std::error::Error + 'static)) -> FailureCode {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    let code = causes.find_map(|cause| match cause.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => Some(codes::CONNECTION_REFUSED),
        Some(error) => error.get_ref().filter(|inner| inner.is::<Unresolved>()).map(|_| codes::DNS_FAILED),
        None => cause.is::<Unresolved>().then_some(codes::DNS_FAILED),
    });
    code.unwrap_or(codes::CONNECTION_RESET)
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        match self.why {
            Why::Never(kind) => write!(f, "the address {address} is {kind}, which requests may never reach"),
            Why::Private(kind) => write!(
                f,
                "the address {address} is {kind}, and not allowed here; WINDLASS_EGRESS_ALLOW can open its range"
            ),
        }
    }
}

impl Egress {
    /// Reads the rules of an engine. A range that cannot be parsed allows nothing.
    #[must_use]
    pub fn of(rules: &EgressRules) -> Egress {
        let allow = rules.allow.iter().filter_map(|range| range.parse().ok()).collect();
        Egress { allow_private: rules.allow_private, allow }
    }

    /// Returns the rules in the form in which workers get them.
    #[must_use]
    pub fn rules(&self) -> EgressRules {
        let allow = self.allow.iter().map(IpNet::to_string).collect();
        EgressRules { allow_private: self.allow_private, allow }
    }

    /// Adds the ranges of a list: `10.0.0.0/8,fd00::/8`. A single address is a range of one.
    pub fn allowing(mut self, list: &str) -> Result<Egress, BadRange> {
        for range in list.split([',', ' ']).map(str::trim).filter(|range| !range.is_empty()) {
            let parsed = range.parse().or_else(|_| range.parse().map(|address: IpAddr| IpNet::from(address)));
            self.allow.push(parsed.map_err(|_| BadRange(range.to_owned()))?);
        }
        Ok(self)
    }

    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let forms = forms(address);
        let refused = |why: Why| Err(Refused { address, why });
        if let Some(kind) = forms.iter().find_map(|form| never(*form)) {
            return refused(Why::Never(kind));
        }
        let is_closed =
            |form: &&IpAddr| !self.allow_private && !self.allow.iter().any(|range| range.contains(*form));
        match forms.iter().filter(is_closed).find_map(|form| private(*form)) {
            Some(kind) => refused(Why::Private(kind)),
            None => Ok(()),
        }
    }

    /// Checks the host of a URL. A name is checked when it is resolved.
    pub fn check_host(&self, host: &str) -> Result<(), Refused> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        bare.parse().map_or(Ok(()), |address| self.check(address))
    }
}

/// Returns the address, and those that it embeds: an IPv6 address can lead to an IPv4 address.
fn forms(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(six) = address else { return vec![address] };
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    let embedded = match six.segments() {
        // Mapped, compatible (but for :: and ::1, which have kinds of their own), and translated addresses.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => Some(four(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) > (0, 1) => Some(four(high, low)),
        // NAT64, the well-known and the local prefix.
        [0x64, 0xff9b, 0 | 1, .., high, low] => Some(four(high, low)),
        // 6to4.
        [0x2002, high, low, ..] => Some(four(high, low)),
        // Teredo addresses contain it inverted.
        [0x2001, 0, .., high, low] => Some(four(!high, !low)),
        // ISATAP.
        [.., 0 | 0x200, 0x5efe, high, low] => Some(four(high, low)),
        _ => None,
    };
    std::iter::once(address).chain(embedded).collect()
}

fn never(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(four) => never_v4(four),
        IpAddr::V6(six) => never_v6(six),
    }
}

fn never_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [169, 254, ..] => Some("link-local, where clouds keep credentials"),
        // Alibaba, Azure, Oracle.
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => Some("a cloud's metadata service"),
        [0, ..] => Some("unspecified"),
        [224..=239, ..] => Some("multicast"),
        [255, 255, 255, 255] => Some("broadcast"),
        [240..=255, ..] => Some("reserved"),
        _ => None,
    }
}

fn never_v6(address: Ipv6Addr) -> Option<&'static str> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        // Amazon, Google.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            Some("a cloud's metadata service")
        }
        [0xff00..=0xffff, ..] => Some("multicast"),
        _ => None,
    }
}

fn private(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(four) => match four.octets() {
            [127, ..] => Some("loopback"),
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("private"),
            [100, 64..=127, ..] => Some("shared by a provider's customers"),
            [192, 0, 0 | 2, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
                Some("for special purposes")
            }
            _ => None,
        },
        IpAddr::V6(six) => match six.segments() {
            [0, 0, 0, 0, 0, 0, 0, 1] => Some("loopback"),
            [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some("private"),
            [0x100, 0, 0, 0, ..] | [0x2001, 0xdb8, ..] => Some("for special purposes"),
            _ => None,
        },
    }
}

/// Builds a client that connects to allowed addresses only. It follows no redirects: the caller has to check the
/// address in a URL and the target of a redirect.
pub fn client(egress: Egress, connect: Duration) -> reqwest::Result<Client> {
    builder(Resolver::of_system(Arc::new(egress))).connect_timeout(connect).build()
}

/// Returns a builder without the proxies of the environment, which would connect without the resolver.
pub(crate) fn builder(resolver: Resolver) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .no_proxy()
        .dns_resolver(Arc::new(resolver))
}

type Looked = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
type Lookup = dyn Fn(String) -> Looked + Send + Sync;

/// Resolves names for connections, and returns allowed addresses only, so that the checked address is the one that is
/// connected to.
#[derive(Clone)]
pub(crate) struct Resolver {
    egress: Arc<Egress>,
    lookup: Arc<Lookup>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("egress", &self.egress).finish_non_exhaustive()
    }
}

impl Resolver {
    pub(crate) fn of_system(egress: Arc<Egress>) -> Resolver {
        Resolver { egress, lookup: Arc::new(|name| Box::pin(system(name))) }
    }

    #[cfg(test)]
    pub(crate) fn with(
        egress: Arc<Egress>,
        lookup: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static,
    ) -> Resolver {
        let lookup = move |name: String| -> Looked { Box::pin(std::future::ready(Ok(lookup(&name)))) };
        Resolver { egress, lookup: Arc::new(lookup) }
    }
}

async fn system(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Resolver { egress, lookup } = self.clone();
        Box::pin(async move {
            let unresolved = |why: String| Unresolved { why };
            let found = lookup(name.as_str().to_owned()).await;
            let found = found.map_err(|error| unresolved(error.to_string()))?;
            let mut refused = None;
            let mut allowed = Vec::new();
            for address in found {
                match egress.check(address) {
                    // The connector adds the port.
                    Ok(()) => allowed.push(SocketAddr::new(address, 0)),
                    Err(found) => refused = Some(found),
                }
            }
            match (allowed.is_empty(), refused) {
                (true, Some(refused)) => Err(refused.into()),
                (true, None) => Err(unresolved("it has no address".to_owned()).into()),
                (false, _) => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_on(egress: &Egress, address: &str) -> &'static str {
        match egress.check(address.parse().unwrap()) {
            Ok(()) => "allowed",
            Err(Refused { why: Why::Never(_), .. }) => "never",
            Err(Refused { why: Why::Private(_), .. }) => "private",
        }
    }

    fn check(expected: &str, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(verdict_on(&Egress::default(), address), expected, "{address}");
        }
    }

    const NEVER: [&str; 27] = [
        "169.254.169.254",
        "169.254.0.1",
        "169.254.170.2",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "::",
        "fe80::1",
        "febf::1",
        "ff02::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        // Addresses that lead to 169.254.169.254.
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "2001:0:1:2:3:4:5601:5601",
        "2001:470::200:5efe:169.254.169.254",
    ];

    #[test]
    fn some_addresses_are_never_reached_in_no_form_and_by_no_setting() {
        check("never", &NEVER);
        let open = Egress { allow_private: true, allow: vec![] }.allowing("0.0.0.0/0,::/0").unwrap();
        for address in NEVER {
            assert_eq!(verdict_on(&open, address), "never", "{address}");
        }
    }

    const PRIVATE: [&str; 17] = [
        "127.0.0.1",
        "127.9.9.9",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "::1",
        "fc00::1",
        "fd00:ec2::253",
        "fec0::1",
        "::ffff:127.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:7f00:1::",
        "::10.0.0.1",
    ];

    #[test]
    fn private_addresses_are_reached_when_that_is_closed() {
        check("private", &PRIVATE);
        let open = Egress { allow_private: true, allow: vec![] };
        PRIVATE.iter().for_each(|address| assert_eq!(verdict_on(&open, address), "allowed", "{address}"));
    }

    #[test]
    fn a_list_opens_its_ranges_and_no_other() {
        let some = Egress::default().allowing("10.1.0.0/16, 192.168.0.7,fd12::/16").unwrap();
        for address in ["10.1.2.3", "192.168.0.7", "fd12::9", "8.8.8.8"] {
            assert_eq!(verdict_on(&some, address), "allowed", "{address}");
        }
        for address in ["10.2.0.1", "192.168.0.8", "fd13::9", "127.0.0.1"] {
            assert_eq!(verdict_on(&some, address), "private", "{address}");
        }
        assert_eq!(verdict_on(&some, "169.254.169.254"), "never");
        assert_eq!(Egress::of(&some.rules()), some, "an engine sends it to its workers");
        assert_eq!(Egress::default().allowing("10.0.0.0/33"), Err(BadRange("10.0.0.0/33".to_owned())));
        assert_eq!(Egress::default().allowing("localhost"), Err(BadRange("localhost".to_owned())));
        assert_eq!(Egress::default().allowing(" , "), Ok(Egress::default()));
    }

    #[test]
    fn a_mapped_address_is_allowed_by_the_range_of_its_address() {
        let some = Egress::default().allowing("127.0.0.1").unwrap();
        assert_eq!(verdict_on(&some, "::ffff:127.0.0.1"), "allowed");
        assert_eq!(verdict_on(&some, "::ffff:127.0.0.2"), "private");
    }

    #[test]
    fn others_are_reached() {
        check(
            "allowed",
            &[
                "8.8.8.8",
                "1.1.1.1",
                "172.32.0.1",
                "100.128.0.1",
                "2606:4700::1111",
                "64:ff9b::8.8.8.8",
                "2002:808:808::1",
            ],
        );
    }

    #[test]
    fn a_host_is_checked_when_it_is_an_address() {
        let egress = Egress::default();
        assert!(egress.check_host("[::1]").is_err() && egress.check_host("127.0.0.1").is_err());
        assert!(egress.check_host("example.org").is_ok() && egress.check_host("localhost").is_ok());
    }
}
