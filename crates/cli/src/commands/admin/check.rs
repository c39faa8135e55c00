//! `windlass admin check`.

use crate::commands::counted;
use crate::commands::report::print_json;
use crate::data::Data;
use crate::exit;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::vault::LocalVault;
use windlass_store::AuditSeal;
use windlass_store::check::{self, Problem, Report};
use windlass_views::execution_id;

/// Time between two progress lines on a terminal.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Check the integrity of everything in the data folder
///
/// Opens every row of every journal, replays every execution, and compares the result with the rows that are derived
/// from it. Entries of the audit log are compared with their seals, for which the master key is needed. Nothing is
/// changed. An engine may run at the same time; its new rows are read, too. The exit code is 1 if there is a problem.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Check {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        let mut reader = data.read()?;
        let mut report = check::check(&mut reader, &mut progress())?;
        match audit_seal(data) {
            Ok(Some(seal)) => report.problems.extend(reader.check_audit(&seal)?),
            Ok(None) => {}
            Err(error) => report.problems.push(Problem {
                execution: None,
                version: None,
                table: "audit",
                what: format!("its seals cannot be checked: {error:#}"),
            }),
        }
        if stderr().is_terminal() {
            let _ = write!(stderr(), "\r\x1b[K");
        }
        if self.json {
            print_json(&as_json(&report))?;
        } else {
            print(&report)?;
        }
        Ok(ExitCode::from(if report.is_sound() { exit::COMPLETED } else { exit::FAILED }))
    }
}

/// Returns the key of the audit log; None if the folder has none.
fn audit_seal(data: &Data) -> anyhow::Result<Option<Arc<AuditSeal>>> {
    LocalVault::of(data.folder(), EngineSecrets::from_environment())?.audit_seal()
}

/// Reports progress on a terminal.
fn progress() -> impl FnMut(&Report) {
    let mut next = stderr().is_terminal().then(Instant::now);
    move |report| {
        if next.is_some_and(|next| Instant::now() >= next) {
            next = Some(Instant::now() + TELL_EVERY);
            let _ = write!(stderr(), "\r{}\x1b[K", format_counts(report));
        }
    }
}

fn format_counts(report: &Report) -> String {
    let executions = counted(report.executions, "execution");
    let rows = counted(report.journal_rows, "journal row");
    format!("{executions}, {rows}, {}", counted(report.records, "record"))
}

fn print(report: &Report) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for problem in &report.problems {
        writeln!(out, "{problem}")?;
    }
    let problems = report.problems.len() as u64 + report.more;
    let found = if problems == 0 { "no problem".to_owned() } else { counted(problems, "problem") };
    writeln!(out, "{}: {found}", format_counts(report))?;
    Ok(())
}

fn as_json(report: &Report) -> Value {
    let problem = |problem: &Problem| {
        json!({
            "executionId": problem.execution.map(execution_id),
            "version": problem.version,
            "table": problem.table,
            "what": problem.what,
        })
    };
    json!({
        "executions": report.executions,
        "journalRows": report.journal_rows,
        "records": report.records,
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
        "problemsNotListed": report.more,
    })
}
