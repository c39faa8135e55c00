//! Authentication and authorisation: callers, their tenants, credentials and roles.

mod caller;
pub(crate) mod cookie;
mod credential;
mod directory;
mod jwt;
mod owner;
mod role;
mod token;

pub(crate) use caller::{Caller, FolderOwner, OWNER};
pub(crate) use credential::Credential;
pub(crate) use directory::{Directory, SESSION_PREFIX, User};
pub(crate) use jwt::{Holder, Jwt};
pub use owner::OWNER_FILE;
pub(crate) use owner::owner_token;
pub(crate) use role::Permission;
pub use role::Role;
pub(crate) use token::{Digest, Token};
