//! Values of callers in programs of others: a member starts what a developer wrote, with inputs that want to be programs.

use crate::rig::{Place, Server, read_answer, until};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::Path;

/// Inputs that once ran, or that look as if they could. Each would leave a file `PWNED`.
const PAYLOADS: [&str; 28] = [
    "plain",
    "; touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "'; touch PWNED; '",
    "\"; touch PWNED; \"",
    "'\"; touch PWNED; \"'",
    "$(touch PWNED)'\"$(touch PWNED)\"'",
    "a\ntouch PWNED\n",
    "\\",
    "\\\"; touch PWNED #",
    "\\'; touch PWNED #",
    "&& touch PWNED",
    "| touch PWNED",
    "& touch PWNED &",
    "> PWNED",
    "*",
    "{a,b}",
    "~",
    "-n",
    "--help",
    "${IFS}touch${IFS}PWNED",
    "${x:-$(touch PWNED)}",
    "\nEND\ntouch PWNED\ncat <<END\n",
    "\u{1}\u{7f}é😀\u{2028}",
    "a[$(touch PWNED)]",
    "' + __import__('os').system('touch PWNED') + '",
    "\"\"\"\n__import__('os').system('touch PWNED')\n\"\"\"",
];

fn member(server: &Server) -> String {
    token(server, "member")
}

fn token(server: &Server, role: &str) -> String {
    let (status, made) = server.post("/api/v1/tokens", &json!({ "name": role, "role": role }));
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["token"].as_str().unwrap().to_owned()
}

/// Starts a workflow under a token and waits for its end.
fn run(stage: &Stage, token: &str, workflow: &str, inputs: &Value) -> (StatusCode, Value) {
    let body = json!({ "inputs": inputs, "options": { "async": false } });
    stage.send(token, Method::POST, &format!("/api/v1/workflows/{workflow}/execute"), &body)
}

fn playbook(name: &str, spec: &str, tool: &Value) -> String {
    json!({ "metadata": { "name": name }, "executor": { "spec": serde_json::from_str::<Value>(spec).unwrap() },
        "workload": { "x": "", "command": "true" }, "workflow": [{ "step": "a", "tool": tool }] })
    .to_string()
}

/// Prints the input in every quoting, into a file of the folder.
const SCRIPT: &str = r#"
exec > out
printf '[%s]' {{ workload.x }}
printf '[%s]' "{{ workload.x }}"
printf '[%s]' '{{ workload.x }}'
printf '[%s]' "$(printf '%s.' {{ workload.x }})" "`printf '%s.' "{{ workload.x }}"`"
v={{ workload.x }} # it's {{ workload.x }}
printf '[%s]' "$v"
cat <<END
[{{ workload.x }}]
END
cat <<'END'
[{{ workload.x }}] $HOME
END
"#;

fn expected(value: &str) -> String {
    format!("[{value}][{value}][{value}][{value}.][{value}.][{value}][{value}]\n[{value}] $HOME\n")
}

#[test]
fn inputs_are_words_of_a_playbooks_command_in_every_quoting() {
    let stage = Stage::new();
    let (token, folder) = (member(&stage.server), stage.place.path("work"));
    std::fs::create_dir(&folder).unwrap();
    let tool = json!({ "kind": "shell", "command": SCRIPT, "cwd": folder });
    let workflow = stage.server.define(&playbook("quotes", "{}", &tool));
    for payload in PAYLOADS {
        let (status, ended) = run(&stage, &token, &workflow, &json!({ "x": payload }));
        assert_eq!((status, &ended["status"]), (StatusCode::OK, &json!("completed")), "{payload:?}: {ended}");
        assert_eq!(std::fs::read_to_string(folder.join("out")).unwrap(), expected(payload), "{payload:?}");
        assert_eq!(names(&folder), ["out"], "{payload:?}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn inputs_are_data_in_a_playbooks_code() {
    let stage = Stage::new();
    let (token, folder) = (member(&stage.server), stage.place.path("work"));
    std::fs::create_dir(&folder).unwrap();
    let code = "a = {{ workload.x }}\nb = '{{ workload.x }}'\nc = \"\"\"{{ workload.x }}\"\"\"\nd = r'{{ workload.x }}'\n\
                e = f\"{{ workload.x }}\" # {{ workload.x }}\nresult = [a, b, c, d, e]\n";
    let tool = json!({ "kind": "python", "code": code, "cwd": folder });
    let workflow = stage.server.define(&playbook("code", "{}", &tool));
    for payload in PAYLOADS {
        let (_, ended) = run(&stage, &token, &workflow, &json!({ "x": payload }));
        assert_eq!(ended["nodeResults"]["a"]["output"], json!(vec![payload; 5]), "{ended}");
        assert_eq!(names(&folder), Vec::<String>::new(), "{payload:?}");
    }
    let (_, ended) = run(&stage, &token, &workflow, &json!({ "x": { "a": [true, null, -1.5] } }));
    assert_eq!(ended["nodeResults"]["a"]["output"][0], json!({ "a": [true, null, -1.5] }), "{ended}");
}

#[test]
fn the_example_greets_every_name() {
    let stage = Stage::new();
    let token = member(&stage.server);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hello.yaml");
    let workflow = stage.server.define(&std::fs::read_to_string(example).unwrap());
    for payload in PAYLOADS {
        let (_, ended) = run(&stage, &token, &workflow, &json!({ "name": payload }));
        let said =
            ended["nodeResults"]["greet"]["output"]["stdout"].as_str().unwrap_or_else(|| panic!("{ended}"));
        // Some shells' echo reads escapes of its own.
        if !payload.contains('\\') {
            assert_eq!(said, format!("Hello, {payload}!\n"));
        }
    }
}

#[test]
fn a_secret_in_a_command_is_not_among_the_arguments_of_the_process() {
    let stage = Stage::new();
    let secret = "hunter2-hunter2-hunter2";
    let file = stage.place.path("arguments");
    let text = format!(
        "metadata: {{name: secret}}\nkeychain:\n- {{name: api, kind: bearer, token: {secret}}}\nworkflow:\n- step: a\n  tool:\n    \
         kind: shell\n    command: |\n      printf %s '{{{{ keychain.api.token }}}}' | wc -c\n      cat /proc/$$/cmdline > {}\n",
        file.display()
    );
    let workflow = stage.server.define(&text);
    let (_, ended) = run(&stage, &member(&stage.server), &workflow, &json!({}));
    let said = ended["nodeResults"]["a"]["output"]["stdout"].as_str().unwrap_or_else(|| panic!("{ended}"));
    assert_eq!(said.trim(), secret.len().to_string());
    let arguments = String::from_utf8(std::fs::read(file).unwrap()).unwrap();
    assert!(arguments.contains("wc -c") && !arguments.contains(secret), "{arguments:?}");
}

#[test]
fn scripts_that_would_run_a_value_are_refused() {
    let stage = Stage::new();
    let developer = token(&stage.server, "developer");
    for script in [
        "{{ X }}",
        "eval \"echo {{ X }}\"",
        "trap {{ X }} EXIT",
        "trap 'echo {{ X }}' EXIT",
        "sh -c {{ X }}",
        "bash -c \"echo {{ X }}\"",
        "S=sh; $S -c {{ X }}",
        "echo {{ X }} | sh",
        "cat <<END | bash\n{{ X }}\nEND",
        "python3 -c 'print({{ X }})'",
        "awk '/{{ X }}/' f",
        "v={{ X }}; a[$v]=1",
        "v={{ X }}; echo ${v@P}",
        "v={{ X }}; declare -i q; q=$v",
        "v={{ X }}; declare -n r=$v; echo $r",
        "echo $(( $(printf %s {{ X }}) ))",
        "echo a >& {{ X }}",
    ] {
        let tool = json!({ "kind": "shell", "command": script.replace('X', "workload.x") });
        let (status, refused) = stage.upload(&developer, &playbook("p", "{}", &tool));
        assert_eq!(status, StatusCode::BAD_REQUEST, "{script}: {refused}");
        let node =
            json!({ "id": "a", "type": "shell", "config": { "command": script.replace('X', "inputs.x") } });
        let (status, refused) =
            stage.upload(&developer, &json!({ "name": "w", "nodes": [node] }).to_string());
        assert_eq!(status, StatusCode::BAD_REQUEST, "{script}: {refused}");
    }
}

/// A playbook that runs what it is given, and says so.
fn text_playbook(folder: &Path) -> String {
    let tool = json!({ "kind": "shell", "command": "{{ workload.command }}", "cwd": folder });
    playbook("open", r#"{ "templates": "text" }"#, &tool)
}

#[test]
fn templates_that_are_program_text_are_for_those_who_may_edit() {
    let stage = Stage::new();
    let server = &stage.server;
    let folder = stage.place.path("work");
    std::fs::create_dir(&folder).unwrap();
    let (developer, member) = (token(server, "developer"), member(server));
    let (status, made) = stage.upload(&developer, &text_playbook(&folder));
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert!(
        made["warnings"].to_string().contains("W0249") || made.to_string().contains("run as code"),
        "{made}"
    );
    let workflow = made["id"].as_str().unwrap();
    let inputs = json!({ "command": "touch PWNED" });
    let (status, refused) = run(&stage, &member, workflow, &inputs);
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("templates: text"), "{refused}");
    assert_eq!(names(&folder), Vec::<String>::new());
    let (status, ended) = run(&stage, &developer, workflow, &json!({ "command": "false" }));
    assert_eq!((status, &ended["status"]), (StatusCode::OK, &json!("failed")), "{ended}");
    let id = ended["executionId"].as_str().unwrap();
    let retry = |token: &str| {
        stage
            .send(
                token,
                Method::POST,
                &format!("/api/v1/executions/{id}/retry"),
                &json!({ "inputs": inputs }),
            )
            .0
    };
    let patch = |token: &str| {
        stage.send(token, Method::PATCH, &format!("/api/v1/executions/{id}/context"), &json!({ "a": 1 })).0
    };
    assert_eq!((retry(&member), patch(&member)), (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN));
    assert_eq!(names(&folder), Vec::<String>::new());
    assert_eq!((retry(&developer), patch(&developer)), (StatusCode::ACCEPTED, StatusCode::CONFLICT));
    until("the retry of the developer runs", || folder.join("PWNED").exists().then_some(()));
}

#[test]
fn templates_that_are_program_text_are_not_reached_through_a_hook_or_another_workflow() {
    let stage = Stage::new();
    let server = &stage.server;
    let folder = stage.place.path("work");
    std::fs::create_dir(&folder).unwrap();
    server.define(&text_playbook(&folder));
    let trigger = json!({ "triggerMode": "webhook",
        "webhookConfig": { "path": "run-it", "method": "POST", "requireAuth": false } });
    let child = json!({ "workflowName": "open", "inputs": { "command": "{{ inputs.command }}" } });
    let parent = json!({ "name": "parent", "settings": { "retryPolicy": { "maxRetries": 0 } }, "nodes": [
        { "id": "t", "type": "trigger", "config": trigger }, { "id": "sub", "type": "workflow", "config": child } ],
        "edges": [{ "id": "e", "source": "t", "target": "sub" }] });
    let parent = server.define(&parent.to_string());
    let inputs = json!({ "command": "touch PWNED" });
    let started = read_answer(server.bare(Method::POST, "/hooks/run-it").json(&inputs).send().unwrap());
    assert_eq!(started.0, StatusCode::ACCEPTED, "{}", started.1);
    let id = started.1["executionId"].as_str().unwrap().to_owned();
    let ended = until("the hook's execution ends", || {
        let (_, now) = read_answer(server.get(&format!("/api/v1/executions/{id}")));
        (now["status"] == "failed").then_some(now)
    });
    assert!(ended.to_string().contains("PERMISSION_DENIED"), "{ended}");
    let (_, ended) = run(&stage, &member(server), &parent, &inputs);
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(names(&folder), Vec::<String>::new());
    let (_, ended) = run(&stage, server.token(), &parent, &inputs);
    assert_eq!(
        (&ended["status"], names(&folder)),
        (&json!("completed"), vec!["PWNED".to_owned()]),
        "{ended}"
    );
}

#[test]
fn on_ones_own_machine_templates_may_be_program_text() {
    let place = Place::new();
    place.write("play.yaml", &text_playbook(&place.path(".")));
    place.windlass(&["run", "play.yaml", "--input", "command=touch PWNED"]).expect(0);
    assert!(place.path("PWNED").exists());
}
