//! Requests that the server itself sends to addresses of tenants: webhooks, notices of dead letters, polls of targets.

use crate::problem::Problem;
use reqwest::{Client, Method, RequestBuilder, Url};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use windlass_worker::egress::{self, Egress};

const CONNECT_MAX: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(crate) struct Outbound {
    egress: Egress,
    /// Built with the first request: reading the certificates of the system takes longer than many executions.
    client: OnceCell<Client>,
}

#[derive(Debug, Clone)]
pub(crate) struct OutboundClient {
    egress: Egress,
    client: Client,
}

impl Outbound {
    pub(crate) fn new(egress: Egress) -> Outbound {
        Outbound { egress, client: OnceCell::new() }
    }

    /// Returns the client. An error is one of this server, not of an address.
    pub(crate) async fn client(&self) -> Result<OutboundClient, Problem> {
        let client = self.client.get_or_try_init(|| self.build()).await?.clone();
        Ok(OutboundClient { egress: self.egress.clone(), client })
    }

    async fn build(&self) -> Result<Client, Problem> {
        let egress = self.egress.clone();
        let built = spawn_blocking(move || egress::client(egress, CONNECT_MAX)).await;
        built.map_err(Problem::internal)?.map_err(Problem::internal)
    }
}

impl OutboundClient {
    /// Begins a request to an address, which must be allowed. Redirects are not followed.
    pub(crate) fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        self.egress.check_host(url.host_str().unwrap_or_default()).map_err(|refused| refused.to_string())?;
        Ok(self.client.request(method, url))
    }
}
