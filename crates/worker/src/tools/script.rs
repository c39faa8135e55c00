//! Scripts in any language.
//!
//! | field | meaning |
//! |---|---|
//! | `script` | the path of a file, also as `{uri}`, or `{source: {type: inline, code}}`; a relative one counts from `cwd` |
//! | `code` | in place of `script`: the text |
//! | `interpreter` | the program that runs it; by default it follows from the file extension, else `sh` |
//! | `env`, `cwd`, `timeout_seconds` | as for `shell` |
//! | `args` or `input` | as for `python` for Python; for others a JSON file, whose path is in `WINDLASS_ARGS_FILE` |
//!
//! A Python script is run by the tool `python` and has its result. The result of any other script is that of `shell`.

use super::fields::Fields;
use super::program::Program;
use super::source::{Source, blocking};
use super::{ToolContext, python, shell};
use crate::failure::{failure, invalid};
use crate::halt::Halt;
use crate::pipeline::{Call, CallResult};
use serde_json::{Map, Value, json};
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;
use windlass_protocol::{Failure, Tool, codes};

const TOOL: &str = Tool::Script.kind();

/// Interpreters by file extension.
const ENDINGS: [(&str, &str); 6] =
    [("py", "python3"), ("sh", "sh"), ("bash", "bash"), ("js", "node"), ("rb", "ruby"), ("pl", "perl")];

pub(super) async fn run(call: &Call, cx: &ToolContext, halt: Halt) -> CallResult {
    let script = match Script::read(&call.config) {
        Ok(script) => script,
        Err(failure) => return Err(failure).into(),
    };
    if script.is_python() {
        return python::run(&script.as_python(call), cx, halt).await;
    }
    script.run(&call.args, cx, halt).await.into()
}

struct Script<'c> {
    fields: Fields<'c>,
    source: Source,
    interpreter: String,
    cwd: Option<String>,
}

impl<'c> Script<'c> {
    fn read(config: &'c Map<String, Value>) -> Result<Script<'c>, Box<Failure>> {
        let fields = Fields::of(Tool::Script, config)?;
        let cwd = fields.text("cwd")?;
        let source = match fields.one_of(&["code", "script"])? {
            Some(("code", Value::String(code))) => Source::Inline(code.clone()),
            Some(("script", script)) => Source::read(TOOL, script, cwd.as_deref())?,
            Some((key, other)) => return Err(fields.is_not(key, "a text", other)),
            None => return Err(invalid("script needs `script`, a file, or `code`, a text")),
        };
        let interpreter = fields.text("interpreter")?.unwrap_or_else(|| usual(&source).to_owned());
        Ok(Script { fields, source, interpreter, cwd })
    }

    fn is_python(&self) -> bool {
        let name = Path::new(&self.interpreter).file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("python"))
    }

    /// Returns the equivalent call of the tool `python`.
    fn as_python(&self, call: &Call) -> Call {
        let mut config = call.config.clone();
        config.shift_remove("interpreter");
        config.shift_remove("job");
        config.insert("python".to_owned(), json!(self.interpreter));
        Call { config, ..call.clone() }
    }

    async fn run(&self, args: &Value, cx: &ToolContext, halt: Halt) -> Result<Value, Box<Failure>> {
        let text = self.source.text(TOOL).await?;
        let args = if args.is_null() { json!({}) } else { args.clone() };
        let folder = blocking(move || write(&text, &args)).await.map_err(|error| unusable(&error))?;
        let path = match &self.source {
            Source::Inline(_) => folder.path().join("script"),
            Source::File(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        };
        let mut env = self.fields.env()?;
        env.insert("WINDLASS_ARGS_FILE".to_owned(), folder.path().join("args.json").display().to_string());
        let argv = vec![self.interpreter.as_ref(), path.as_os_str()];
        let cwd = self.cwd.as_deref();
        let program = Program {
            tool: TOOL,
            not_started: codes::SCRIPT_NOT_STARTED,
            argv,
            env: &env,
            unset: &[],
            cwd,
            copies: None,
        };
        shell::read_result(program.run(cx, halt).await?)
    }
}

fn usual(source: &Source) -> &'static str {
    let Source::File(path) = source else { return "sh" };
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENDINGS.iter().find(|(of, _)| *of == ending).map_or("sh", |(_, interpreter)| interpreter)
}

/// Arguments may hold secrets: they are in a folder that only this user can open.
fn write(text: &str, args: &Value) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix("windlass-script-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()?;
    for (name, bytes) in [("script", text.as_bytes()), ("args.json", &serde_json::to_vec(args)?)] {
        let path = folder.path().join(name);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)?;
    }
    Ok(folder)
}

fn unusable(error: &io::Error) -> Box<Failure> {
    let message = format!("the directory of the script cannot be used: {error}");
    let mut failed = failure(codes::SCRIPT_NOT_STARTED, message);
    failed.retryable = Some(true);
    failed
}
