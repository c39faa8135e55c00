//! The list of steps on a terminal. A frame is one write that replaces changed lines only, so it does not flicker.

use super::board::{Board, Iterations, Row, State};
use super::{Style, TICK};
use crate::embedded::now;
use crate::follow::FollowedItem;
use crate::format::duration;
use rustix::termios::tcgetwinsize;
use std::io::{Write, stderr};
use std::time::Instant;
use windlass_views::{ExecutionStatus, ProgressState, ProgressStep};

/// Number of rows of a terminal whose size is unknown.
const ROWS: usize = 24;
const COLUMNS: usize = 80;
/// Maximum width of a step's name.
const NAME_MAX: usize = 24;
/// Lines are cut at the right margin while a frame is drawn.
const CLIP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
const CLEAR_REST: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

#[derive(Debug)]
pub struct Screen {
    board: Board,
    style: Style,
    /// Lines of the last frame, which is above the cursor.
    drawn: usize,
    next: Instant,
    spin: usize,
}

impl Screen {
    pub fn new(style: Style) -> Screen {
        Screen { board: Board::default(), style, drawn: 0, next: Instant::now(), spin: 0 }
    }

    pub fn add_changes(&mut self, steps: &[ProgressStep], seen: &[FollowedItem], state: &ProgressState) {
        for seen in seen {
            match seen {
                FollowedItem::Line(line) => self.board.line(line),
                FollowedItem::Entry(entry) => self.board.entry(entry),
            }
        }
        self.board.offered(&state.offered);
        self.board.waiting_joins(&state.joins);
        let over = state.status.is_ended();
        if over || Instant::now() >= self.next {
            self.next = Instant::now() + TICK;
            self.draw(steps, state);
        }
    }

    pub fn end(self) {
        let _ = stderr().flush();
    }

    fn draw(&mut self, steps: &[ProgressStep], state: &ProgressState) {
        self.spin += 1;
        let (rows, columns) = size();
        let room = rows.saturating_sub(2).max(1);
        let mut lines = vec![self.title(state)];
        // A step that has not fired when the execution ends will not fire.
        let coming = if state.status.is_ended() { Vec::new() } else { self.board.coming(steps) };
        let rows: Vec<&Row> = self.board.rows().iter().chain(&coming).collect();
        let (shown, hidden) = visible(&rows, room.saturating_sub(2));
        let name_width = shown.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).min(NAME_MAX);
        lines.extend(shown.iter().map(|row| self.row(row, name_width, columns)));
        if hidden > 0 {
            lines.push(self.style.dim(&format!("  … and {hidden} more")));
        }
        let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        let body: String = lines.iter().map(|line| format!("{line}{CLEAR_REST}\r\n")).collect();
        // A failed write is ignored: the terminal is closed.
        let _ = stderr().write_all(format!("{CLIP}\r{up}{body}{CLEAR_BELOW}{WRAP}").as_bytes());
        self.drawn = lines.len();
    }

    fn title(&self, state: &ProgressState) -> String {
        let status = state.status;
        let end = if status.is_ended() { state.updated_at } else { now() };
        let took = self.board.started_at.map(|from| duration(end.since(from))).unwrap_or_default();
        let word = status.word();
        let word = match status {
            ExecutionStatus::Completed => self.style.green(word),
            ExecutionStatus::Paused => self.style.yellow(word),
            status if status.is_ended() => self.style.red(word),
            _ => word.to_owned(),
        };
        let word = if state.held { format!("{word} (held)") } else { word };
        format!("{word} {}", self.style.dim(&took))
    }

    fn row(&self, row: &Row, name_width: usize, columns: usize) -> String {
        let mark = self.mark(row.state);
        let name = fit(&row.name, name_width);
        let count = match (row.iterations, row.firings) {
            (Some(Iterations { ended, total: Some(total), .. }), _) => format!(" {ended}/{total}"),
            (Some(Iterations { ended, total: None, .. }), _) => format!(" {ended}"),
            (None, 2..) => format!(" ×{}", row.firings),
            (None, _) => String::new(),
        };
        let failed = row.iterations.map(|iterations| iterations.failed).filter(|failed| *failed > 0);
        let failed = failed.map(|failed| format!("{failed} failed  ")).unwrap_or_default();
        let end = row.ended_at.unwrap_or_else(now);
        let took = row.began_at.filter(|_| !matches!(row.state, State::Waiting | State::Coming));
        let took = took.map(|began| duration(end.since(began))).unwrap_or_default();
        let left = format!("{name:name_width$}{count:>6} {took:>11}");
        // The last column stays free: clearing the rest of a line that reaches it would clear its last character.
        let room = columns.saturating_sub(left.chars().count() + 7);
        let last = fit(&format!("{failed}{}", row.last), room);
        let last = if row.has_failed { self.style.red(&last) } else { self.style.dim(&last) };
        format!("  {mark} {left}  {last}")
    }

    fn mark(&self, state: State) -> String {
        const SPINNER: [&str; 4] = ["◐", "◓", "◑", "◒"];
        match state {
            State::Coming => self.style.dim("○"),
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

/// Returns the number of rows of the terminal.
pub fn terminal_rows() -> usize {
    size().0
}

fn size() -> (usize, usize) {
    match tcgetwinsize(stderr()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row.into(), size.ws_col.into()),
        _ => (ROWS, COLUMNS),
    }
}

/// Returns the rows that fit: running, failed and live steps and the next step; then the newest of the others. All of
/// them are in their order.
fn visible<'r>(rows: &[&'r Row], room: usize) -> (Vec<&'r Row>, usize) {
    if rows.len() <= room {
        return (rows.to_vec(), 0);
    }
    let next = rows.iter().position(|row| row.state == State::Coming);
    let rank = |place: usize, row: &Row| match row.state {
        State::Running => 0,
        State::Failed => 1,
        State::Coming if Some(place) != next => 5,
        State::Coming => 3,
        _ if row.live > 0 => 2,
        _ => 4,
    };
    let order = |place: usize| match rows[place].state {
        State::Coming => place,
        _ => usize::MAX - place,
    };
    let mut by_worth: Vec<usize> = (0..rows.len()).collect();
    by_worth.sort_by_key(|place| (rank(*place, rows[*place]), order(*place)));
    by_worth.truncate(room);
    by_worth.sort_unstable();
    (by_worth.iter().map(|place| rows[*place]).collect(), rows.len() - room)
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
    fn what_lives_and_what_failed_is_shown_before_what_is_over() {
        let (over, waits, coming) = (State::Done, State::Waiting, State::Coming);
        let rows = [
            row("a", 1, State::Running),
            row("b", 0, State::Failed),
            row("c", 0, over),
            row("d", 0, over),
            row("e", 1, waits),
            row("f", 0, coming),
            row("g", 0, coming),
        ];
        let rows: Vec<&Row> = rows.iter().collect();
        let check = |room: usize, expected: &[&str], hidden: usize| {
            let (shown, more) = visible(&rows, room);
            let names: Vec<&str> = shown.iter().map(|row| row.name.as_str()).collect();
            assert_eq!((&names[..], more), (expected, hidden), "room {room}");
        };
        check(9, &["a", "b", "c", "d", "e", "f", "g"], 0);
        check(5, &["a", "b", "d", "e", "f"], 2);
        check(4, &["a", "b", "e", "f"], 3);
        check(3, &["a", "b", "e"], 4);
        check(1, &["a"], 6);
    }

    #[test]
    fn a_text_is_cut_by_characters() {
        assert_eq!(fit("händler", 7), "händler");
        assert_eq!(fit("händler", 3), "hä…");
        assert_eq!(fit("x", 0), "");
    }
}
