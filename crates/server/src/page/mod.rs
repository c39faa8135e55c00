//! The web page: its files, and the links that sign a browser in.

mod assets;
mod codes;

pub(crate) use assets::{asset, index, is_page_request};
pub(crate) use codes::{CODE_MINUTES, SignInCodes};
