//! Random texts and expressions: nothing panics, and any value that plain minijinja computes is the same here.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use proptest::test_runner::RngSeed;
use serde_json::{Map, Value, json};
use windlass_expr::{EvalError, Expr, Template};

/// Words of the language and of its errors, separated by two spaces.
const PIECES: &str = "{{  }}  {%  %}  {#  #}  {{-  -%}  (  )  [  ]  {  }  ,  :  .  |  ~  +  -  *  /  //  %  **  ==  !=  <  >=  =  \
    \"  '  \\  \\u12  \n  \0  é  🦀  0  1e9  9223372036854775808  0x  1_0  .5  if  else  elif  endif  for  in  endfor  set  \
    endset  with  filter  endfilter  raw  endraw  is  not  and  or  none  true  ctx  ctx.x  loop  upper  range  recursive";

/// Names that `scope` knows, and some that it does not.
const LEAVES: &str = "0  1  2  3  0.5  1e3  true  false  none  ''  'a'  'b c'  \"é\\n\"  ctx.x  ctx.s  ctx.list  ctx.map  ctx['x']  \
    ctx  nope  nope.deep  ctx.nope  []  {}  ()";

const OPERATORS: &str = "+  -  *  /  //  %  ~  ==  !=  <  >=  in  not in  and  or";

const POSTFIXES: &str = "|list  |length  |upper  |string  |tojson  |join('-')  |sort  |unique  |first  |last  |reverse  |sum  \
    |default(1)  |int  |batch(2)  |items  |map('string')  |trim('a')  |title  |replace('a', 'bb')  |split('b')  |indent(2, true)  \
    |urlencode  |e  |abs  |round(1)  |min  |max  |select('string')  |zip([1, 2])  |slice(2)  |dictsort  |format(1, 2)  |bool  \
    |lines  .x  .upper()  .items()  .get('x', 1)  .split()  .count(1)  .keys()  .join([1, 2])  .strip()  .startswith('a')  \
    .format(1)  [0]  [-1]  [ctx.x]  [1:]  [:2]  [::2]  ['x']   is defined   is string   is not none   is even   is eq 1  \
     is in [1, 'a']   is mapping  |strict_each('map', it)  \
    |strict_each('filter', it is string)  |strict_each('any', it == [1]|strict_each('map', it))";

/// Filters that return lists here and lazy values in minijinja, which compare differently. So do `+` and `*` of lists.
const LAZY: &str = "[1:]  [:2]  [::2]  |items  |zip  |reverse  .items()  .keys()  |map  |batch";

fn one_of(words: &'static str) -> impl Strategy<Value = &'static str> + Clone {
    select(words.split("  ").collect::<Vec<_>>())
}

/// Generates expressions with and without parentheses, so that precedence is covered too.
fn expression() -> impl Strategy<Value = String> {
    one_of(LEAVES).prop_map(str::to_owned).prop_recursive(5, 40, 4, |a| {
        let two = (a.clone(), a.clone());
        let three = (a.clone(), a.clone(), a.clone());
        let operation = (a.clone(), one_of(OPERATORS), a.clone());
        let postfixed = (a.clone(), one_of(POSTFIXES));
        Union::new([
            operation.clone().prop_map(|(a, op, b)| format!("{a} {op} {b}")).boxed(),
            operation.prop_map(|(a, op, b)| format!("({a}) {op} ({b})")).boxed(),
            postfixed.clone().prop_map(|(a, postfix)| format!("{a}{postfix}")).boxed(),
            postfixed.prop_map(|(a, postfix)| format!("({a}){postfix}")).boxed(),
            three.clone().prop_map(|(a, b, c)| format!("{a} if {b} else {c}")).boxed(),
            three.prop_map(|(a, b, c)| format!("{a} < {b} <= {c}")).boxed(),
            two.clone().prop_map(|(a, b)| format!("[{a}, {b}]")).boxed(),
            two.clone().prop_map(|(a, b)| format!("({a}, {b})")).boxed(),
            two.prop_map(|(a, b)| format!("{{'x': {a}, 'y': {b}}}")).boxed(),
            a.clone().prop_map(|a| format!("-{a}")).boxed(),
            a.prop_map(|a| format!("not {a}")).boxed(),
        ])
    })
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..5).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ab é,\n]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[abxk]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn scope() -> impl Strategy<Value = Map<String, Value>> {
    (json_value(), json_value(), json_value(), json_value()).prop_map(|(x, s, list, map)| {
        Map::from_iter([("ctx".to_owned(), json!({"x": x, "s": s, "list": list, "map": map}))])
    })
}

fn text() -> impl Strategy<Value = String> {
    let pieces = || prop::collection::vec(one_of(PIECES), 0..25);
    prop_oneof![
        ".{0,40}",
        pieces().prop_map(|pieces| pieces.concat()),
        pieces().prop_map(|pieces| pieces.join(" ")),
        pieces().prop_map(|pieces| format!("{{{{ {} }}}}", pieces.join(" "))),
        (expression(), expression())
            .prop_map(|(a, b)| format!("{{% for x in {a} %}}{{{{ x|upper ~ {b} }}}}{{% endfor %}}")),
        (expression(), expression())
            .prop_map(|(a, b)| format!("{{% set ctx = {a} %}}{{% if {b} %}}{{{{ ctx.x }}}}{{% endif %}}")),
    ]
}

fn minijinja_alone() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Chainable);
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env
}

/// Returns whether the evaluation caught a panic.
fn is_panic(error: &EvalError) -> bool {
    error.to_string().contains("cannot evaluate")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_compiles_or_is_refused(text in text(), scope in scope()) {
        if let Ok(expr) = Expr::compile(&text) {
            prop_assert!(!expr.eval(&scope).is_err_and(|error| is_panic(&error)), "{text}");
        }
        if let Ok(template) = Template::compile(&json!([text])) {
            prop_assert!(!template.render(&scope).is_err_and(|error| is_panic(&error)), "{text}");
        }
    }

    #[test]
    fn a_value_equals_that_of_minijinja(source in expression(), scope in scope()) {
        let env = minijinja_alone();
        let (expr, code) = match (Expr::compile(&source), env.compile_expression(&source)) {
            (Ok(expr), Ok(code)) => (expr, code),
            (Err(_), Err(_)) => return Ok(()),
            // minijinja reports this on evaluation, this crate on compilation.
            (Err(error), Ok(_)) if error.message.contains("unknown") || error.message.contains("name") => return Ok(()),
            (ours, alone) => {
                let alone = alone.map(drop);
                return Err(TestCaseError::fail(format!("{source}: {ours:?} {alone:?}")));
            }
        };
        let ours = expr.eval(&scope);
        prop_assert!(!ours.as_ref().is_err_and(is_panic), "{source}");
        let alone = code.eval(Serde(&scope)).ok().and_then(|value| serde_json::to_value(&value).ok());
        let is_lazy = LAZY.split("  ").any(|word| source.contains(word))
            || source.contains(['+', '*']) && source.contains(['<', '>']);
        if let (Ok(ours), Some(alone), false) = (&ours, &alone, is_lazy) {
            prop_assert_eq!(ours, alone, "{}", source);
        }
    }

    #[test]
    fn text_and_literals_are_kept(text in any::<String>()) {
        let text = text.replace('{', "(");
        let template = Template::compile(&json!(format!("x{text}{{{{ 1 }}}}"))).unwrap();
        prop_assert_eq!(template.render(&Map::new()), Ok(json!(format!("x{text}1"))));
        let literal = format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
        prop_assert_eq!(Expr::compile(&literal).unwrap().eval(&Map::new()), Ok(json!(text)));
    }
}
