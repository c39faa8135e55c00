//! Actions: the shape is recognised, and definitions of it are refused.

use crate::table::{Dialect, has_key};
use windlass_views::DialectView;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "actions",
    shape: "a list `actions`",
    has_shape: |root| has_key(root, "actions"),
    view: &DialectView::empty("actions"),
    nets_since: 0,
    compiler: None,
};
