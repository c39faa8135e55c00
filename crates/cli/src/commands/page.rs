//! `windlass page`: a link to the web page of a server.

use super::report::print_json;
use crate::api::{ApiTarget, Need};
use crate::exit::Usage;
use crate::progress::say;
use reqwest::Method;
use serde_json::json;
use std::io::{Write, stdout};
use std::process::ExitCode;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass page";

/// Print a link that opens the web page of a server and signs you in
///
/// The link works once, within 15 minutes.
#[derive(Debug, clap::Args)]
pub struct Page {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: ApiTarget,
}

impl Page {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let no_server = || {
            Usage::new("no server runs in this data folder".to_owned())
                .hint("start one with `windlass serve`, or name one with --url")
        };
        let url = self.target.browser_url().ok_or_else(no_server)?;
        let send = (COMMAND, Need::Read);
        let link = self
            .target
            .with(send, |client| Ok(client.send(Method::POST, &["session", "link"], &json!({}))?))?;
        let url = format!("{}{}", url.trim_end_matches('/'), link["path"].as_str().unwrap_or_default());
        if self.json {
            print_json(&json!({ "url": url, "expiresAt": link["expiresAt"] }))?;
        } else {
            writeln!(stdout(), "{url}")?;
            say("the link works once, within 15 minutes");
        }
        Ok(ExitCode::SUCCESS)
    }
}
