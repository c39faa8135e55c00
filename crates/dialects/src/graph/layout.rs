//! Places for nodes and ways for edges, in layers from top to bottom.
//!
//! Edges that close a cycle are turned round while layers are found. Nodes are on even ranks; every edge passes a point
//! on each rank between its ends, and its label has room to the right of that point on the first odd rank, so that no
//! label covers a line. Ranks are ordered by sweeps of the barycenter, then every point is pulled towards its neighbours.
//! Ranks that are taller than a screen together are folded into columns (`fold.rs`).

use super::fold::{Columns, fold};

/// Nodes and links to place.
pub(super) struct Box {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// An edge between boxes; neither end is the other.
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label_width: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

pub(super) struct Layout {
    /// Centres of the boxes.
    pub(super) boxes: Vec<Point>,
    /// Points from the source's border to the target's, in the order of the links.
    pub(super) ways: Vec<EdgePath>,
    pub(super) width: f64,
    pub(super) height: f64,
}

pub(super) struct EdgePath {
    pub(super) parts: Vec<Part>,
    /// The left end of its label.
    pub(super) label: Point,
    /// Whether it closes a cycle.
    pub(super) back: bool,
}

/// A part of a way.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Distance from one rank to the next.
    Curve(Point, Point),
    /// Straight lines from one column to the next.
    Lines(Vec<Point>),
}

impl Part {
    fn reversed(self) -> Part {
        match self {
            Part::Curve(from, to) => Part::Curve(to, from),
            Part::Lines(points) => Part::Lines(points.into_iter().rev().collect()),
        }
    }

    pub(super) fn shift(&mut self, by: Point) {
        match self {
            Part::Curve(from, to) => {
                from.shift(by);
                to.shift(by);
            }
            Part::Lines(points) => points.iter_mut().for_each(|point| point.shift(by)),
        }
    }
}

impl Point {
    pub(super) fn shift(&mut self, by: Point) {
        self.x += by.x;
        self.y += by.y;
    }
}

const GAP_X: f64 = 28.0;
const GAP_RANK: f64 = 34.0;
/// Free space around everything, in which edges between columns run.
pub(super) const MARGIN: f64 = 24.0;
/// Distance from a line to its label.
const LABEL_GAP: f64 = 6.0;
const LABEL_HEIGHT: f64 = 16.0;
const SWEEPS: usize = 12;
const PULLS: usize = 48;
/// Points on ranks between the ends of edges. Beyond it edges are straight lines: such a picture is too large to be read closely.
const POINTS_MAX: usize = 60_000;

/// A box, or the point at which an edge passes a rank.
#[derive(Debug, Clone, Default)]
pub(super) struct Spot {
    pub(super) rank: usize,
    /// Extent to the left and to the right of `x`.
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) height: f64,
    up: Vec<usize>,
    down: Vec<usize>,
    pub(super) x: f64,
}

/// `last` is placed under everything else, unless links place it.
pub(super) fn layout(boxes: &[Box], links: &[Link], entries: &[usize], last: Option<usize>) -> Layout {
    let back = turned(boxes.len(), links, entries);
    let mut ranks = ranks(boxes.len(), links, &back);
    if let Some(last) = last.filter(|last| links.iter().all(|link| link.from != *last && link.to != *last)) {
        ranks[last] = ranks.iter().max().map_or(0, |most| most + 1);
    }
    let mut spots: Vec<Spot> = boxes
        .iter()
        .zip(&ranks)
        .map(|(b, rank)| {
            let half = b.width / 2.0;
            Spot { rank: rank * 2, left: half, right: half, height: b.height, ..Spot::default() }
        })
        .collect();
    let chains = thread(&mut spots, links, &back);
    let mut order = by_rank(&spots, entries);
    sweep(&spots, &mut order);
    pull(&mut spots, &order);
    finish(boxes.len(), &back, &spots, &chains, &order)
}

/// Finds links that close a cycle, by a depth-first search from the entries and then from the remaining nodes.
fn turned(count: usize, links: &[Link], entries: &[usize]) -> Vec<bool> {
    let mut leaving = vec![Vec::new(); count];
    for (place, link) in links.iter().enumerate() {
        leaving[link.from].push(place);
    }
    let mut back = vec![false; links.len()];
    // 0: not seen, 1: on the way, 2: done.
    let mut seen = vec![0_u8; count];
    for start in entries.iter().copied().chain(0..count) {
        if seen[start] != 0 {
            continue;
        }
        seen[start] = 1;
        let mut stack = vec![(start, 0)];
        while let Some((node, next)) = stack.pop() {
            let Some(place) = leaving[node].get(next) else {
                seen[node] = 2;
                continue;
            };
            stack.push((node, next + 1));
            let to = links[*place].to;
            match seen[to] {
                0 => {
                    seen[to] = 1;
                    stack.push((to, 0));
                }
                1 => back[*place] = true,
                _ => {}
            }
        }
    }
    back
}

/// Returns the longest way from any node without links into it.
fn ranks(count: usize, links: &[Link], back: &[bool]) -> Vec<usize> {
    let ends = |place: usize| {
        if back[place] { (links[place].to, links[place].from) } else { (links[place].from, links[place].to) }
    };
    let mut leaving = vec![Vec::new(); count];
    let mut entering = vec![0_usize; count];
    for place in 0..links.len() {
        let (from, to) = ends(place);
        leaving[from].push(to);
        entering[to] += 1;
    }
    let mut ranks = vec![0; count];
    let mut free: Vec<usize> = (0..count).filter(|node| entering[*node] == 0).collect();
    while let Some(node) = free.pop() {
        for to in &leaving[node] {
            ranks[*to] = ranks[*to].max(ranks[node] + 1);
            entering[*to] -= 1;
            if entering[*to] == 0 {
                free.push(*to);
            }
        }
    }
    ranks
}

/// Sets the points of every link on the ranks between, from the upper end to the lower one.
fn thread(spots: &mut Vec<Spot>, links: &[Link], back: &[bool]) -> Vec<Vec<usize>> {
    let mut chains = Vec::with_capacity(links.len());
    let mut left = POINTS_MAX;
    for (link, back) in links.iter().zip(back) {
        let (top, bottom) = if *back { (link.to, link.from) } else { (link.from, link.to) };
        let (first, last) = (spots[top].rank, spots[bottom].rank);
        let between = last.saturating_sub(first + 1).min(left);
        left -= between;
        let mut chain = vec![top];
        for rank in first + 1..first + 1 + between {
            // Near the step that chooses.
            let labelled = if *back { first + between } else { first + 1 };
            let has_label = rank == labelled && link.label_width > 0.0;
            let right = if has_label { link.label_width + LABEL_GAP } else { 0.0 };
            let height = if has_label { LABEL_HEIGHT } else { 0.0 };
            spots.push(Spot { rank, right, height, ..Spot::default() });
            chain.push(spots.len() - 1);
        }
        chain.push(bottom);
        for pair in chain.windows(2) {
            spots[pair[0]].down.push(pair[1]);
            spots[pair[1]].up.push(pair[0]);
        }
        chains.push(chain);
    }
    chains
}

/// Orders nodes by a breadth-first search, which keeps branches together.
fn by_rank(spots: &[Spot], entries: &[usize]) -> Vec<Vec<usize>> {
    let most = spots.iter().map(|spot| spot.rank).max().unwrap_or(0);
    let mut order = vec![Vec::new(); most + 1];
    let mut seen = vec![false; spots.len()];
    for start in entries.iter().copied().chain(0..spots.len()) {
        let mut open = std::collections::VecDeque::from([start]);
        while let Some(spot) = open.pop_front() {
            if !std::mem::replace(&mut seen[spot], true) {
                order[spots[spot].rank].push(spot);
                open.extend(spots[spot].down.iter().chain(&spots[spot].up).filter(|next| !seen[**next]));
            }
        }
    }
    order
}

fn sweep(spots: &[Spot], order: &mut [Vec<usize>]) {
    let mut place = vec![0.0; spots.len()];
    let number = |rank: &[usize], place: &mut Vec<f64>| {
        for (at, spot) in rank.iter().enumerate() {
            place[*spot] = at as f64;
        }
    };
    order.iter().for_each(|rank| number(rank, &mut place));
    for round in 0..SWEEPS {
        let down = round % 2 == 0;
        for step in 0..order.len() {
            let rank = if down { step } else { order.len() - 1 - step };
            let key = |spot: &usize| {
                let next = if down { &spots[*spot].up } else { &spots[*spot].down };
                if next.is_empty() {
                    place[*spot]
                } else {
                    next.iter().map(|n| place[*n]).sum::<f64>() / next.len() as f64
                }
            };
            let mut keyed: Vec<(f64, usize)> = order[rank].iter().map(|spot| (key(spot), *spot)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            order[rank] = keyed.into_iter().map(|(_, spot)| spot).collect();
            number(&order[rank], &mut place);
        }
    }
}

/// Moves every spot to the middle of its neighbours, as far as the spots next to it allow.
fn pull(spots: &mut [Spot], order: &[Vec<usize>]) {
    for rank in order {
        let mut x = 0.0;
        for spot in rank {
            x += spots[*spot].left;
            spots[*spot].x = x;
            x += spots[*spot].right + GAP_X;
        }
        // Around one middle, so that a chain is straight from the beginning.
        let middle = rank.iter().map(|spot| spots[*spot].x).sum::<f64>() / rank.len().max(1) as f64;
        rank.iter().for_each(|spot| spots[*spot].x -= middle);
    }
    for round in 0..PULLS {
        for step in 0..order.len() {
            let rank = &order[if round % 2 == 0 { step } else { order.len() - 1 - step }];
            let wanted: Vec<f64> = rank.iter().map(|spot| middle(spots, *spot)).collect();
            settle(spots, rank, &wanted);
        }
    }
}

fn middle(spots: &[Spot], spot: usize) -> f64 {
    let around = spots[spot].up.iter().chain(&spots[spot].down);
    let (sum, count) = around.fold((0.0, 0), |(sum, count), next| (sum + spots[*next].x, count + 1));
    if count == 0 { spots[spot].x } else { sum / f64::from(count) }
}

/// The average of what pushing from the left and pushing from the right would give: both keep the gaps.
fn settle(spots: &mut [Spot], rank: &[usize], wanted: &[f64]) {
    let apart = |a: usize, b: usize| spots[a].right + spots[b].left + GAP_X;
    let mut left = wanted.to_vec();
    for at in 1..rank.len() {
        left[at] = left[at].max(left[at - 1] + apart(rank[at - 1], rank[at]));
    }
    let mut right = wanted.to_vec();
    for at in (0..rank.len().saturating_sub(1)).rev() {
        right[at] = right[at].min(right[at + 1] - apart(rank[at], rank[at + 1]));
    }
    for (at, spot) in rank.iter().enumerate() {
        spots[*spot].x = f64::midpoint(left[at], right[at]);
    }
}

fn finish(
    boxes: usize,
    back: &[bool],
    spots: &[Spot],
    chains: &[Vec<usize>],
    order: &[Vec<usize>],
) -> Layout {
    let columns = fold(spots, chains, order, &heights(spots, order));
    let ports = ports(spots, chains);
    let ways = chains.iter().zip(back).zip(ports).enumerate().map(|(number, ((chain, back), ports))| {
        let parts = parts(spots, &columns, (number, chain), ports);
        let label = label_of(&parts, *back);
        let parts = if *back { parts.into_iter().rev().map(Part::reversed).collect() } else { parts };
        EdgePath { parts, label, back: *back }
    });
    let (ways, (width, height)) = (ways.collect(), columns.size());
    Layout { boxes: (0..boxes).map(|spot| columns.place(&spots[spot])).collect(), ways, width, height }
}

/// Returns the way along a chain, from its upper end to its lower one.
fn parts(
    spots: &[Spot],
    columns: &Columns,
    (number, chain): (usize, &[usize]),
    (top, bottom): (f64, f64),
) -> Vec<Part> {
    let end = |spot: usize, right: f64, down: f64| {
        let Point { x, y } = columns.place(&spots[spot]);
        Point { x: x + right, y: y + down * spots[spot].height / 2.0 }
    };
    let last = chain.len() - 1;
    let mut parts = Vec::with_capacity(chain.len());
    for at in 0..last {
        let from = match at {
            0 => end(chain[at], top, 1.0),
            // Along a label the line is straight.
            _ => end(chain[at], 0.0, 1.0),
        };
        let to = if at + 1 == last { end(chain[last], bottom, -1.0) } else { end(chain[at + 1], 0.0, -1.0) };
        parts.push(match columns.lines(spots[chain[at]].rank, spots[chain[at + 1]].rank, number, from, to) {
            Some(lines) => Part::Lines(lines),
            None => Part::Curve(from, to),
        });
        if at + 1 < last && spots[chain[at + 1]].height > 0.0 {
            parts.push(Part::Curve(to, end(chain[at + 1], 0.0, 1.0)));
        }
    }
    parts
}

/// The middle of the straight part along the label, which is the second of a way and the last but one of a way back.
fn label_of(parts: &[Part], back: bool) -> Point {
    let middle = |part: &Part| match part {
        Part::Curve(from, to) => between(*from, *to),
        Part::Lines(points) => between(points[0], points[points.len() - 1]),
    };
    let at = match (parts, back) {
        ([_, along, _, ..], false) | ([.., _, along, _], true) => middle(along),
        ([only, ..], _) => middle(only),
        ([], _) => Point { x: 0.0, y: 0.0 },
    };
    Point { x: at.x + LABEL_GAP, y: at.y }
}

fn between(a: Point, b: Point) -> Point {
    Point { x: f64::midpoint(a.x, b.x), y: f64::midpoint(a.y, b.y) }
}

/// Returns the middle and the height of every rank, from 0.
fn heights(spots: &[Spot], order: &[Vec<usize>]) -> Vec<(f64, f64)> {
    let mut y = 0.0;
    let mut ranks = Vec::with_capacity(order.len());
    for rank in order {
        let tall = rank.iter().map(|spot| spots[*spot].height).fold(0.0, f64::max);
        ranks.push((y + tall / 2.0, tall));
        y += tall + GAP_RANK / 2.0;
    }
    ranks
}

/// Distance of the begin and end of each link from the middle of its box: next to each other, in the order of their
/// targets.
fn ports(spots: &[Spot], chains: &[Vec<usize>]) -> Vec<(f64, f64)> {
    let mut ports = vec![(0.0, 0.0); chains.len()];
    let mut at_top: std::collections::BTreeMap<usize, Vec<(f64, usize)>> = std::collections::BTreeMap::new();
    let mut at_bottom = at_top.clone();
    for (place, chain) in chains.iter().enumerate() {
        let last = chain.len() - 1;
        at_bottom.entry(chain[0]).or_default().push((spots[chain[1]].x, place));
        at_top.entry(chain[last]).or_default().push((spots[chain[last - 1]].x, place));
    }
    for (spot, ends, is_top) in
        at_top.iter().map(|(s, e)| (s, e, true)).chain(at_bottom.iter().map(|(s, e)| (s, e, false)))
    {
        let mut ends = ends.clone();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let room = (spots[*spot].left + spots[*spot].right - 16.0).max(0.0);
        let gap = (room / ends.len() as f64).min(22.0);
        for (number, (_, place)) in ends.iter().enumerate() {
            let offset = (number as f64 - (ends.len() as f64 - 1.0) / 2.0) * gap;
            if is_top { ports[*place].1 = offset } else { ports[*place].0 = offset }
        }
    }
    ports
}
