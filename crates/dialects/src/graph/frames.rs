//! Positions of the parts of a picture. The body of a loop is laid out on its own and is one box, with a frame around
//! it,
//! in the layout of what the loop is in.

use super::layout::{Box, EdgePath, Link, Point, layout};
use super::svg::{box_size, label_width, title_width};
use super::{Edge, Picture};

/// Room of a frame above its body, for its title and the entry.
const TITLE: f64 = 24.0;
const PADDING: f64 = 4.0;

#[derive(Default)]
pub(super) struct Arranged {
    /// Centres of nodes, by the place of the node.
    pub(super) nodes: Vec<(usize, Point)>,
    pub(super) frames: Vec<Frame>,
    /// Ways of edges, by the place of the edge. An edge from a node to itself has none, and of several edges into one
    /// body only the first has one.
    pub(super) ways: Vec<(usize, EdgePath)>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The frame around the body of a loop.
pub(super) struct Frame {
    /// The node of the loop.
    pub(super) of: usize,
    pub(super) corner: Point,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A box of one layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Node(usize),
    /// The body of the loop.
    Body(usize),
}

pub(super) fn arrange(picture: &Picture) -> Arranged {
    Scopes::of(picture).arrange(None)
}

/// Nodes and edges by the loop whose body they are in.
struct Scopes<'p> {
    picture: &'p Picture,
    items: Vec<Vec<Item>>,
    edges: Vec<Vec<(usize, Item, Item)>>,
}

impl<'p> Scopes<'p> {
    fn of(picture: &'p Picture) -> Scopes<'p> {
        let count = picture.nodes.len();
        let mut scopes =
            Scopes { picture, items: vec![Vec::new(); count + 1], edges: vec![Vec::new(); count + 1] };
        for (place, node) in picture.nodes.iter().enumerate() {
            let body = picture.bodies.contains(&place).then_some(Item::Body(place));
            scopes.items[number(node.region)].extend([Item::Node(place)].into_iter().chain(body));
        }
        scopes.items.iter_mut().for_each(|items| items.sort_unstable());
        for (place, edge) in picture.edges.iter().enumerate().filter(|(_, edge)| edge.from != edge.to) {
            scopes.add_edge(place, edge);
        }
        scopes
    }

    /// Adds an edge to the innermost body that both ends are in; there, an end further inside is a body.
    fn add_edge(&mut self, place: usize, edge: &Edge) {
        let (from, to) = (self.chain(edge.from), self.chain(edge.to));
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        // The last item of a chain is the node itself; a node contains nothing.
        let (a, b) = (from[common.min(from.len() - 1)], to[common.min(to.len() - 1)]);
        let scope = match common.checked_sub(1).map(|last| from[last]) {
            Some(Item::Body(of)) => Some(of),
            Some(Item::Node(_)) | None => None,
        };
        let edges = &mut self.edges[number(scope)];
        let is_again =
            |(_, from, to): &(usize, Item, Item)| (*from, *to) == (a, b) && matches!(b, Item::Body(_));
        if a != b && !edges.iter().any(is_again) {
            edges.push((place, a, b));
        }
    }

    /// Returns the bodies around a node, outermost first, and the node.
    fn chain(&self, node: usize) -> Vec<Item> {
        let region = |at: &usize| self.picture.nodes[*at].region;
        let around = std::iter::successors(region(&node), region).take(self.picture.nodes.len());
        let mut chain: Vec<Item> = std::iter::once(Item::Node(node)).chain(around.map(Item::Body)).collect();
        chain.reverse();
        chain
    }

    fn arrange(&self, scope: Option<usize>) -> Arranged {
        let items = &self.items[number(scope)];
        let bodies: Vec<Option<Arranged>> = items.iter().map(|item| self.body(*item)).collect();
        let boxes: Vec<Box> = items.iter().zip(&bodies).map(|(item, body)| self.size(*item, body)).collect();
        let at = |wanted: Item| items.binary_search(&wanted).ok();
        let placed = self.edges[number(scope)].iter();
        let (edges, links): (Vec<usize>, Vec<Link>) = placed
            .filter_map(|(edge, from, to)| {
                let label_width = label_width(&self.picture.edges[*edge]);
                Some((*edge, Link { from: at(*from)?, to: at(*to)?, label_width }))
            })
            .unzip();
        let entries: Vec<usize> = self.entries(scope).filter_map(|node| at(Item::Node(node))).collect();
        let last = self.picture.nodes.iter().position(|node| node.is_final);
        let laid = layout(&boxes, &links, &entries, last.and_then(|last| at(Item::Node(last))));
        let mut all = Arranged { width: laid.width, height: laid.height, ..Arranged::default() };
        all.ways = edges.into_iter().zip(laid.ways).collect();
        for (((item, body), size), centre) in items.iter().zip(bodies).zip(&boxes).zip(laid.boxes) {
            match (item, body) {
                (Item::Node(place), _) => all.nodes.push((*place, centre)),
                (Item::Body(of), Some(body)) => all.add_body(*of, body, size, centre),
                (Item::Body(_), None) => {}
            }
        }
        all
    }

    fn body(&self, item: Item) -> Option<Arranged> {
        match item {
            Item::Node(_) => None,
            Item::Body(of) => Some(self.arrange(Some(of))),
        }
    }

    fn size(&self, item: Item, body: &Option<Arranged>) -> Box {
        match (item, body) {
            (Item::Body(of), Some(body)) => Box {
                width: body.width.max(title_width(&self.picture.nodes[of])) + 2.0 * PADDING,
                height: body.height + TITLE + PADDING,
            },
            (Item::Node(place) | Item::Body(place), _) => box_size(self.picture, place),
        }
    }

    /// Nodes where a body begins, or the whole.
    fn entries(&self, scope: Option<usize>) -> impl Iterator<Item = usize> {
        let first = self.picture.entries.iter().copied().filter(move |_| scope.is_none());
        first.chain(self.picture.body_entries(scope))
    }
}

impl Arranged {
    fn add_body(&mut self, of: usize, body: Arranged, size: &Box, centre: Point) {
        let corner = Point { x: centre.x - size.width / 2.0, y: centre.y - size.height / 2.0 };
        let inside = (size.width - body.width) / 2.0;
        let by = Point { x: corner.x + inside, y: corner.y + TITLE };
        self.frames.push(Frame { of, corner, width: size.width, height: size.height });
        for (place, mut at) in body.nodes {
            at.shift(by);
            self.nodes.push((place, at));
        }
        for mut frame in body.frames {
            frame.corner.shift(by);
            self.frames.push(frame);
        }
        for (edge, mut way) in body.ways {
            way.parts.iter_mut().for_each(|part| part.shift(by));
            way.label.shift(by);
            self.ways.push((edge, way));
        }
    }
}

fn number(scope: Option<usize>) -> usize {
    scope.map_or(0, |of| of + 1)
}
