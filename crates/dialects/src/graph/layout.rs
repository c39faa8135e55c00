//! Places for nodes and ways for edges, in layers from top to bottom.
//!
//! Edges that close a cycle are turned round while layers are found. Nodes are on even ranks; every edge passes a point
//! on each rank between its ends, and its label has the first odd rank for itself, so that no label covers anything.
//! Ranks are ordered by sweeps of the barycenter, then every point is pulled towards its neighbours.

/// What is to be placed.
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
    /// From the source's border to the target's.
    pub(super) ways: Vec<Way>,
    pub(super) width: f64,
    pub(super) height: f64,
}

pub(super) struct Way {
    pub(super) points: Vec<Point>,
    pub(super) label: Point,
    /// It closes a cycle.
    pub(super) back: bool,
}

const GAP_X: f64 = 28.0;
const GAP_RANK: f64 = 34.0;
const MARGIN: f64 = 24.0;
const SWEEPS: usize = 12;
const PULLS: usize = 24;
/// Points on ranks between the ends of edges. Beyond it edges are straight lines: such a picture is too large to be read closely.
const POINTS_MAX: usize = 60_000;

/// A box, or the point at which an edge passes a rank.
#[derive(Debug, Clone, Default)]
struct Spot {
    rank: usize,
    width: f64,
    height: f64,
    up: Vec<usize>,
    down: Vec<usize>,
    x: f64,
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
        .map(|(b, rank)| Spot { rank: rank * 2, width: b.width, height: b.height, ..Spot::default() })
        .collect();
    let chains = thread(&mut spots, links, &back);
    let mut order = by_rank(&spots, entries);
    sweep(&spots, &mut order);
    pull(&mut spots, &order);
    finish(boxes, links, &back, spots, &chains, &order)
}

/// Which links close a cycle, by a search in depth from the entries and then from whatever is left.
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

/// The longest way from any node without links into it.
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

/// Gives every link its points on the ranks between, from the upper end to the lower one.
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
            let width = if rank == labelled { link.label_width } else { 0.0 };
            let height = if width > 0.0 { 16.0 } else { 0.0 };
            spots.push(Spot { rank, width, height, ..Spot::default() });
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

/// In the order of a search in breadth, which keeps branches together.
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
            x += spots[*spot].width / 2.0;
            spots[*spot].x = x;
            x += spots[*spot].width / 2.0 + GAP_X;
        }
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
    let apart = |a: usize, b: usize| (spots[a].width + spots[b].width) / 2.0 + GAP_X;
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
    boxes: &[Box],
    links: &[Link],
    back: &[bool],
    mut spots: Vec<Spot>,
    chains: &[Vec<usize>],
    order: &[Vec<usize>],
) -> Layout {
    let leftmost = spots.iter().map(|spot| spot.x - spot.width / 2.0).fold(f64::INFINITY, f64::min);
    let shift = if leftmost.is_finite() { MARGIN - leftmost } else { 0.0 };
    spots.iter_mut().for_each(|spot| spot.x += shift);
    let (heights, height) = heights(&spots, order);
    let width = spots.iter().map(|spot| spot.x + spot.width / 2.0).fold(0.0, f64::max) + MARGIN;
    let centre = |spot: usize| Point { x: spots[spot].x, y: heights[spots[spot].rank] };
    let ports = ports(&spots, chains);
    let ways = chains.iter().zip(links).zip(back).zip(&ports).map(|(((chain, _), back), (top, bottom))| {
        let mut points: Vec<Point> = chain.iter().map(|spot| centre(*spot)).collect();
        let last = points.len() - 1;
        points[0] = Point { x: points[0].x + top, y: points[0].y + spots[chain[0]].height / 2.0 };
        points[last] =
            Point { x: points[last].x + bottom, y: points[last].y - spots[chain[last]].height / 2.0 };
        let label = match (&points[..], back) {
            ([_, label, .., _], false) | ([_, .., label, _], true) => *label,
            _ => between(points[0], points[last]),
        };
        if *back {
            points.reverse();
        }
        Way { points, label, back: *back }
    });
    let ways = ways.collect();
    Layout { boxes: (0..boxes.len()).map(centre).collect(), ways, width, height }
}

fn between(a: Point, b: Point) -> Point {
    Point { x: f64::midpoint(a.x, b.x), y: f64::midpoint(a.y, b.y) }
}

/// The middle of every rank, and the height of all.
fn heights(spots: &[Spot], order: &[Vec<usize>]) -> (Vec<f64>, f64) {
    let mut y = MARGIN;
    let mut middles = Vec::with_capacity(order.len());
    for rank in order {
        let tall = rank.iter().map(|spot| spots[*spot].height).fold(0.0, f64::max);
        middles.push(y + tall / 2.0);
        y += tall + GAP_RANK / 2.0;
    }
    (middles, y - GAP_RANK / 2.0 + MARGIN)
}

/// How far from the middle of its box each link begins and ends: side by side, in the order of where they go.
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
        let room = (spots[*spot].width - 16.0).max(0.0);
        let gap = (room / ends.len() as f64).min(22.0);
        for (number, (_, place)) in ends.iter().enumerate() {
            let offset = (number as f64 - (ends.len() as f64 - 1.0) / 2.0) * gap;
            if is_top { ports[*place].1 = offset } else { ports[*place].0 = offset }
        }
    }
    ports
}
