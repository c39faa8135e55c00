//! Conditions of steps: what they skip, what they may contain, and what is wrong with them.

use crate::plans::{find, phases, planning, ran};
use serde_json::json;

#[test]
fn pln_15_a_false_condition_skips_a_step_and_what_depends_on_it() {
    let place = planning(
        r#"
params: [{name: code, schema: {type: integer}, default: 200}]
steps:
- {id: alert, action: {script: "echo x > outputs/o", params: [{name: code}], outputs: [{name: o}]}, args: {refs: {code: params.code}}, condition: "code >= 500 and code != nil"}
- {id: page, action: {script: "true", params: [{name: o}]}, args: {refs: {o: steps.alert.outputs.o}}}
output: {o: steps.alert.outputs.o}
"#,
    );
    let run = ran(&place, &[], 0);
    assert_eq!(phases(&run), "alert skipped, page skipped");
    assert_eq!((&run["view"]["status"]["phase"], &run["outputs"]), (&json!("completed"), &json!({})));
    let run = ran(&place, &["--input", "code=503"], 0);
    assert_eq!(
        (phases(&run).as_str(), &run["outputs"]["o"]),
        ("alert completed, page completed", &json!("x\n"))
    );
}

#[test]
fn pln_15_a_condition_that_cannot_be_evaluated_fails_its_step_and_is_shown_as_it_was_written() {
    let place = planning(
        r#"
params: [{name: count}]
steps:
- {id: many, action: {script: "true", params: [{name: n}]}, args: {refs: {n: params.count}}, condition: "int(n) > 5"}
"#,
    );
    assert_eq!(phases(&ran(&place, &["--input", "count=7 \n"], 0)), "many completed");
    let run = ran(&place, &["--input", "count=several"], 1);
    let error = &run["errors"][0];
    let expected = "`int(n) > 5` cannot be evaluated: `int` needs a number, and the text is not one";
    assert_eq!((&error["nodeId"], &error["message"]), (&json!("many"), &json!(expected)), "{run}");
}

#[test]
fn a_condition_that_compares_a_text_with_a_number_fails_its_step() {
    let place = planning(
        r#"
steps:
- {id: count, action: {script: "printf 5 > outputs/n", outputs: [{name: n}]}}
- {id: many, action: {script: "touch ran-many", params: [{name: n}]}, args: {refs: {n: steps.count.outputs.n}}, condition: "n > 100"}
- {id: few, action: {script: "true", params: [{name: n}]}, args: {refs: {n: steps.count.outputs.n}}, condition: "int(n) <= 100 and n != 5 and n == '5'"}
"#,
    );
    let run = ran(&place, &[], 1);
    assert_eq!(phases(&run), "count completed, many failed, few completed");
    let error = find(&run, "many")["error"].as_str().expect("an error").to_owned();
    let expected = "`>` compares two numbers or two texts, not a text and a number: declare a schema";
    assert!(error.contains(expected), "{error}");
    let bad = |condition: &str| {
        place.write("bad.yaml", &json!({ "steps": [{ "id": "a", "action": { "script": "true", "params": [{ "name": "n" }] }, "condition": condition }] }).to_string());
        place.windlass(&["validate", "bad.yaml"]).expect(2).err
    };
    assert!(bad("1 <= 2 <= 3").contains("follows a comparison: write `a < b and b < c`"));
    assert!(bad("n matches '(a{1000}){1000}'").contains("is not a regular expression"));
}

#[test]
fn pln_15_a_condition_has_predicates_over_the_items_of_a_list() {
    let place = planning(
        r#"
params: [{name: least, schema: {type: integer}, default: 500}, {name: codes, schema: {}, default: [200, 503]}]
steps:
- {id: look, action: {script: "echo '[{\"name\": \"web\", \"ready\": true}, {\"name\": \"db\", \"ready\": false}]' > outputs/pods.json", outputs: [{name: pods, schema: {type: array}}]}}
- {id: alert, action: {script: "true", params: [{name: codes, schema: {}}, {name: least, schema: {}}]}, args: {refs: {codes: params.codes, least: params.least}}, condition: "any(codes, {# >= least})"}
- {id: calm, action: {script: "true", params: [{name: codes, schema: {}}]}, args: {refs: {codes: params.codes}}, condition: "all(codes, # in 200..299) or len(filter(codes, # == 404)) == 1"}
- {id: restart, action: {script: "true", params: [{name: pods, schema: {}}]}, args: {refs: {pods: steps.look.outputs.pods}}, condition: "map(filter(pods, not .ready), {.name}) == ['db'] and one(pods, {.ready}) and count(pods, .ready) == 1"}
- {id: judge, action: check, extraInputs: [{name: pods, schema: {}}, {name: names, schema: {}}], args: {values: {expression: "all(names, {any(pods, {.name == 'web'}) and # != ''})", names: [web]}, refs: {pods: steps.look.outputs.pods}}}
output: {result: steps.judge.outputs.result}
"#,
    );
    let run = ran(&place, &[], 0);
    assert_eq!(
        phases(&run),
        "look completed, alert completed, calm skipped, restart completed, judge completed"
    );
    assert_eq!(run["outputs"]["result"], json!({ "check": "check" }));
    let run = ran(&place, &["--input", "codes=[201, 404]"], 0);
    assert_eq!(
        phases(&run),
        "look completed, alert skipped, calm completed, restart completed, judge completed"
    );
    let error = |input: &str| {
        let run = ran(&place, &["--input", input], 1);
        find(&run, "alert")["error"].as_str().expect("an error").to_owned()
    };
    assert!(error("codes=null").contains("`any` needs a list, not nil: test first that the value is there"));
    assert!(error("codes=[1, \"x\"]").contains("not a text and a number"));
    let many = json!(vec![1; 20_000]).to_string();
    assert!(error(&format!("codes={many}")).contains("takes too long (limit: 50000 instructions)"));
}

#[test]
fn a_predicate_that_cannot_be_evaluated_is_refused_with_its_place() {
    let place = planning("");
    let bad = |condition: &str| {
        let plan = format!(
            "steps:\n- id: a\n  action: {{script: 'true', params: [{{name: n}}]}}\n  condition: {condition}\n"
        );
        place.write("bad.yaml", &plan);
        place.windlass(&["validate", "bad.yaml"]).expect(2).err
    };
    let found = bad("any(n, {# > 1) and true");
    assert!(found.contains("expected `}`, found `)`") && found.contains("bad.yaml:4:27"), "{found}");
    let found = bad("len(n) in 1..1_000_000_000");
    assert!(found.contains("has more than 10000 numbers") && found.contains("bad.yaml:4:25"), "{found}");
    let nested = format!("{}true{}", "any(n, {".repeat(5), "})".repeat(5));
    assert!(bad(&nested).contains("`any` is nested in more than 4 predicates"));
    assert!(bad("filter(n, {# > 1})").contains("the expression is a list, and a condition is true or false"));
    assert!(bad("'n == # and true'").contains("`#` is the item of a predicate"));
    assert!(bad("not 'error' in n").contains("`not` takes true or false, not a text: write `a not in b`"));
}
