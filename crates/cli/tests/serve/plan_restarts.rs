//! A server that is killed again and again under worker processes: what a worker still holds is not run again.
//!
//! `WINDLASS_SERVER_KILLS` sets how often.

use crate::executions;
use crate::plan_executions::{begin, status};
use crate::rig::{self, Place, Running};
use crate::runners;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const WORKERS: usize = 3;
const STEPS: usize = 6;

fn kills() -> usize {
    std::env::var("WINDLASS_SERVER_KILLS").ok().map_or(3, |text| text.parse().expect("a number"))
}

/// A chain in which each step notes itself.
fn plan(place: &Place) -> Value {
    let seen = place.path("seen").display().to_string();
    let step = |number: usize| {
        let note = format!(
            "echo \"$SIGNADOT_PLAN_EXECUTION_ID s{number}\" >> {seen}; sleep 0.1; echo {number} > outputs/o"
        );
        let field = json!([{ "name": "o" }]);
        let (params, refs) = match number {
            0 => (json!([]), json!({})),
            _ => (field.clone(), json!({ "o": format!("steps.s{}.outputs.o", number - 1) })),
        };
        let action = json!({ "script": note, "params": params, "outputs": field });
        json!({ "id": format!("s{number}"), "action": action, "args": { "refs": refs } })
    };
    json!({
        "params": [{ "name": "number", "schema": { "type": "integer" } }],
        "steps": (0..STEPS).map(step).collect::<Vec<_>>(),
    })
}

/// A chain of steps that are leases of their own.
fn playbook(place: &Place) -> String {
    let seen = place.path("seen").display().to_string();
    let step = |number: usize| {
        let next = if number + 1 < STEPS { format!("\n  next: p{}", number + 1) } else { String::new() };
        format!(
            "- step: p{number}\n  tool: {{kind: shell, command: 'echo \"{{{{ execution_id }}}} p{number}\" >> {seen}; sleep 0.1'}}{next}\n"
        )
    };
    format!("metadata: {{name: noted}}\nworkflow:\n{}", (0..STEPS).map(step).collect::<String>())
}

#[test]
fn pln_11_what_workers_hold_is_not_run_again_when_the_server_is_killed() {
    let kills = kills();
    let place = Place::new();
    let mut server = place.serve();
    let address = server.address().to_owned();
    let token = runners::token(&server, json!({ "name": "w", "role": "worker", "group": "default" }));
    let args = ["--group", "default", "--cluster", "local", "--slots", "4"];
    let _workers: Vec<Running> =
        (0..WORKERS).map(|_| runners::worker(&place, &server, &token, &args)).collect();
    let workflow = server.define(&playbook(&place));
    let plan = plan(&place);
    let each = 3 * (kills + 1);
    let paths: Vec<String> =
        (0..each).map(|number| begin(&server, &plan, &json!({ "params": { "number": number } }))).collect();
    let options = json!({ "runner": { "group": "default", "cluster": "local" } });
    let ids: Vec<String> =
        (0..each).map(|_| executions::start(&server, &workflow, options.clone())).collect();
    let all = 2 * each * STEPS;
    for kill in 1..=kills {
        // While the workers are at work.
        rig::until("steps run", || (place.lines("seen").len() >= all * kill / (kills + 2)).then_some(()));
        server.kill();
        server = place.serve_on(&address);
    }
    for path in &paths {
        rig::until("the plan completes", || {
            let status = status(&server, path);
            assert_ne!(status["phase"], "failed", "{status}");
            (status["phase"] == "completed").then_some(())
        });
    }
    ids.iter().for_each(|id| drop(executions::until(&server, id, "completed")));
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    place.lines("seen").into_iter().for_each(|line| *times.entry(line).or_default() += 1);
    assert_eq!(times.len(), all, "every step ran");
    let again: Vec<_> = times.iter().filter(|(_, count)| **count > 1).collect();
    assert!(again.is_empty(), "these ran again: {again:?}");
    println!("{kills} kills of the server, {all} steps, each ran once");
}
