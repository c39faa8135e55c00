//! Authentication and authorisation: callers, their tenants, credentials and roles.

mod caller;
mod credential;
mod directory;
mod jwt;
mod owner;
mod role;
mod token;

pub use caller::{Caller, FolderOwner};
pub use credential::Credential;
pub use directory::{Directory, User};
pub use jwt::{Holder, Jwt};
pub use owner::{OWNER_FILE, owner_token};
pub use role::{Permission, Role};
pub use token::{Digest, Token};
