//! Keeps the items of a list for which a condition holds.

use super::fields::Fields;
use crate::failure::{self, failure, invalid};
use crate::halt::Halt;
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;
use windlass_expr::Expr;
use windlass_protocol::{Failure, Tool, codes};

/// Number of items between two checks for a stop.
const BREATH: usize = 256;

pub(super) async fn run(config: &Map<String, Value>, halt: Halt) -> Result<Value, Box<Failure>> {
    let question = Question::read(config)?;
    // Conditions take time on the thread that all units share.
    let kept = spawn_blocking(move || question.kept(&halt)).await;
    kept.unwrap_or_else(|error| Err(failure(codes::WORKER_DEFECT, error.to_string())))
}

struct Question {
    items: Vec<Value>,
    iterator: String,
    condition: Expr,
    /// Other values that the condition reads.
    names: Map<String, Value>,
}

impl Question {
    fn read(config: &Map<String, Value>) -> Result<Question, Box<Failure>> {
        let fields = Fields::of(Tool::Filter, config)?;
        let items = match fields.given("items") {
            Some(Value::Array(items)) => items.clone(),
            Some(other) => return Err(fields.is_not("items", "a list", other)),
            None => return Err(invalid("filter needs `items`, a list; what it reads gave nothing")),
        };
        let source = fields.text("condition")?.ok_or_else(|| invalid("filter needs `condition`"))?;
        let condition = Expr::compile(&source)
            .map_err(|error| failure::expression("`condition` of filter", &json!(source), &error))?;
        let iterator = fields.text("iterator")?.unwrap_or_else(|| "item".to_owned());
        Ok(Question { items, iterator, condition, names: fields.map("names")?.cloned().unwrap_or_default() })
    }

    fn kept(self, halt: &Halt) -> Result<Value, Box<Failure>> {
        let mut scope = self.names;
        let mut kept = Vec::new();
        for (index, item) in self.items.into_iter().enumerate() {
            if index % BREATH == 0 && halt.is_requested() {
                return Err(failure::stopped("filter"));
            }
            scope.insert("index".to_owned(), json!(index));
            scope.insert(self.iterator.clone(), item);
            let holds = self.condition.truthy(&scope).map_err(|error| {
                let place = format!("`condition` of filter, for item {index},");
                failure::expression(&place, &json!(self.condition.source()), &error)
            })?;
            let item = scope.remove(&self.iterator).unwrap_or_default();
            if holds {
                kept.push(item);
            }
        }
        Ok(json!({ "count": kept.len(), "items": kept }))
    }
}
