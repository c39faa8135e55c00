//! Bodies of loops: what the handle `body` leads to, up to the loop itself.

use super::Plan;
use crate::diagnostic::Problems;
use crate::workflow::language::{Exit, Kind};
use crate::workflow::model::{Flow, Workflow};

/// Loops of one workflow: for each, every node is looked at.
const LOOPS_MAX: usize = 500;

/// The nodes of a loop's body, as one mark for every node.
struct Body {
    at: usize,
    marks: Vec<bool>,
    size: usize,
}

pub(super) fn found(workflow: &Workflow, plan: &mut Plan, problems: &mut Problems) {
    let loops: Vec<usize> =
        (0..workflow.nodes.len()).filter(|place| workflow.nodes[*place].kind.kind == Kind::Loop).collect();
    if loops.len() > LOOPS_MAX {
        let message = format!("the workflow has {} loops, more than {LOOPS_MAX}", loops.len());
        let hint = "put parts of it into workflows of their own".to_owned();
        problems.add("E0143", &workflow.nodes[loops[LOOPS_MAX]].id.at, message, hint);
        return;
    }
    let onward = onward(workflow, &plan.flows);
    let bodies: Vec<Body> = loops.iter().map(|at| body(*at, &onward)).collect();
    for Body { at, marks, size } in &bodies {
        if *size == 0 && !plan.on_demand.contains(at) {
            let name = &workflow.nodes[*at].id;
            let message = format!("the loop `{}` has no body", name.text);
            let hint = "add an edge from it with `sourceHandle: body`".to_owned();
            problems.add("E0148", &name.at, message, hint);
        }
        // An edge back to the loop means that the iteration is over, which it is without it.
        plan.flows.retain(|flow| !(flow.to == *at && marks[flow.from]));
    }
    for (place, region) in plan.region.iter_mut().enumerate() {
        let around = bodies.iter().filter(|body| body.marks[place]);
        *region = around.min_by_key(|body| body.size).map(|body| body.at);
    }
    borders(workflow, plan, problems);
}

fn borders(workflow: &Workflow, plan: &Plan, problems: &mut Problems) {
    for flow in &plan.flows {
        let (from, to) = (plan.region[flow.from], plan.region[flow.to]);
        let enters = flow.exit == Exit::Body && to == Some(flow.from);
        if enters || (from == to && flow.exit != Exit::Body) || problems.is_full() {
            continue;
        }
        let name = |place: usize| &workflow.nodes[place].id.text;
        let around = to.or(from).map_or("a loop", |at| name(at).as_str());
        let message = format!(
            "the edge from `{}` to `{}` crosses the border of the body of `{around}`",
            name(flow.from),
            name(flow.to)
        );
        let hint = "connect the body to the handle `body` of its loop, and later nodes to its handle `done`";
        problems.add("E0148", &flow.at, message, hint.to_owned());
    }
}

fn onward<'f>(workflow: &Workflow, flows: &'f [Flow]) -> Vec<Vec<&'f Flow>> {
    let mut onward = vec![Vec::new(); workflow.nodes.len()];
    flows.iter().for_each(|flow| onward[flow.from].push(flow));
    onward
}

/// Returns the nodes that the handle `body` leads to, without passing the loop.
fn body(at: usize, onward: &[Vec<&Flow>]) -> Body {
    let mut body = Body { at, marks: vec![false; onward.len()], size: 0 };
    let starts = onward[at].iter().filter(|flow| flow.exit == Exit::Body).map(|flow| flow.to);
    let mut open: Vec<usize> = starts.filter(|to| *to != at).collect();
    while let Some(place) = open.pop() {
        if !std::mem::replace(&mut body.marks[place], true) {
            body.size += 1;
            open.extend(onward[place].iter().map(|flow| flow.to).filter(|to| *to != at));
        }
    }
    body
}
