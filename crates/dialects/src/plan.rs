//! Plans: the shape is recognised, and definitions of it are refused.

use crate::table::{Dialect, has_key};
use windlass_views::DialectView;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "plan",
    shape: "a plan has a list `steps`",
    has_shape: |root| has_key(root, "steps"),
    view: &DialectView::empty("plan"),
    nets_since: 0,
    compiler: None,
};
