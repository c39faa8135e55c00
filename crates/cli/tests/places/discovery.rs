//! A folder that a server holds: its commands find the server, and the owner's token, by themselves.

use crate::rig::{CommandOutput, Place, playbook};

const HELLO: &str = "workflow:\n- {step: hello, tool: {kind: shell, command: 'echo hello'}}\n";

#[test]
fn commands_in_the_folder_of_a_server_ask_it() {
    let host = Place::new();
    host.write("hello.yaml", &playbook("hello", HELLO));
    let _server = host.serve();
    host.windlass(&["run", "hello.yaml"]).expect(0).says("hello | hello");
    assert!(host.windlass(&["executions", "list"]).expect(0).out.contains("completed"));
    assert!(host.windlass(&["workflows", "list"]).expect(0).out.contains("hello"));
    host.given(&["secrets", "set", "key"], "a-long-value").expect(0);
    host.windlass(&["secrets", "rotate"]).expect(0).says("1 secret under the new master key");
    host.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn without_a_setting_data_are_in_the_folder_of_the_definition() {
    let place = Place::new();
    place.write("hello.yaml", &playbook("hello", HELLO));
    let mut command = place.command(&["run", "hello.yaml"]);
    command.env_remove("WINDLASS_DATA");
    CommandOutput::of(command).expect(0).says("hello | hello");
    assert!(place.path(".windlass/windlass.db").exists() && !place.data().exists());
}

#[test]
fn the_owners_token_is_found_for_the_url_of_the_folders_server_alone() {
    let (host, other) = (Place::new(), Place::new());
    let (server, stranger) = (host.serve(), other.serve());
    host.windlass(&["executions", "list", "--url", server.url()]).expect(0);
    host.windlass(&["executions", "list", "--url", stranger.url()])
        .expect(2)
        .says("Authorization: Bearer TOKEN");
}

#[test]
fn commands_open_the_folder_of_a_server_that_has_ended() {
    let host = Place::new();
    host.write("hello.yaml", &playbook("hello", HELLO));
    host.serve().kill();
    host.windlass(&["run", "hello.yaml"]).expect(0).says("hello | hello");
}
