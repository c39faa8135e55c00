//! Scripts with values, run by real shells: each prints exactly the value, for every value and quoting.

use proptest::prelude::*;
use serde_json::{Map, json};
use std::process::Command;
use windlass_expr::Template;

/// Scripts that print the value of `x`, with brackets around it.
const PLACES: [&str; 34] = [
    "printf '[%s]' {{ x }}",
    "printf '[%s]' \"{{ x }}\"",
    "printf '[%s]' '{{ x }}'",
    "printf '%s%s%s' '['{{ x }}']' \"\" ''",
    "printf %s \"[{{ x }}]\"",
    "printf %s '[{{ x }}]'",
    "printf %s [\\{{ x }}]",
    "v={{ x }}; printf '[%s]' \"$v\"",
    "v=\"{{ x }}\"; printf '[%s]' \"$v\"",
    "v='{{ x }}' && printf '[%s]' \"$v\"",
    "printf '[%s]' \"$(printf '%s.' {{ x }} | sed 's/\\.$/./')\" | sed '$ s/\\.\\]$/]/'",
    "printf '[%s]' \"$(printf '%s.' '{{ x }}')\" | sed '$ s/\\.\\]$/]/'",
    "printf '[%s]' \"`printf '%s.' {{ x }}`\" | sed '$ s/\\.\\]$/]/'",
    "printf '[%s]' \"`printf '%s.' \\\"{{ x }}\\\"`\" | sed '$ s/\\.\\]$/]/'",
    "v=`printf '%s.' \"{{ x }}\"`; printf '[%s]' \"${v%.}\"",
    "v=`(printf '%s' {{ x }}); echo .`; printf '[%s]' \"${v%.}\"",
    "v=$(cat <<END\n{{ x }}.\nEND\n); printf '[%s]' \"${v%.}\"",
    "v=$(cat <<'END'\n{{ x }}.\nEND\n); printf '[%s]' \"${v%.}\"",
    "v=$(cat <<-\"END OF IT\"\n\t{{ x }}.\n\tEND OF IT\n); printf '[%s]' \"${v%.}\"",
    "v=$(cat <<E\\'D\n{{ x }}.\nE'D\n); printf '[%s]' \"${v%.}\"",
    "v=$(cat <<\"E\\\"'D\"\n{{ x }}.\nE\"'D\n); printf '[%s]' \"${v%.}\"",
    "v=$(cat <<A; cat <<'B'\n$(cat <<C\n{{ x }}.\nC\n)\nA\n.\nB\n); printf '[%s]' \"${v%???}\"",
    "cat <<'END' >/dev/null; printf '[%s]' {{ x }}\n$(exit 1) `no` \\ {{ x }}\nEND\n",
    "printf '[%s]' \"${undefined_:-{{ x }}}\"",
    "printf '[%s]' ${undefined_:-{{ x }}}",
    "# it's {{ x }}\nprintf '[%s]' {{ x }} # \"{{ x }}",
    "if true; then (printf '[%s]' {{ x }}); fi",
    "for v in {{ x }}; do printf '[%s]' \"$v\"; done",
    "case {{ x }} in '{{ x }}') printf '[%s]' {{ x }};; *) printf no;; esac",
    "f() { printf '[%s]' \"$1\"; }; f {{ x }}",
    "set -- {{ x }} b; printf '[%s]' \"$1\"; [ $# = 2 ]",
    "export V={{ x }}; sh -c 'printf \"[%s]\" \"$V\"'",
    "sh -c 'printf \"[%s]\" \"$1\"' _ {{ x }}",
    "test {{ x }} = \"{{ x }}\" && printf '[%s]' {{ x }}",
];

/// The same for shells with more syntax than POSIX has.
const BASH: [&str; 8] = [
    "printf '[%s]' $'\\x41'{{ x }} | sed '1 s/^\\[A/[/'",
    "printf '[%s]' $'{{ x }}'",
    "a=({{ x }} '{{ x }}'); printf '[%s]' \"${a[1]}\"; set -- \"${a[@]}\"; [ $# = 2 ]",
    "[[ {{ x }} == \"{{ x }}\" ]] && printf '[%s]' {{ x }}",
    "v=$(cat <<< {{ x }}.); printf '[%s]' \"${v%.}\"",
    "v=$(cat <(printf %s. {{ x }})); printf '[%s]' \"${v%.}\"",
    "set -- {a,{{ x }}}; printf '[%s]' \"$2\"",
    "declare V={{ x }}; printf '[%s]' \"$V\"",
];

const HOSTILE: [&str; 26] = [
    "plain",
    "",
    " two words ",
    "; touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "'; touch PWNED; '",
    "\"; touch PWNED; \"",
    "'$(touch PWNED)'",
    "a\nb\ntouch PWNED\n#",
    "\\",
    "\\'",
    "\\\"",
    "'",
    "\"",
    "*",
    "~root",
    "-n",
    "--help",
    "${IFS}touch${IFS}PWNED",
    "\nEND\ntouch PWNED\n",
    "${x}$(($(touch PWNED)))",
    "&& touch PWNED || touch PWNED",
    "| sh",
    "é😀\u{2028}\u{7f}\u{1}",
    "a[$(touch PWNED)]",
];

fn printed(shell: &str, script: &str, value: &str) -> String {
    let bound = super::shell(script, None, &|name| name == "WINDLASS_VALUE_1")
        .unwrap_or_else(|refusal| panic!("{script}: {refusal:?}"));
    let scope = Map::from_iter([("x".to_owned(), json!(value))]);
    let render = |source: &str| {
        let template = Template::compile(&json!(source)).unwrap_or_else(|error| panic!("{source}: {error}"));
        template.render(&scope).expect("it has a value").as_str().expect("a text").to_owned()
    };
    let script = render(&bound.command);
    assert!(value.len() < 4 || !script.contains(value), "the value is in the program: {script}");
    let env =
        bound.values.iter().map(|(name, source)| (name, render(&format!("{{{{ ({source}) | string }}}}"))));
    // An empty folder: an unquoted pattern matches no file.
    let folder = tempfile::tempdir().expect("a folder");
    let ran = Command::new(shell).arg("-c").arg(&script).envs(env).current_dir(folder.path()).output();
    let ran = ran.expect("it runs");
    assert!(ran.status.success(), "{shell}: {script}\n{value:?}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(!folder.path().join("PWNED").exists(), "{script}\n{value:?}");
    String::from_utf8(ran.stdout).expect("UTF-8")
}

#[test]
fn hostile_values_are_printed_as_they_are_in_every_quoting() {
    let everywhere = PLACES.iter().flat_map(|place| [("sh", place), ("bash", place)]);
    for (shell, place) in everywhere.chain(BASH.iter().map(|place| ("bash", place))) {
        for value in HOSTILE {
            assert_eq!(printed(shell, place, value), format!("[{value}]"), "{shell}: {place}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    #[test]
    fn any_value_is_printed_as_it_is(place in 0..PLACES.len(), value in "[ -~\n\t'\"\\\\$`é]{0,40}") {
        prop_assert_eq!(printed("sh", PLACES[place], &value), format!("[{value}]"), "{}", PLACES[place]);
    }

    /// For every script: no value is in it, and reading it ends.
    #[test]
    fn any_script_is_read(script in "([ -~\n]|\\{\\{ x \\}\\}|<<E\n|\\$\\(|`|\"|'|\\$\\{|\\[\\[ |case | in |esac|;;){0,60}") {
        let _ = super::shell(&script, None, &|_| false);
    }
}

#[test]
fn numbers_stay_numbers_in_arithmetic() {
    for (script, expected) in [
        ("echo $(( {{ x }} + 1 ))", "6\n"),
        ("n={{ x }}; echo $((n * 2))", "10\n"),
        ("n=\"{{ x }}\"\necho $(( $n - {{ x }} ))", "0\n"),
    ] {
        assert_eq!(printed("sh", script, "5"), expected, "{script}");
    }
    let bound = super::shell("echo $(( {{ x }} ))", None, &|_| false).expect("it is bound");
    assert_eq!(bound.values[0].1, "(x) | int");
    let scope = Map::from_iter([("x".to_owned(), json!("a[$(touch PWNED)]"))]);
    assert!(Template::compile(&json!("{{ (x) | int }}")).expect("good").render(&scope).is_err());
}

#[test]
fn where_a_value_would_be_a_program_it_is_refused() {
    let mut wrong = Vec::new();
    for (script, place) in [
        ("{{ x }}", "where the name of a command is"),
        ("true; {{ x }} -v", "where the name of a command is"),
        ("v={{ x }}; $v", "where the name of a command is"),
        ("./bin/{{ x }}", "where the name of a command is"),
        ("sudo {{ x }}", "where the name of a command is"),
        ("eval ls {{ x }}", "in what `eval` evaluates"),
        ("v=\"ls {{ x }}\"; eval \"$v\"", "in what `eval` evaluates"),
        ("v=$(cat {{ x }})\nif true; then eval \"$v\"; fi", "in what `eval` evaluates"),
        ("command eval {{ x }}", "in what `eval` evaluates"),
        ("trap {{ x }} EXIT", "in what `trap` evaluates"),
        ("trap \"rm {{ x }}\" EXIT", "in what `trap` evaluates"),
        ("alias l={{ x }}", "in what `alias` evaluates"),
        ("let n={{ x }}", "in what `let` evaluates"),
        (". {{ x }}", "in what `.` evaluates"),
        ("source <(echo {{ x }})", "in what `source` evaluates"),
        ("sh -c {{ x }}", "in a script that sh runs"),
        ("sh -c 'echo {{ x }}'", "in a script that sh runs"),
        ("/bin/bash -ec \"echo {{ x }}\"", "in a script that bash runs"),
        ("env A=1 bash -o pipefail -c \"{{ x }}\"", "in a script that bash runs"),
        ("sudo -u bob bash -lc \"{{ x }}\"", "in a script that bash runs"),
        ("find . -exec sh -c 'ls {{ x }}' \\;", "in a script that sh runs"),
        ("xargs sh -c {{ x }}", "in a script that sh runs"),
        ("python3.11 -c 'print({{ x }})'", "in a script that python runs"),
        ("perl -ne 's/{{ x }}//'", "in a script that perl runs"),
        ("node -e {{ x }}", "in a script that node runs"),
        ("S=sh; $S -c {{ x }}", "in a script that a command of an unknown name runs"),
        ("\"$@\" -c {{ x }}", "in a script that a command of an unknown name runs"),
        ("echo {{ x }} | sh", "in what sh reads as its program"),
        ("echo {{ x }} | tee f | sudo -u bob bash -s", "in what bash reads as its program"),
        ("{ echo a; echo {{ x }}; } | sh -x", "in what sh reads as its program"),
        ("(echo {{ x }}) | sh", "in what sh reads as its program"),
        ("for i in a; do echo {{ x }}; done | sh", "in what sh reads as its program"),
        ("echo {{ x }} |\n bash", "in what bash reads as its program"),
        ("bash <<< {{ x }}", "in what bash reads as its program"),
        ("bash <(echo {{ x }})", "in what bash reads as its program"),
        ("sh <<END\necho {{ x }}\nEND", "in what sh reads as its program"),
        ("cat <<END | sh\necho {{ x }}\nEND", "in what sh reads as its program"),
        ("ssh host \"ls {{ x }}\"", "in a script that ssh runs"),
        ("ssh -o {{ x }} host", "in an option of ssh"),
        ("awk -F: '/{{ x }}/ {print}' f", "in a program of awk"),
        ("sed -i 's/a/{{ x }}/' f", "in a program of sed"),
        ("sed -ne \"{{ x }}\" f", "in a program of sed"),
        ("export {{ x }}", "where the name or the number of a variable is"),
        ("declare -i n={{ x }}", "where the name or the number of a variable is"),
        ("read {{ x }}", "where the name or the number of a variable is"),
        ("printf -v {{ x }} 1", "where the name of a variable is"),
        ("a[{{ x }}]=1", "in an index, which is evaluated"),
        ("v={{ x }}; a[$v]=1", "in an index, which is evaluated"),
        ("v={{ x }}; a=(1 [$v]=1)", "in an index, which is evaluated"),
        ("a=([{{ x }}]=1)", "in an index, which is evaluated"),
        ("v={{ x }}; w=$v; echo ${a[${w}]}", "in `w`, which arithmetic evaluates"),
        ("echo $(( $(cat {{ x }}) ))", "in what arithmetic evaluates"),
        ("echo $(( `cat {{ x }}` ))", "in what arithmetic evaluates"),
        ("echo $(( ${n:-{{ x }}} ))", "in what arithmetic evaluates"),
        ("v={{ x }}; declare -i q; q=$v", "in `q`, which arithmetic evaluates"),
        ("v={{ x }}; w=$v; declare -i w; w+=1", "in `w`, which arithmetic evaluates"),
        ("declare -i w; for w in {{ x }}; do echo; done", "in `w`, which arithmetic evaluates"),
        ("select w in {{ x }}; do eval $w; done", "in what `eval` evaluates"),
        ("declare -n r={{ x }}", "where the name or the number of a variable is"),
        ("v={{ x }}; echo ${v@P}", "in what `@P` evaluates"),
        ("a=(1 ;\nlet {{ x }}", "in a script with `;` in an array, which no shell reads"),
        ("$SUDO {{ x }}", "after a name that may be empty"),
        ("command `find_it` \"{{ x }}\"", "after a name that may be empty"),
        ("echo a >& {{ x }}", "after `>&`, where bash evaluates it"),
        ("v={{ x }}; echo a 2>&1$v", "after `>&`, where bash evaluates it"),
        ("echo ${a#{{ x }}}", "inside of `${ }`, where it would be a pattern"),
        ("v={{ x }}; echo ${!v}", "where the name of a variable is"),
        ("[[ {{ x }} -eq 1 ]]", "where `[[ ]]` evaluates it"),
        ("for n in {{ x }}; do echo $((n)); done", "in `n`, which arithmetic evaluates"),
        ("echo ${{ x }}", "right after `$`"),
        ("cat <<{{ x }}\n{{ x }}\n", "as the end of a here-document"),
        ("ls {% if x %}-l{% endif %}", "around parts of a program"),
        ("echo $(eval {{ x }})", "in what `eval` evaluates"),
        ("echo `eval {{ x }}`", "in what `eval` evaluates"),
        ("function f { eval {{ x }}; }", "in what `eval` evaluates"),
        ("case a in a) eval {{ x }};; esac", "in what `eval` evaluates"),
        ("echo {{ x }} | xargs -I{} sh -c 'ls {}'", "in what xargs puts into a script"),
    ] {
        let refused = super::shell(script, None, &|_| false).err().map(|refusal| refusal.place);
        if refused.as_deref() != Some(place) {
            wrong.push((script, refused));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_only_looks_like_it_is_not_refused() {
    let mut wrong = Vec::new();
    for script in [
        "eval \"$(ssh-agent -s)\"; echo {{ x }}",
        "trap 'rm -f f' EXIT; echo {{ x }}",
        "sh script.sh {{ x }}",
        "sh -c 'ls \"$1\"' _ {{ x }}",
        "cat f | sh; echo {{ x }}",
        "echo {{ x }} | sh filter.sh",
        "bash -s -- {{ x }} <<'END'\necho \"$1\"\nEND",
        "echo {{ x }} | python3 read.py",
        "ssh -i {{ x }} {{ x }} uptime",
        "awk -v n={{ x }} '{print n}' f",
        "sed --sandbox 's/a/{{ x }}/' f",
        "sed -n '1p' {{ x }}",
        "grep -c {{ x }} f",
        "timeout {{ x }} curl {{ x }}",
        "sudo -u {{ x }} ls",
        "env A={{ x }} ls",
        "export A={{ x }}",
        "docker run -e A={{ x }} image sh -c 'echo \"$A\"'",
        "A={{ x }} make",
        "curl -H \"X: {{ x }}\" -d '{\"a\": \"{{ x }}\"}' url > {{ x }} 2>&1 &",
        "[ {{ x }} -gt 3 ] && echo yes",
        "\"$CMD\" {{ x }}; $CMD -f {{ x }}; $CMD install {{ x }}; $DIR/bin/tool {{ x }}",
        "ls > {{ x }} 2>&1; ls &> {{ x }}; ls >>{{ x }} <{{ x }}",
        "a[$i]={{ x }}; a+=({{ x }} [1]=\"{{ x }}\" <(cat {{ x }}) 'a;b')",
        "v={{ x }}; echo $(( ${v} + 1 )) ${a[${v}]}",
        "declare -i q; q={{ x }}; q+=1",
        "ls {{ '-l' if x else '' }} {{ x }}",
        "case {{ x }} in\n  (a|b) echo 1 ;;\n  *) echo 2\nesac",
        "while read -r l; do echo \"$l\" {{ x }}; done < f",
    ] {
        wrong.extend(super::shell(script, None, &|_| false).err().map(|refusal| (script, refusal)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nesting_has_a_bound() {
    for open in ["$(", "${a:-", "$((", "(", "a=(", "\"$(", "`$("] {
        let refused = super::shell(&format!("{}{{{{ x }}}}", open.repeat(20_000)), None, &|_| false);
        assert!(refused.is_err() || open == "(" || open == "a=(", "{open}");
    }
}
