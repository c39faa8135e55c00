//! JSONPath (RFC 9535). A path of 20 characters can select more positions than there are atoms, so only the limits of
//! the process end its evaluation.

use crate::failure::{failure, invalid, shown};
use serde_json_path::JsonPath;
use std::io::Write;
use windlass_protocol::{Failure, codes};

/// Maximum size of the result of all paths together, as JSON.
pub(crate) const FOUND_BYTES_MAX: usize = 32 * 1024 * 1024;

pub(super) fn check(paths: &[String]) -> Result<Vec<u8>, Box<Failure>> {
    for path in paths {
        parse(path)?;
    }
    Ok(b"null".to_vec())
}

pub(super) fn find(paths: &[String], data: &serde_json::Value) -> Result<Vec<u8>, Box<Failure>> {
    let mut found = vec![b'['];
    for (index, path) in paths.iter().enumerate() {
        separate(&mut found, index);
        found.push(b'[');
        for (index, value) in parse(path)?.query(data).iter().enumerate() {
            separate(&mut found, index);
            let mut bounded = Bounded { to: &mut found };
            serde_json::to_writer(&mut bounded, value).map_err(|_| too_large(path))?;
        }
        found.push(b']');
    }
    found.push(b']');
    Ok(found)
}

fn separate(found: &mut Vec<u8>, index: usize) {
    if index > 0 {
        found.push(b',');
    }
}

fn parse(path: &str) -> Result<JsonPath, Box<Failure>> {
    JsonPath::parse(path).map_err(|error| invalid(format!("`{}` is no JSONPath: {error}", shown(path))))
}

fn too_large(path: &str) -> Box<Failure> {
    let message = format!(
        "`{}` finds more than {FOUND_BYTES_MAX} bytes; use a path that finds less, or take the answer as it is",
        shown(path)
    );
    failure(codes::RESULT_TOO_LARGE, message)
}

/// A writer that refuses to grow beyond the bound.
struct Bounded<'b> {
    to: &'b mut Vec<u8>,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.to.len() + bytes.len() > FOUND_BYTES_MAX {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.to.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn found(paths: &[&str], data: &Value) -> Result<Value, String> {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let found = check(&paths).and_then(|_| find(&paths, data)).map_err(|failure| failure.code)?;
        Ok(serde_json::from_slice(&found).unwrap())
    }

    #[test]
    fn each_path_has_a_list_of_what_it_finds() {
        let data = json!({ "items": [{ "id": 1, "ok": true }, { "id": 2, "ok": false }] });
        let paths = ["$.items[*].id", "$.items[?@.ok == true].id", "$.none[*]", "$..id"];
        assert_eq!(found(&paths, &data), Ok(json!([[1, 2], [1], [], [1, 2]])));
        assert_eq!(found(&["$.items[*"], &data), Err("INVALID_CONFIGURATION".to_owned()));
    }

    #[test]
    fn what_is_found_has_a_bound() {
        let data = json!(vec!["x".repeat(1 << 20); 8]);
        assert_eq!(found(&["$[*]", "$[*]", "$[*]"], &data).unwrap()[2].as_array().unwrap().len(), 8);
        assert_eq!(found(&["$[*]", "$[*]", "$[*]", "$[*]"], &data), Err("RESULT_TOO_LARGE".to_owned()));
    }
}
