//! `windlass-node`: the client of shell scripts of a node. It uses the socket of the work folder.
//!
//! ```text
//! windlass-node get KEY                   the state of that key as JSON
//! windlass-node set KEY VALUE             the value is on disk when it returns; a value that is not JSON is a string
//! windlass-node log LEVEL MESSAGE [DATA]
//! windlass-node metric NAME [VALUE]       1 by default
//! windlass-node progress PERCENTAGE [STEP]
//! windlass-node input [NAME]              an input as JSON, or all of them
//! ```

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const USAGE: &str = "usage: windlass-node get KEY | set KEY VALUE | log LEVEL MESSAGE [DATA] | metric NAME [VALUE] | \
                     progress PERCENTAGE [STEP] | input [NAME]";

/// Runs a command. Returns the text to print, or the reason of a failure.
pub fn run(args: &[String], variable: impl Fn(&str) -> Option<String>) -> Result<Option<Value>, String> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["input", name @ ..] = &args[..] {
        return input(name, &variable).map(Some);
    }
    let request = request(&args)?;
    let socket = variable("WINDLASS_SOCKET")
        .ok_or("WINDLASS_SOCKET is not set; this program works in scripts of nodes only")?;
    let answer =
        ask(Path::new(&socket), &request).map_err(|error| format!("the worker does not answer: {error}"))?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(error.to_owned()),
        None => Ok((args.first() == Some(&"get")).then(|| answer["ok"].clone())),
    }
}

fn request(args: &[&str]) -> Result<Value, String> {
    Ok(match args {
        ["get", key] => json!({ "op": "get_state", "key": key }),
        ["set", key, value] => json!({ "op": "set_state", "key": key, "value": json_or_text(value) }),
        ["log", level, message] => json!({ "op": "log", "level": level, "message": message }),
        ["log", level, message, data] => {
            json!({ "op": "log", "level": level, "message": message, "data": json_or_text(data) })
        }
        ["metric", name] => json!({ "op": "metric", "name": name, "value": 1 }),
        ["metric", name, value] => json!({ "op": "metric", "name": name, "value": json_or_text(value) }),
        ["progress", percentage] => json!({ "op": "progress", "percentage": json_or_text(percentage) }),
        ["progress", percentage, step] => {
            json!({ "op": "progress", "percentage": json_or_text(percentage), "step": step })
        }
        _ => return Err(USAGE.to_owned()),
    })
}

fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

fn input(name: &[&str], variable: impl Fn(&str) -> Option<String>) -> Result<Value, String> {
    let folder = variable("WINDLASS_CONTEXT")
        .ok_or("WINDLASS_CONTEXT is not set; this program works in scripts of nodes only")?;
    let path = Path::new(&folder).join("inputs.json");
    let read = fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let inputs: Value =
        serde_json::from_slice(&read).map_err(|error| format!("{}: {error}", path.display()))?;
    match name {
        [] => Ok(inputs),
        [name] => inputs.get(*name).cloned().ok_or_else(|| format!("there is no input `{name}`")),
        _ => Err(USAGE.to_owned()),
    }
}

fn ask(socket: &Path, request: &Value) -> std::io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(args: &[&str]) -> Result<Value, String> {
        request(args)
    }

    #[test]
    fn arguments_become_requests_and_texts_need_no_quotes_of_json() {
        assert_eq!(asked(&["set", "k", "{\"a\":1}"]).unwrap()["value"], json!({ "a": 1 }));
        assert_eq!(asked(&["set", "k", "plain text"]).unwrap()["value"], json!("plain text"));
        assert_eq!(asked(&["progress", "40", "half"]).unwrap()["percentage"], json!(40));
        assert_eq!(asked(&["metric", "rows"]).unwrap()["value"], json!(1));
        assert!(asked(&["log", "info"]).unwrap_err().starts_with("usage:"));
        assert!(asked(&[]).is_err());
        let outside = run(&["get".to_owned(), "k".to_owned()], |_| None).unwrap_err();
        assert!(outside.contains("WINDLASS_SOCKET"), "{outside}");
    }
}
