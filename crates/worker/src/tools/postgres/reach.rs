//! Servers that statements may reach: the same as for requests. A name is resolved once, so that the checked address is
//! the one that is connected to.

use super::config::PostgresServer;
use super::errors::PostgresError;
use crate::egress::{Egress, Refused};
use crate::failure::failure;
use std::net::{IpAddr, Ipv4Addr};
use tokio::net::lookup_host;
use tokio_postgres::Config;
use tokio_postgres::config::Host;
use windlass_protocol::codes;

const PORT: u16 = 5432;
/// Address that is checked for a directory of sockets, which is on this machine.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Returns the server with addresses instead of names, each of which may be reached.
pub(super) async fn allowed(place: &PostgresServer, egress: &Egress) -> Result<Config, PostgresError> {
    let mut config = place.config.clone();
    let hosts = place.config.get_hosts();
    let mut addresses = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        match host {
            Host::Unix(_) => egress.check(HERE).map_err(|refused| not_allowed(&refused))?,
            Host::Tcp(name) => addresses.push(address(name, port(&place.config, number), egress).await?),
        }
    }
    if addresses.len() == hosts.len() {
        for address in addresses {
            config.hostaddr(address);
        }
    }
    Ok(config)
}

fn port(config: &Config, number: usize) -> u16 {
    let ports = config.get_ports();
    ports.get(number).or(ports.first()).copied().unwrap_or(PORT)
}

async fn address(name: &str, port: u16, egress: &Egress) -> Result<IpAddr, PostgresError> {
    let found = lookup_host((name, port)).await.map_err(|error| {
        let message = format!("no connection to postgres: the name `{name}` cannot be resolved: {error}");
        failure(codes::DNS_FAILED, message)
    })?;
    let mut refused = None;
    for address in found.map(|address| address.ip()) {
        match egress.check(address) {
            Ok(()) => return Ok(address),
            Err(why) => refused = Some(why),
        }
    }
    Err(refused.map_or_else(
        || failure(codes::DNS_FAILED, format!("no connection to postgres: {name} has no address")).into(),
        |refused| not_allowed(&refused),
    ))
}

fn not_allowed(refused: &Refused) -> PostgresError {
    failure(codes::EGRESS_REFUSED, format!("no connection to postgres is made: {refused}")).into()
}
