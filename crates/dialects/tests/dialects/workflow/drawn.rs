//! The shape that visual editors keep, and the flat one.

use crate::compiled::{check, net};

/// Workflow as React Flow stores it, with data of the drawing.
const DRAWN: &str = r##"{
  "id": "wf_1", "name": "Drawn", "description": "d", "status": "active", "viewport": {"x": 0, "y": 0, "zoom": 1},
  "nodes": [
    {"id": "node-1", "type": "workflowNode", "position": {"x": 1, "y": 2}, "positionAbsolute": {"x": 1, "y": 2}, "width": 150,
     "height": 40, "selected": false, "dragging": false, "measured": {"width": 1},
     "data": {"label": "Start", "nodeType": "trigger", "description": "begins", "config": {"triggerMode": "manual"}}},
    {"id": "node-2", "type": "workflowNode", "position": {"x": 1, "y": 2},
     "data": {"label": "Wait a bit", "nodeType": "delay", "description": null, "config": {"duration": 2, "unit": "minutes"}}}
  ],
  "edges": [
    {"id": "e1-2", "source": "node-1", "target": "node-2", "sourceHandle": null, "targetHandle": null, "type": "smoothstep",
     "animated": true, "style": {"stroke": "#fff"}, "markerEnd": {"type": "arrow"}}
  ]
}"##;

const FLAT: &str = "
name: Drawn
nodes:
- {id: node-1, type: trigger, name: Start, description: begins, config: {triggerMode: manual}}
- {id: node-2, nodeType: delay, name: Wait a bit, config: {duration: 2, unit: minutes}}
edges:
- {source: node-1, target: node-2}
";

#[test]
fn a_drawing_loads_as_it_is_and_means_what_the_flat_form_means() {
    check(DRAWN, &[]);
    check(FLAT, &[]);
    assert_eq!(net(DRAWN).digest(), net(FLAT).digest());
    let drawn = net(DRAWN);
    let shown = drawn.step(drawn.find("node-2").expect("a step")).shown.clone().expect("a title");
    assert_eq!((shown.title.as_str(), shown.kind.as_str()), ("Wait a bit", "delay"));
}

#[test]
fn unknown_keys_are_warnings() {
    check(
        "name: t\nowner: me\nnodes: [{id: a, type: trigger, colour: red, data: {lable: A}}]\nedges: []",
        &[
            "W0201 2:1 owner: the workflow has no key `owner` (known here: `id`, `name`, `description`, `version`, `nodes`, `edges`, `settings`, `status`, `viewport`, `tags`, `metadata`)",
            "W0201 3:32 nodes[0].colour: node `a` has no key `colour`",
            "W0201 3:52 nodes[0].data.lable: `data` of node `a` has no key `lable` (did you mean `label`?)",
        ],
    );
}
