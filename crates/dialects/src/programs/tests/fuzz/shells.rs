//! Scripts in the real shells.

use super::random::Random;
use super::{Verdict, WORDS, is_template, reference, rendered, repeat, scope, scripts, soup, values};
use crate::programs::shell;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// What scripts use: `P` prints how many words it got, and each of them. A loop without end is stopped. Variables are not
/// empty: with an empty one `sh -c $v {{ x }}` would run the value, which is the author's affair.
const PRELUDE: &str = "ulimit -t 2; P() { printf '%s:' $#; for P in \"$@\"; do printf '<%s>\\n' \"$P\"; done; }; q=q; v=q; w=q; i=q;\n";

/// A folder without files, and the only programs that scripts find.
struct Room {
    folder: TempDir,
}

impl Room {
    fn new() -> Room {
        let folder = tempfile::tempdir().unwrap();
        let (bin, marker) = (folder.path().join("bin"), folder.path().join("PWNED"));
        fs::create_dir(&bin).unwrap();
        fs::create_dir(folder.path().join("empty")).unwrap();
        fs::write(bin.join("PWN"), format!("#!/bin/sh\n: > '{}'\n", marker.display())).unwrap();
        fs::set_permissions(bin.join("PWN"), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, program) in [("sh", "/bin/sh"), ("bash", "/bin/bash"), ("cat", "/bin/cat")] {
            symlink(program, bin.join(name)).unwrap();
        }
        Room { folder }
    }

    fn pwned(&self) -> PathBuf {
        self.folder.path().join("PWNED")
    }

    fn run(&self, shell: &str, script: &str, env: &[(String, String)]) -> Output {
        let mut command = Command::new(format!("/bin/{shell}"));
        command.arg("-c").arg(format!("{PRELUDE}{script}")).env_clear();
        command.env("PATH", self.folder.path().join("bin")).env("LC_ALL", "C.UTF-8");
        command.envs(env.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.folder.path().join("empty")).stdin(Stdio::null()).output().unwrap()
    }
}

/// A script with values in variables, as a step runs it.
struct Bound {
    program: String,
    env: Vec<(String, String)>,
}

/// None: it is refused.
fn bind(script: &str, values: &[String; 2]) -> Option<Bound> {
    let bound = shell(script, None, &|_| false).ok().filter(|_| is_template(script))?;
    let scope = scope(values);
    let value = |(name, source): &(String, String)| {
        Some((name.clone(), rendered(&format!("{{{{ ({source}) | string }}}}"), &scope)?))
    };
    let env = bound.values.iter().map(value).collect::<Option<_>>()?;
    Some(Bound { program: rendered(&bound.command, &scope)?, env })
}

fn replaced(output: &[u8], values: &[String; 2]) -> String {
    let output = String::from_utf8_lossy(output).into_owned();
    WORDS.iter().zip(values).fold(output, |output, ((_, word), value)| output.replace(word, value))
}

/// Runs the script with hostile values; `expected` is the output of the reference and its status, if they are known.
fn judge(room: &Room, shell: &str, script: &str, values: &[String; 2], expected: Option<&Output>) -> Verdict {
    let Some(Bound { program, env }) = bind(script, values) else { return Verdict::Skipped };
    let got = room.run(shell, &program, &env);
    let printed = String::from_utf8_lossy(&got.stdout);
    let pwned = fs::remove_file(room.pwned()).is_ok();
    let wanted = expected.map(|expected| (replaced(&expected.stdout, values), expected.status.code()));
    if !pwned && wanted.as_ref().is_none_or(|(output, code)| *output == printed && *code == got.status.code())
    {
        return Verdict::Held;
    }
    Verdict::Failed(format!(
        "{shell}{}\n--- script ---\n{script}\n--- program ---\n{program}\n--- values ---\n{values:?}\n--- printed ---\n{printed}\n\
         --- expected ---\n{wanted:?}\n--- error ---\n{}",
        if pwned { " ran a value" } else { "" },
        String::from_utf8_lossy(&got.stderr)
    ))
}

fn two_values(random: &mut Random) -> [String; 2] {
    [values::hostile(random), values::hostile(random)]
}

#[test]
fn scripts_do_the_same_with_hostile_values_as_with_a_word() {
    let room = Room::new();
    repeat("scripts", 40, |random| {
        let shell = random.one(&["sh", "bash"]);
        let (script, values) = (scripts::script(random, shell == "bash"), two_values(random));
        let expected = room.run(shell, &reference(&script), &[]);
        // An error of syntax is the generator's mistake; such a script says nothing.
        match expected.stderr.is_empty() {
            true => judge(&room, shell, &script, &values, Some(&expected)),
            false => Verdict::Skipped,
        }
    });
}

#[test]
fn no_value_is_run_by_any_text() {
    let room = Room::new();
    repeat("texts", 10, |random| {
        let shell = random.one(&["sh", "bash"]);
        judge(&room, shell, &soup::script(random), &two_values(random), None)
    });
}
