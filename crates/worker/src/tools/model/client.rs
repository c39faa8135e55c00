//! One request to a model, under the same egress rules as every request of a definition.

use super::Model;
use super::answer::{ModelAnswer, Pieces, whole};
use crate::failure::{self, failure, shown};
use crate::halt::Halt;
use crate::node::NodeContext;
use crate::node::meter::{API_CALLS, TOKENS_USED};
use crate::tools::ToolContext;
use crate::tools::http::retry_after_ms;
use jiff::Timestamp;
use reqwest::Response;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::timeout;
use windlass_protocol::{Failure, Level, codes};
use windlass_secrets::{LOOKAHEAD, Redactor};

/// Time without data after which a server is considered dead.
const SILENCE: Duration = Duration::from_secs(120);
/// Maximum size of an answer.
const ANSWER_MAX: usize = 8 * 1024 * 1024;
/// Maximum bytes of the answer in an error.
const EXCERPT_MAX: usize = 2 * 1024;
/// Bytes that are read for the excerpt: a secret is removed before the text is cut.
const EXCERPT_READ: usize = EXCERPT_MAX + LOOKAHEAD;

impl Model {
    /// Sends one request. Its usage is counted, also when the answer cannot be used.
    pub(super) async fn ask(
        &self,
        body: Map<String, Value>,
        cx: &ToolContext,
        node: &NodeContext,
        mut halt: Halt,
    ) -> Result<ModelAnswer, Box<Failure>> {
        tokio::select! {
            biased;
            _ = halt.requested() => Err(failure::stopped("the request to the model")),
            answer = self.answered(body, cx, node) => {
                let answer = answer?;
                node.meter.add(TOKENS_USED, answer.usage.total);
                Ok(answer)
            }
        }
    }

    async fn answered(
        &self,
        body: Map<String, Value>,
        cx: &ToolContext,
        node: &NodeContext,
    ) -> Result<ModelAnswer, Box<Failure>> {
        let response = self.sent(body, cx, node).await?;
        if !response.status().is_success() {
            return Err(self.by_status(response, &cx.kit.keeper.redactor()).await);
        }
        if self.stream && is_stream(&response) {
            self.streamed(response, cx).await
        } else {
            self.whole(response, &cx.kit.keeper.redactor()).await
        }
    }

    async fn sent(
        &self,
        own: Map<String, Value>,
        cx: &ToolContext,
        node: &NodeContext,
    ) -> Result<Response, Box<Failure>> {
        let mut body = self.settings.clone();
        body.extend(own);
        if self.stream {
            body.insert("stream".to_owned(), json!(true));
            body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
        }
        let clients = &cx.kit.clients;
        let host = self.url.host_str().unwrap_or_default();
        clients.check_host(host).map_err(|refused| {
            failure(codes::EGRESS_REFUSED, format!("the model at {} was not called: {refused}", self.place()))
        })?;
        let client = clients.with(None).await.map_err(|error| failure(codes::HTTP_NOT_STARTED, error))?;
        let mut request = client.post(self.url.clone()).json(&body);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        node.meter.add(API_CALLS, 1);
        match timeout(SILENCE, request.send()).await {
            Ok(sent) => sent.map_err(|error| self.broken(&error)),
            Err(_) => Err(self.silent()),
        }
    }

    async fn whole(&self, mut response: Response, redactor: &Redactor) -> Result<ModelAnswer, Box<Failure>> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut response).await? {
            body.extend_from_slice(&piece);
            if body.len() > ANSWER_MAX {
                return Err(self.not_understood("it is too long", &body, redactor));
            }
        }
        whole(&body).map_err(|error| self.not_understood(&error, &body, redactor))
    }

    /// Writes the text of an answer to the log, line by line while it arrives.
    async fn streamed(&self, mut response: Response, cx: &ToolContext) -> Result<ModelAnswer, Box<Failure>> {
        let redactor = cx.kit.keeper.redactor();
        let (mut pieces, mut rest, mut line, mut length) = (Pieces::default(), Vec::new(), String::new(), 0);
        while let Some(piece) = self.piece(&mut response).await? {
            length += piece.len();
            if length > ANSWER_MAX {
                return Err(self.not_understood("it is too long", &rest, &redactor));
            }
            rest.extend_from_slice(&piece);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let event: Vec<u8> = rest.drain(..=end).collect();
                let text = String::from_utf8_lossy(&event);
                let Some(data) = text.trim_end().strip_prefix("data:") else { continue };
                let brought =
                    pieces.push(data).map_err(|error| self.not_understood(&error, &event, &redactor))?;
                line.push_str(&brought);
                while let Some((whole, next)) = line.split_once('\n') {
                    cx.lines.say(Level::Info, whole, None).await;
                    line = next.to_owned();
                }
            }
            if pieces.over {
                break;
            }
        }
        if !line.is_empty() {
            cx.lines.say(Level::Info, &line, None).await;
        }
        pieces.end().map_err(|error| self.not_understood(&error, &rest, &redactor))
    }

    async fn piece(&self, response: &mut Response) -> Result<Option<Vec<u8>>, Box<Failure>> {
        match timeout(SILENCE, response.chunk()).await {
            Ok(piece) => Ok(piece.map_err(|error| self.broken(&error))?.map(|piece| piece.to_vec())),
            Err(_) => Err(self.silent()),
        }
    }

    async fn by_status(&self, mut response: Response, redactor: &Redactor) -> Box<Failure> {
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while body.len() < EXCERPT_READ
            && let Ok(Some(piece)) = self.piece(&mut response).await
        {
            body.extend_from_slice(&piece);
        }
        let code = match status.as_u16() {
            401 => codes::AUTHENTICATION_FAILED,
            403 => codes::PERMISSION_DENIED,
            404 => codes::RESOURCE_NOT_FOUND,
            408 => codes::NETWORK_TIMEOUT,
            429 => codes::RATE_LIMIT_EXCEEDED,
            503 | 529 => codes::AI_MODEL_BUSY,
            500..=599 => codes::PROVIDER_ERROR,
            _ => codes::VALIDATION_ERROR,
        };
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        let words = answer["error"]["message"].as_str().or(answer["error"].as_str());
        let words = words.map(|words| shown(&redactor.text(words)));
        let words = words.map(|words| format!(": {words}")).unwrap_or_default();
        let message = format!("the model at {} answered with {}{words}", self.place(), status.as_u16());
        let mut failed = failure(code, message);
        failed.retry_after_ms = retry_after_ms(&headers, Timestamp::now());
        failed.details = json!({ "status_code": status.as_u16(), "body": excerpt(&body, redactor) });
        failed.facts.http_status = Some(status.as_u16());
        failed
    }

    fn broken(&self, error: &reqwest::Error) -> Box<Failure> {
        let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
        let refused = causes.clone().find(|cause| cause.is::<crate::egress::Refused>());
        let root = refused.or(causes.last()).map(|cause| shown(&cause.to_string())).unwrap_or_default();
        let message = format!("the model at {} could not be reached: {root}", self.place());
        match () {
            () if refused.is_some() => failure(codes::EGRESS_REFUSED, message),
            () if error.is_timeout() => failure(codes::NETWORK_TIMEOUT, message),
            () => failure(crate::egress::connection_code(error), message),
        }
    }

    fn silent(&self) -> Box<Failure> {
        let message = format!("the model at {} sent no data for {} s", self.place(), SILENCE.as_secs());
        failure(codes::NETWORK_TIMEOUT, message)
    }

    fn not_understood(&self, why: &str, body: &[u8], redactor: &Redactor) -> Box<Failure> {
        let why = shown(&redactor.text(why));
        let message = format!("the answer of the model at {} is not valid: {why}", self.place());
        let mut failed = failure(codes::PROVIDER_ERROR, message);
        failed.details = json!({ "body": excerpt(body, redactor) });
        failed
    }

    /// Returns the URL without the query, which may be secret.
    fn place(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn excerpt(body: &[u8], redactor: &Redactor) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(EXCERPT_READ)]);
    redactor.beginning(&text, EXCERPT_MAX)
}
