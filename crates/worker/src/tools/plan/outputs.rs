//! Outputs of a step: files that its program wrote, read back, checked and stored.

use super::super::ToolContext;
use super::super::source::blocking;
use super::inputs::{JSON, check_schema};
use super::place::StepPlace;
use super::unusable;
use crate::failure::{failure, invalid};
use crate::folder::{Folder, PRIVATE, is_no_folder};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use windlass_artifact::{Artifact, KeyHasher, is_reference, key_of};
use windlass_protocol::{DRILLED_BYTES_MAX, Failure, PlanStep, StepOutput, codes};
use windlass_secrets::Redactor;

/// Bytes of one output. A larger one belongs to a store of its own.
const OUTPUT_MAX: u64 = 64 << 30;

/// Maximum bytes of a file that are held in memory. A larger one is streamed, and its content is not checked.
const READ_MAX: u64 = DRILLED_BYTES_MAX;

/// Bytes of a stream that are read at once.
const PIECE: usize = 256 * 1024;

/// Share of the inline limit that all outputs of a step have together, so that the result itself stays small.
const INLINE_PARTS: usize = 2;

/// An output as its program wrote it.
enum Written {
    Bytes {
        is_json: bool,
        bytes: Vec<u8>,
    },
    /// The file is too large for memory.
    File(File),
}

/// Reads the declared outputs. One that was not written has its default. Without a default it is absent, which is a failure
/// if it is required.
pub(super) async fn collect(
    place: &StepPlace,
    step: &PlanStep,
    cx: &ToolContext,
) -> Result<Value, Box<Failure>> {
    let mut store = Store::new(cx);
    for output in &step.outputs {
        let (dir, name) = (place.folders.dir.clone(), output.name.clone());
        let written =
            blocking(move || read(&dir, &name)).await.map_err(|error| unreadable(output, &error))?;
        match written {
            None => store.add_default(output).await?,
            Some(Written::Bytes { is_json, bytes }) => store.add(output, is_json, bytes).await?,
            Some(Written::File(file)) => {
                store.add_file(output, file, &place.folders.logs).await?;
            }
        }
    }
    Ok(store.finish())
}

/// Stores outputs of a built-in action.
pub(super) async fn store_values(
    step: &PlanStep,
    mut values: Map<String, Value>,
    cx: &ToolContext,
) -> Result<Value, Box<Failure>> {
    let mut store = Store::new(cx);
    for output in &step.outputs {
        match values.remove(&output.name) {
            Some(value) => store.add_value(output, &value).await?,
            None => store.add_default(output).await?,
        }
    }
    Ok(store.finish())
}

struct Store<'d> {
    cx: &'d ToolContext,
    result: Map<String, Value>,
    inline: usize,
    /// Keys of artifacts, which the report names in case the result itself becomes one.
    keys: Vec<Value>,
}

impl<'d> Store<'d> {
    fn new(cx: &'d ToolContext) -> Store<'d> {
        Store { cx, result: Map::new(), inline: 0, keys: Vec::new() }
    }

    /// Streams a file into an artifact, through a copy in a folder of the worker.
    async fn add_file(
        &mut self,
        output: &StepOutput,
        file: File,
        folder: &Folder,
    ) -> Result<(), Box<Failure>> {
        if output.in_condition {
            return Err(too_large_for_condition(output));
        }
        let name = format!("{}.part", output.name);
        let (redactor, to, part) = (self.cx.kit.keeper.redactor(), folder.clone(), name.clone());
        let copied = blocking(move || copy_redacted(file, to.create_file(&part, PRIVATE)?, redactor)).await;
        let (key, length) = copied.map_err(|error| unusable(&error))?;
        let reference = stored_file(key, length, folder, &name, self.cx).await?;
        self.keys.push(reference.clone());
        self.result.insert(output.name.clone(), reference);
        Ok(())
    }

    async fn add_default(&mut self, output: &StepOutput) -> Result<(), Box<Failure>> {
        match &output.default {
            Some(value) => self.add_value(output, value).await,
            None if output.required => Err(not_written(output)),
            None => Ok(()),
        }
    }

    async fn add_value(&mut self, output: &StepOutput, value: &Value) -> Result<(), Box<Failure>> {
        let bytes = match (value, &output.schema) {
            (Value::String(text), None) => text.clone().into_bytes(),
            _ => value.to_string().into_bytes(),
        };
        self.add(output, output.schema.is_some() || !value.is_string(), bytes).await
    }

    async fn add(&mut self, output: &StepOutput, is_json: bool, bytes: Vec<u8>) -> Result<(), Box<Failure>> {
        let is_json = is_json || output.schema.is_some();
        let length = bytes.len();
        let value = match is_json && length as u64 <= DRILLED_BYTES_MAX {
            true => Some(parse(output, &bytes)?),
            false => std::str::from_utf8(&bytes).ok().filter(|_| !is_json).map(|text| json!(text)),
        };
        if output.in_condition && (value.is_none() || length as u64 > DRILLED_BYTES_MAX) {
            return Err(too_large_for_condition(output));
        }
        let fits = output.in_condition || self.inline + length <= self.cx.inline_bytes / INLINE_PARTS;
        let value = match value.filter(|value| fits && !is_reference(value)) {
            Some(value) => {
                self.inline += length;
                value
            }
            None => {
                let mut stored = store_bytes(redacted(bytes, self.cx).await, self.cx).await?;
                if is_json {
                    stored[JSON] = json!(true);
                }
                self.keys.push(stored.clone());
                stored
            }
        };
        self.result.insert(output.name.clone(), value);
        Ok(())
    }

    fn finish(self) -> Value {
        if !self.keys.is_empty() {
            self.cx.note("artifacts", Value::Array(self.keys));
        }
        Value::Object(self.result)
    }
}

fn not_written(output: &StepOutput) -> Box<Failure> {
    let name = &output.name;
    let message = format!(
        "output `{name}` is required, and the step wrote neither `outputs/{name}` nor `outputs/{name}.json`; write it, or \
         declare a default"
    );
    failure(codes::OUTPUT_INVALID, message)
}

fn too_large_for_condition(output: &StepOutput) -> Box<Failure> {
    let message = format!(
        "output `{}` is read by a condition, so it must be text or JSON of at most {DRILLED_BYTES_MAX} bytes",
        output.name
    );
    failure(codes::VALUE_TOO_LARGE, message)
}

/// Copies a file without values of secrets. Returns the key and the length of the copy.
fn copy_redacted(mut from: File, mut copy: File, redactor: Arc<Redactor>) -> io::Result<(String, u64)> {
    let mut stream = windlass_secrets::Stream::new(redactor);
    let (mut hasher, mut length, mut piece) = (KeyHasher::default(), 0, vec![0; PIECE]);
    let mut write = |given: Vec<u8>| {
        hasher.update(&given);
        length += given.len() as u64;
        copy.write_all(&given)
    };
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            break;
        }
        write(stream.push(&piece[..read]))?;
        if stream.is_full() {
            write(stream.spill())?;
        }
    }
    write(stream.end())?;
    Ok((hasher.finish(), length))
}

/// Returns the key and the length of the rest of a file.
pub(super) fn key_of_file(file: &mut File) -> io::Result<(String, u64)> {
    let (mut hasher, mut length, mut piece) = (KeyHasher::default(), 0, vec![0; PIECE]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((hasher.finish(), length));
        }
        hasher.update(&piece[..read]);
        length += read as u64;
    }
}

/// Moves a file of a folder into an artifact, and returns a reference.
pub(super) async fn stored_file(
    key: String,
    length: u64,
    folder: &Folder,
    name: &str,
    cx: &ToolContext,
) -> Result<Value, Box<Failure>> {
    cx.kit.claim.keep_file(key.clone(), length, folder.at(name)).await?;
    Ok(json!({ windlass_artifact::ARTIFACT: key, "bytes": length }))
}

fn parse(output: &StepOutput, bytes: &[u8]) -> Result<Value, Box<Failure>> {
    let what = format!("output {}", output.name);
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        failure(codes::OUTPUT_INVALID, format!("output `{}` is not JSON: {error}", output.name))
    })?;
    if let Some(schema) = &output.schema {
        check_schema(&what, schema, &value)?;
    }
    Ok(value)
}

/// Artifacts are stored unchanged, so values of secrets are removed before.
async fn redacted(bytes: Vec<u8>, cx: &ToolContext) -> Vec<u8> {
    let redactor = cx.kit.keeper.redactor();
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

async fn store_bytes(bytes: Vec<u8>, cx: &ToolContext) -> Result<Value, Box<Failure>> {
    let (key, length) = (key_of(&bytes), bytes.len());
    cx.kit.claim.keep(vec![Artifact { key: key.clone(), bytes }]).await?;
    Ok(json!({ windlass_artifact::ARTIFACT: key, "bytes": length }))
}

/// Finds `NAME.json`, else `NAME`. A link could lead out of the work dir, and is not followed.
fn read(dir: &Folder, name: &str) -> io::Result<Option<Written>> {
    let folder = match dir.enter("outputs") {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if is_no_folder(&error) => {
            return Err(io::Error::other("outputs/ is not a folder any more"));
        }
        Err(error) => return Err(error),
    };
    for (file, is_json) in [(format!("{name}.json"), true), (name.to_owned(), false)] {
        let Some(file) = folder.open_file(&file)? else { continue };
        let length = file.metadata()?.len();
        if length > OUTPUT_MAX {
            return Err(io::Error::other(format!("it has {length} bytes, more than {OUTPUT_MAX}")));
        }
        if length > READ_MAX {
            return Ok(Some(Written::File(file)));
        }
        let mut bytes = Vec::new();
        file.take(READ_MAX).read_to_end(&mut bytes)?;
        return Ok(Some(Written::Bytes { is_json, bytes }));
    }
    Ok(None)
}

fn unreadable(output: &StepOutput, error: &io::Error) -> Box<Failure> {
    match error.kind() {
        io::ErrorKind::Other => invalid(format!("output `{}` cannot be read: {error}", output.name)),
        _ => unusable(error),
    }
}
