//! Links in responses to other resources of an execution.

use crate::app::App;
use axum::http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use utoipa::ToSchema;
use windlass_kernel::ExecutionId;
use windlass_views::execution_id;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Links {
    #[serde(rename = "self")]
    itself: String,
    status: String,
    logs: String,
    cancel: String,
    /// An absolute URL.
    websocket: String,
}

impl Links {
    pub(crate) fn of(app: &App, headers: &HeaderMap, id: ExecutionId) -> Links {
        let id = execution_id(id);
        let path = format!("/api/v1/executions/{id}");
        Links {
            status: format!("{path}/status"),
            logs: format!("{path}/logs"),
            cancel: format!("{path}/cancel"),
            websocket: format!("{}/ws/executions/{id}", websocket_base(app, headers)),
            itself: path,
        }
    }
}

/// Returns the base URL of WebSockets: from the setting `public-url`, else from the request.
fn websocket_base(app: &App, headers: &HeaderMap) -> String {
    if let Some(url) = &app.settings.public_url {
        return url.trim_end_matches('/').replacen("http", "ws", 1);
    }
    let text = |name: &str| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let forwarded = text("x-forwarded-proto").map(|proto| proto.eq_ignore_ascii_case("https"));
    let scheme = if forwarded.unwrap_or(app.settings.tls.is_some()) { "wss" } else { "ws" };
    let host = text("x-forwarded-host").or_else(|| text(header::HOST.as_str())).map(str::to_owned);
    let own = || app.settings.listen.first().map(ToString::to_string).unwrap_or_default();
    format!("{scheme}://{}", host.filter(|host| is_host(host)).unwrap_or_else(own))
}

/// Reports whether a header value of a client is a host name or an address, with an optional port, and may be part of a link.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_with_a_port_or_without() {
        for good in ["localhost:7070", "api.example.com", "[::1]:80", "10.0.0.1"] {
            assert!(is_host(good), "{good}");
        }
        for bad in ["", "a/b", "a b", "user@host", "a\"b", "é"] {
            assert!(!is_host(bad), "{bad}");
        }
    }
}
