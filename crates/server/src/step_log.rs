//! Output of a step-run from the lines of its log, for steps whose worker has not reported it: those that run, were
//! cancelled, or lost their worker.

use std::collections::VecDeque;
use windlass_kernel::{ExecutionId, RunId};
use windlass_protocol::{Line, Stream};
use windlass_store::{Position, Reader, StoreError};

/// Chunks of the log that are read at a time.
const PAGE: usize = 16;

/// Limits of one read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogBounds {
    /// Maximum bytes of the log that are read.
    pub read_max: usize,
    /// Maximum bytes of text that are returned of each stream, apart from the mark of a cut.
    pub text_max: usize,
}

/// Text of both streams.
#[derive(Debug)]
pub(crate) struct StepLog {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Bytes of the log that were read.
    pub read: usize,
}

/// Reads the output of a step-run. What is longer than the bounds is cut, with a mark.
pub(crate) fn read_step_log(
    reader: &mut impl Reader,
    execution: ExecutionId,
    run: RunId,
    bounds: LogBounds,
) -> Result<StepLog, StoreError> {
    let (mut stdout, mut stderr) = (CutText::new(bounds.text_max), CutText::new(bounds.text_max));
    let (mut after, mut read) = (Position(0), 0);
    loop {
        let chunks = reader.run_logs(execution, run, after, PAGE)?;
        let is_last = chunks.len() < PAGE;
        for chunk in chunks {
            after = chunk.position;
            read += chunk.lines.len();
            let lines: Vec<Line> = serde_json::from_slice(&chunk.lines)
                .map_err(|error| StoreError::Corrupt(error.to_string()))?;
            for line in lines {
                match line.stream {
                    Stream::Out => stdout.push_line(&line.text),
                    Stream::Err => stderr.push_line(&line.text),
                    Stream::Worker => {}
                }
            }
        }
        let is_over = read >= bounds.read_max;
        if is_last || is_over {
            let is_whole = is_last;
            return Ok(StepLog { stdout: stdout.finish(is_whole), stderr: stderr.finish(is_whole), read });
        }
    }
}

/// The beginning and the end of a text.
struct CutText {
    begin: Vec<u8>,
    end: VecDeque<u8>,
    omitted: usize,
    /// Maximum bytes of each of both.
    part_max: usize,
}

impl CutText {
    fn new(text_max: usize) -> CutText {
        CutText { begin: Vec::new(), end: VecDeque::new(), omitted: 0, part_max: text_max / 2 }
    }

    fn push_line(&mut self, text: &str) {
        self.push(text.as_bytes());
        self.push(b"\n");
    }

    fn push(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(self.part_max - self.begin.len());
        self.begin.extend_from_slice(&bytes[..fits]);
        self.end.extend(&bytes[fits..]);
        let excess = self.end.len().saturating_sub(self.part_max);
        self.end.drain(..excess);
        self.omitted += excess;
    }

    /// Returns the text. If it is not whole, its end is not known.
    fn finish(mut self, is_whole: bool) -> Vec<u8> {
        if !is_whole {
            self.begin.extend_from_slice("\n[… the rest is omitted …]\n".as_bytes());
            return self.begin;
        }
        if self.omitted > 0 {
            self.begin.extend(format!("\n[… {} bytes omitted …]\n", self.omitted).into_bytes());
        }
        self.begin.extend(self.end);
        self.begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(lines: &[&str], is_whole: bool) -> String {
        let mut text = CutText::new(10);
        lines.iter().for_each(|line| text.push_line(line));
        String::from_utf8(text.finish(is_whole)).expect("text")
    }

    #[test]
    fn a_text_is_whole_up_to_its_limit_and_then_has_its_begin_a_mark_and_its_end() {
        assert_eq!(cut(&[], true), "");
        assert_eq!(cut(&["one", "four"], true), "one\nfour\n");
        assert_eq!(cut(&["one", "two", "three"], true), "one\nt\n[… 4 bytes omitted …]\nhree\n");
        assert_eq!(cut(&["one", "two", "three"], false), "one\nt\n[… the rest is omitted …]\n");
    }
}
