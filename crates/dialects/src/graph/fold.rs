//! Columns: a picture that is taller than a screen continues at the top of the next column.
//!
//! Ranks are cut where few edges cross. An edge that crosses a cut leaves its column at the bottom, runs up between the
//! columns, and enters the next one from above.

use super::layout::{MARGIN, Point, Spot};
use std::collections::BTreeMap;

/// Height of a column: it fits the window of a browser on a usual screen.
const HEIGHT_MAX: f64 = 860.0;
/// A picture that is hardly taller is easier to scroll than to follow from column to column.
const TALL: f64 = 1.25 * HEIGHT_MAX;
/// Maximum number of edges between two columns; more are harder to follow than a long picture.
const CROSSING_MAX: usize = 2;
/// Space between columns, for the edges that run there.
const GUTTER: f64 = 56.0;
const LANE: f64 = 9.0;

/// Position of each rank.
pub(super) struct Columns {
    /// The column of each rank, and the middle of the rank.
    ranks: Vec<(usize, f64)>,
    columns: Vec<Column>,
    /// Number of an edge among those that cross a cut, by the column above the cut and the chain.
    lanes: BTreeMap<(usize, usize), usize>,
}

struct Column {
    /// Added to every x in it.
    shift: f64,
    right: f64,
    bottom: f64,
}

/// `heights` has the middle and the height of every rank.
pub(super) fn fold(
    spots: &[Spot],
    chains: &[Vec<usize>],
    order: &[Vec<usize>],
    heights: &[(f64, f64)],
) -> Columns {
    let mut crossing = vec![Vec::new(); order.len()];
    for (number, chain) in chains.iter().enumerate() {
        let (first, last) = (spots[chain[0]].rank, spots[chain[chain.len() - 1]].rank);
        for rank in crossing.iter_mut().take(last).skip(first).filter(|rank| rank.len() <= CROSSING_MAX) {
            rank.push(number);
        }
    }
    let cuts = cuts(heights, &crossing);
    let mut columns = Columns { ranks: Vec::new(), columns: Vec::new(), lanes: BTreeMap::new() };
    let mut x = MARGIN;
    for (number, (first, end)) in cuts.iter().enumerate() {
        let top = heights[*first].0 - heights[*first].1 / 2.0;
        columns.ranks.extend(heights[*first..*end].iter().map(|(middle, _)| (number, middle - top + MARGIN)));
        let inside = order[*first..*end].iter().flatten().map(|spot| &spots[*spot]);
        let (left, right) = inside.fold((f64::INFINITY, f64::NEG_INFINITY), |(left, right), spot| {
            (left.min(spot.x - spot.left), right.max(spot.x + spot.right))
        });
        let (middle, tall) = heights[end - 1];
        // A net without steps has no ends.
        let (left, right) = if left <= right { (left, right) } else { (0.0, 0.0) };
        let shift = x - left;
        columns.columns.push(Column {
            shift,
            right: right + shift,
            bottom: middle + tall / 2.0 - top + MARGIN,
        });
        x = right + shift + GUTTER;
        for (lane, chain) in crossing[end - 1].iter().enumerate().filter(|_| *end < order.len()) {
            columns.lanes.insert((number, *chain), lane);
        }
    }
    columns
}

/// Returns the first rank of every column, and the one after its last.
fn cuts(heights: &[(f64, f64)], crossing: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let top = |rank: usize| heights[rank].0 - heights[rank].1 / 2.0;
    let bottom = |rank: usize| heights[rank].0 + heights[rank].1 / 2.0;
    let count = heights.len();
    if count == 0 {
        return Vec::new();
    }
    let whole = bottom(count - 1);
    if whole <= TALL {
        return vec![(0, count)];
    }
    let crossing_max = if whole > 2.0 * HEIGHT_MAX { CROSSING_MAX } else { 1 };
    // Columns of one height look better than a short rest.
    let tall = whole / (whole / HEIGHT_MAX).ceil();
    let mut found = Vec::new();
    let mut first = 0;
    let mut last_chance = None;
    for (rank, crossing) in crossing.iter().enumerate() {
        if bottom(rank) - top(first) > tall + 1.0
            && let Some(end) = last_chance.take()
        {
            found.push((first, end));
            first = end;
        }
        // Cut after a rank of nodes, so that a label is in the column of its target.
        if rank % 2 == 0 && rank + 1 < count && crossing.len() <= crossing_max {
            last_chance = Some(rank + 1);
        }
    }
    found.push((first, count));
    found
}

impl Columns {
    pub(super) fn place(&self, spot: &Spot) -> Point {
        let (column, y) = self.ranks[spot.rank];
        Point { x: spot.x + self.columns[column].shift, y }
    }

    /// Returns the width and height of everything, with a margin.
    pub(super) fn size(&self) -> (f64, f64) {
        let width = self.columns.iter().map(|column| column.right).fold(0.0, f64::max);
        let height = self.columns.iter().map(|column| column.bottom).fold(0.0, f64::max);
        (width + MARGIN, height + MARGIN)
    }

    /// Returns the lines from one column to the next; None within a column.
    pub(super) fn lines(
        &self,
        upper: usize,
        lower: usize,
        chain: usize,
        from: Point,
        to: Point,
    ) -> Option<Vec<Point>> {
        let (above, below) = (self.ranks[upper].0, self.ranks[lower].0);
        if above == below {
            return None;
        }
        let lane = |column: usize| self.lanes.get(&(column, chain)).map_or(0.0, |lane| *lane as f64 * LANE);
        let column = &self.columns[above];
        let (down, up) = (column.bottom + 8.0 + lane(above) / 2.0, MARGIN - 14.0 + lane(below - 1) / 2.0);
        // An edge over several columns passes under those between.
        let under = self.columns[above..below].iter().map(|column| column.bottom + 8.0).fold(down, f64::max);
        let right = self.columns[below - 1].right + GUTTER / 2.0 + lane(above);
        let corners = [(from.x, under), (right, under), (right, up), (to.x, up)];
        let corners = corners.into_iter().map(|(x, y)| Point { x, y });
        Some(std::iter::once(from).chain(corners).chain([to]).collect())
    }
}
