//! The list of steps on a terminal. A frame is one write: what changed is drawn over what was there, so nothing
//! flickers.

use super::board::{Board, Row, State};
use super::{Style, TICK};
use crate::embedded::now;
use crate::format::{duration, failure};
use rustix::termios::tcgetwinsize;
use std::io::{Write, stderr};
use std::time::Instant;
use windlass_kernel::{Execution, Net, Outcome, Phase};
use windlass_server::follow::Seen;
use windlass_views::{ExecutionChange, Leases, Occurrence, status};

/// Rows on a terminal that does not tell its size.
const ROWS: usize = 24;
const COLUMNS: usize = 80;
/// Of a step's name.
const NAME_MAX: usize = 24;
/// Lines go up to the right margin and no further, while a frame is drawn.
const CLIP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const CLEAR_REST: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

#[derive(Debug)]
pub struct Screen {
    board: Board,
    style: Style,
    /// Lines of the last frame, which the cursor stands below.
    drawn: usize,
    next: Instant,
    head: String,
    spin: usize,
}

impl Screen {
    pub fn new(style: Style) -> Screen {
        Screen {
            board: Board::default(),
            style,
            drawn: 0,
            next: Instant::now(),
            head: String::new(),
            spin: 0,
        }
    }

    pub fn tell(&mut self, net: &Net, seen: &[Seen], state: &Execution<'_>, leases: &Leases) {
        for seen in seen {
            match seen {
                Seen::Line(line) => self.board.line(line),
                Seen::Record(followed) => {
                    self.board.record(net, &followed.entry);
                    if let Occurrence::Execution(ExecutionChange::Ended { failure: Some(why), .. }) =
                        &followed.entry.occurrence
                    {
                        self.head = failure(why);
                    }
                }
            }
        }
        self.board.taken(state, leases);
        let over = state.phase().is_ended();
        if over || Instant::now() >= self.next {
            self.next = Instant::now() + TICK;
            self.draw(state);
        }
    }

    pub fn end(self) {
        let _ = stderr().flush();
    }

    fn draw(&mut self, state: &Execution<'_>) {
        self.spin += 1;
        let (rows, columns) = size();
        let room = rows.saturating_sub(2).max(1);
        let mut lines = vec![self.title(state)];
        let (shown, hidden) = visible(self.board.rows(), room.saturating_sub(2));
        let name_width = shown.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(NAME_MAX);
        lines.extend(shown.iter().map(|row| self.row(row, name_width, columns)));
        if hidden > 0 {
            lines.push(self.style.dim(&format!("  … and {hidden} more")));
        }
        let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        let body: String = lines.iter().map(|line| format!("{line}{CLEAR_REST}\r\n")).collect();
        // Whoever closed the terminal does not look at it.
        let _ = stderr().write_all(format!("{CLIP}\r{up}{body}{CLEAR_BELOW}{WRAP}").as_bytes());
        self.drawn = lines.len();
    }

    fn title(&self, state: &Execution<'_>) -> String {
        let phase = state.phase();
        let end = if phase.is_ended() { state.head.at } else { now() };
        let took = self.board.started_at.map(|from| duration(end.since(from))).unwrap_or_default();
        let word = status(phase);
        let word = match phase {
            Phase::Ended(Outcome::Completed) => self.style.green(word),
            Phase::Ended(_) => self.style.red(word),
            Phase::Paused => self.style.yellow(word),
            _ => word.to_owned(),
        };
        let word = if state.head.held { format!("{word} (held)") } else { word };
        let why = if self.head.is_empty() { String::new() } else { format!("  {}", self.head) };
        format!("{word} {}{why}", self.style.dim(&took))
    }

    fn row(&self, row: &Row, name_width: usize, columns: usize) -> String {
        let mark = self.mark(row.state);
        let name = fit(&row.name, name_width);
        let count = match (row.iterations, row.firings) {
            (Some((ended, Some(total))), _) => format!(" {ended}/{total}"),
            (Some((ended, None)), _) => format!(" {ended}"),
            (None, 2..) => format!(" ×{}", row.firings),
            (None, _) => String::new(),
        };
        let end = row.ended_at.unwrap_or_else(now);
        let took = row.began_at.filter(|_| row.state != State::Waiting);
        let took = took.map(|began| duration(end.since(began))).unwrap_or_default();
        let left = format!("{name:name_width$}{count:>6} {took:>11}");
        // The last column stays free: clearing the rest of a line that reaches it would clear its last character.
        let room = columns.saturating_sub(left.chars().count() + 7);
        let last = fit(&row.last, room);
        let last = if row.state == State::Failed { self.style.red(&last) } else { self.style.dim(&last) };
        format!("  {mark} {left}  {last}")
    }

    fn mark(&self, state: State) -> String {
        const SPINNER: [&str; 4] = ["◐", "◓", "◑", "◒"];
        match state {
            State::Waiting => self.style.dim("·"),
            State::Gated => self.style.yellow("‖"),
            State::Running => SPINNER[self.spin / 2 % SPINNER.len()].to_owned(),
            State::Retrying => self.style.yellow("↻"),
            State::Done => self.style.green("✓"),
            State::Failed => self.style.red("✗"),
            State::Skipped => self.style.dim("–"),
            State::Cancelled => self.style.yellow("✗"),
        }
    }
}

fn size() -> (usize, usize) {
    match tcgetwinsize(stderr()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row.into(), size.ws_col.into()),
        _ => (ROWS, COLUMNS),
    }
}

/// What fits: rows that run first, then those that live, then the newest of the others; all of them in their order.
fn visible(rows: &[Row], room: usize) -> (Vec<&Row>, usize) {
    if rows.len() <= room {
        return (rows.iter().collect(), 0);
    }
    let mut by_worth: Vec<usize> = (0..rows.len()).collect();
    let worth = |row: &Row| (row.state != State::Running, row.live == 0);
    by_worth.sort_by_key(|place| (worth(&rows[*place]), std::cmp::Reverse(*place)));
    by_worth.truncate(room);
    by_worth.sort_unstable();
    (by_worth.iter().map(|place| &rows[*place]).collect(), rows.len() - room)
}

fn fit(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept = text.chars().take(room.saturating_sub(1));
    kept.chain(std::iter::once('…')).take(room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, live: u32, state: State) -> Row {
        Row { live, state, ..Row::new(name.to_owned()) }
    }

    #[test]
    fn what_lives_is_shown_before_what_is_over() {
        let (over, waits) = (State::Done, State::Waiting);
        let rows = [
            row("a", 1, State::Running),
            row("b", 1, waits),
            row("c", 0, over),
            row("d", 0, over),
            row("e", 1, waits),
        ];
        let check = |room: usize, expected: &[&str], hidden: usize| {
            let (shown, more) = visible(&rows, room);
            let names: Vec<&str> = shown.iter().map(|row| row.name.as_str()).collect();
            assert_eq!((&names[..], more), (expected, hidden), "room {room}");
        };
        check(9, &["a", "b", "c", "d", "e"], 0);
        check(4, &["a", "b", "d", "e"], 1);
        check(2, &["a", "e"], 3);
        check(1, &["a"], 4);
    }

    #[test]
    fn a_text_is_cut_by_characters() {
        assert_eq!(fit("händler", 7), "händler");
        assert_eq!(fit("händler", 3), "hä…");
        assert_eq!(fit("x", 0), "");
    }
}
