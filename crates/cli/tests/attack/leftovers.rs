//! Processes that leave their step's group, session and environment to outlive it.

use crate::rig::{is_gone, process_of, until};
use crate::stage::Stage;
use reqwest::Method;
use rustix::process::Pid;
use serde_json::{Value, json};

/// Writes the number of a process that has left everything behind, then continues with `rest`.
fn runaway(stage: &Stage, file: &str, rest: &str) -> Value {
    let path = stage.place.path(file).display().to_string();
    let script = format!(
        "env -i setsid sh -c 'trap \"\" TERM HUP; echo $$ > {path}; exec sleep 1000' > /dev/null 2>&1 &\n\
         until [ -s {path} ]; do sleep 0.02; done\n{rest}"
    );
    json!({ "metadata": { "name": "runaway" }, "workflow": [{ "step": "a", "tool": { "kind": "shell", "command": script } }] })
}

fn until_gone(pid: Pid) {
    until("the process ends", || (is_gone(pid) || is_zombie(pid)).then_some(()));
}

/// A dead process that its new parent has not waited for.
fn is_zombie(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| fields.trim_start().starts_with('Z'))
}

#[test]
fn what_a_step_started_ends_with_it_wherever_it_has_gone() {
    let stage = Stage::new();
    let owner = stage.server.token().to_owned();

    let ended = stage.ended(&owner, &stage.start(&owner, &runaway(&stage, "ended", "true")));
    assert_eq!(ended["status"], "completed", "{ended}");
    let pid = process_of(&stage.place, "ended");
    assert!(is_gone(pid) || is_zombie(pid), "it outlived its step");

    let id = stage.start(&owner, &runaway(&stage, "cancelled", "sleep 1000"));
    let pid = process_of(&stage.place, "cancelled");
    stage.send(&owner, Method::POST, &format!("/api/v1/executions/{id}/cancel"), &json!({}));
    until_gone(pid);

    stage.start(&owner, &runaway(&stage, "killed", "sleep 1000"));
    let pid = process_of(&stage.place, "killed");
    stage.server.kill();
    until_gone(pid);
}
