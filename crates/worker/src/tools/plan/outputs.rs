//! Outputs of a step: files that its program wrote, read back, checked and stored.

use super::super::Desk;
use super::super::source::blocking;
use super::inputs::check_schema;
use super::place::StepPlace;
use super::unusable;
use crate::failure::{failure, invalid};
use serde_json::{Map, Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use windlass_artifact::{Artifact, INLINE_BYTES, is_reference, key_of};
use windlass_protocol::{DRILLED_BYTES_MAX, ErrorClass, Failure, PlanStep, StepOutput};

/// Bytes of one output. It is held in memory on its way to the store.
const OUTPUT_MAX: u64 = 64 << 20;

/// Inline bytes of all outputs of a step together, so that the result itself stays small.
const INLINE_TOTAL: usize = INLINE_BYTES / 2;

/// An output as its program wrote it.
struct Written {
    is_json: bool,
    bytes: Vec<u8>,
}

/// Reads the declared outputs. One that was not written is absent, which is no failure.
pub(super) async fn collect(place: &StepPlace, step: &PlanStep, desk: &Desk) -> Result<Value, Box<Failure>> {
    let mut store = Store::new(desk);
    for output in &step.outputs {
        let (folder, name) = (place.dir.join("outputs"), output.name.clone());
        let written =
            blocking(move || read(&folder, &name)).await.map_err(|error| unreadable(output, &error))?;
        if let Some(written) = written {
            store.add(output, written).await?;
        }
    }
    Ok(store.finish())
}

/// Stores outputs that a built-in action made.
pub(super) async fn store_values(
    step: &PlanStep,
    mut values: Map<String, Value>,
    desk: &Desk,
) -> Result<Value, Box<Failure>> {
    let mut store = Store::new(desk);
    for output in &step.outputs {
        if let Some(value) = values.remove(&output.name) {
            let bytes = match (&value, &output.schema) {
                (Value::String(text), None) => text.clone().into_bytes(),
                _ => value.to_string().into_bytes(),
            };
            store.add(output, Written { is_json: output.schema.is_some(), bytes }).await?;
        }
    }
    Ok(store.finish())
}

/// Returns bytes as text if they are a short one, else a reference to an artifact with them.
pub(super) async fn text_or_artifact(bytes: Vec<u8>, desk: &Desk) -> Result<Value, Box<Failure>> {
    match String::from_utf8(bytes) {
        Ok(text) if text.len() <= INLINE_BYTES => Ok(json!(text)),
        Ok(text) => store_bytes(text.into_bytes(), desk).await,
        Err(error) if error.as_bytes().len() <= INLINE_BYTES => {
            Ok(json!(String::from_utf8_lossy(error.as_bytes())))
        }
        Err(error) => store_bytes(error.into_bytes(), desk).await,
    }
}

struct Store<'d> {
    desk: &'d Desk,
    result: Map<String, Value>,
    inline: usize,
    /// Keys of artifacts, which the report names in case the result itself becomes one.
    keys: Vec<Value>,
}

impl<'d> Store<'d> {
    fn new(desk: &'d Desk) -> Store<'d> {
        Store { desk, result: Map::new(), inline: 0, keys: Vec::new() }
    }

    async fn add(&mut self, output: &StepOutput, written: Written) -> Result<(), Box<Failure>> {
        let Written { is_json, bytes } = written;
        let is_json = is_json || output.schema.is_some();
        let length = bytes.len();
        let value = match is_json && length as u64 <= DRILLED_BYTES_MAX {
            true => Some(parse(output, &bytes)?),
            false => std::str::from_utf8(&bytes).ok().filter(|_| !is_json).map(|text| json!(text)),
        };
        if output.in_condition && (value.is_none() || length as u64 > DRILLED_BYTES_MAX) {
            let message = format!(
                "output `{}` is read by a condition, so it must be text or JSON of at most {DRILLED_BYTES_MAX} bytes",
                output.name
            );
            return Err(failure(ErrorClass::Validation, "VALUE_TOO_LARGE", message));
        }
        let fits = output.in_condition || self.inline + length <= INLINE_TOTAL;
        let value = match value.filter(|value| fits && !is_reference(value)) {
            Some(value) => {
                self.inline += length;
                value
            }
            None => {
                let stored = store_bytes(redacted(bytes, self.desk).await, self.desk).await?;
                self.keys.push(stored.clone());
                stored
            }
        };
        self.result.insert(output.name.clone(), value);
        Ok(())
    }

    fn finish(self) -> Value {
        if !self.keys.is_empty() {
            self.desk.note("artifacts", Value::Array(self.keys));
        }
        Value::Object(self.result)
    }
}

fn parse(output: &StepOutput, bytes: &[u8]) -> Result<Value, Box<Failure>> {
    let what = format!("output {}", output.name);
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        failure(
            ErrorClass::Validation,
            "OUTPUT_INVALID",
            format!("output `{}` is no JSON: {error}", output.name),
        )
    })?;
    if let Some(schema) = &output.schema {
        check_schema(&what, schema, &value)?;
    }
    Ok(value)
}

/// Artifacts are stored as they are, so values of secrets are taken out before.
async fn redacted(bytes: Vec<u8>, desk: &Desk) -> Vec<u8> {
    let redactor = desk.kit.keeper.redactor();
    let search = move || {
        let mut stream = windlass_secrets::Stream::new(redactor);
        let mut given = Vec::with_capacity(bytes.len());
        for piece in bytes.chunks(16 * 1024) {
            given.extend(stream.push(piece));
            if stream.is_full() {
                given.extend(stream.spill());
            }
        }
        given.extend(stream.end());
        Ok(given)
    };
    blocking(search).await.unwrap_or_default()
}

async fn store_bytes(bytes: Vec<u8>, desk: &Desk) -> Result<Value, Box<Failure>> {
    let (key, length) = (key_of(&bytes), bytes.len());
    desk.kit.claim.keep(vec![Artifact { key: key.clone(), bytes }]).await?;
    Ok(json!({ windlass_artifact::ARTIFACT: key, "bytes": length }))
}

/// `NAME.json`, else `NAME`. A link would lead out of the work dir, and is not followed.
fn read(folder: &Path, name: &str) -> io::Result<Option<Written>> {
    for (file, is_json) in [(format!("{name}.json"), true), (name.to_owned(), false)] {
        let path = folder.join(file);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
            Ok(found) if !found.is_file() => return Err(io::Error::other("it is not a file")),
            Ok(found) if found.len() > OUTPUT_MAX => {
                return Err(io::Error::other(format!(
                    "it has {} bytes, more than {OUTPUT_MAX}",
                    found.len()
                )));
            }
            Ok(_) => {}
        }
        let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let file: File = OpenOptions::new().read(true).custom_flags(flags).open(&path)?;
        let mut bytes = Vec::new();
        file.take(OUTPUT_MAX).read_to_end(&mut bytes)?;
        return Ok(Some(Written { is_json, bytes }));
    }
    Ok(None)
}

fn unreadable(output: &StepOutput, error: &io::Error) -> Box<Failure> {
    match error.kind() {
        io::ErrorKind::Other => invalid(format!("output `{}` cannot be read: {error}", output.name)),
        _ => unusable(error),
    }
}
