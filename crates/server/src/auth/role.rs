//! Roles and their permissions.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Maximum number of roles of a caller besides the built-in one, and of characters of each.
const OTHERS_MAX: usize = 50;
const OTHER_MAX: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Owner,
    Admin,
    Developer,
    Member,
    Viewer,
    /// Claims work of groups, and nothing else.
    Worker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Read workflows, executions and their logs.
    View,
    /// Start executions; cancel, retry, pause, resume and answer them.
    Execute,
    /// Create and change workflows, schedules; run with debug output.
    Edit,
    Delete,
    /// Manage tokens, secrets, the webhook secret, the audit log and limits of the tenant.
    Administer,
    /// Claim work of a group and report it.
    Work,
}

impl Role {
    pub const ALL: [Role; 6] =
        [Role::Owner, Role::Admin, Role::Developer, Role::Member, Role::Viewer, Role::Worker];

    #[must_use]
    pub fn may(self, permission: Permission) -> bool {
        use Permission::{Administer, Delete, Edit, Execute, View, Work};
        match self {
            Role::Owner | Role::Admin => {
                matches!(permission, View | Execute | Edit | Delete | Administer | Work)
            }
            Role::Developer => matches!(permission, View | Execute | Edit),
            Role::Member => matches!(permission, View | Execute),
            Role::Viewer => matches!(permission, View),
            Role::Worker => matches!(permission, Work),
        }
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Admin => "admin",
            Role::Developer => "developer",
            Role::Member => "member",
            Role::Viewer => "viewer",
            Role::Worker => "worker",
        }
    }

    #[must_use]
    pub fn of_name(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Checks roles besides the built-in ones. Names of built-in roles are refused, because they carry permissions.
    pub fn check_others(roles: &[String]) -> Result<(), String> {
        if roles.len() > OTHERS_MAX {
            return Err(format!("must have at most {OTHERS_MAX} names"));
        }
        let is_name = |name: &str| (1..=OTHER_MAX).contains(&name.chars().count()) && name.trim() == name;
        for name in roles {
            if !is_name(name) || name.chars().any(char::is_control) {
                return Err(format!(
                    "must have names of 1 to {OTHER_MAX} characters without spaces around them"
                ));
            }
            if Role::of_name(name).is_some() {
                return Err(format!("`{name}` is a built-in role; choose another name"));
            }
        }
        Ok(())
    }

    /// Reports whether a caller with this role may create and revoke tokens with the other role.
    #[must_use]
    pub fn reaches(self, other: Role) -> bool {
        self <= other
    }
}

impl Permission {
    /// Returns the words for the permission in error messages.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Permission::View => "read this",
            Permission::Execute => "start or control executions",
            Permission::Edit => "create or change definitions, or start executions with debug output",
            Permission::Delete => "delete resources",
            Permission::Administer => "administer the tenant",
            Permission::Work => "claim work of a group",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_the_permissions_of_the_specification() {
        let row = |permission: Permission| Role::ALL.map(|role| role.may(permission));
        assert_eq!(row(Permission::View), [true, true, true, true, true, false]);
        assert_eq!(row(Permission::Execute), [true, true, true, true, false, false]);
        assert_eq!(row(Permission::Edit), [true, true, true, false, false, false]);
        assert_eq!(row(Permission::Delete), [true, true, false, false, false, false]);
        assert_eq!(row(Permission::Administer), [true, true, false, false, false, false]);
        assert_eq!(row(Permission::Work), [true, true, false, false, false, true]);
    }

    #[test]
    fn names_of_roles_are_parsed_exactly() {
        for role in Role::ALL {
            assert_eq!(Role::of_name(role.name()), Some(role));
        }
        assert_eq!(Role::of_name("Owner"), None);
        let others = |names: &[&str]| {
            Role::check_others(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(others(&["controller", "head of finance"]), Ok(()));
        for wrong in [&["owner"][..], &[""], &[" a"], &["a\n"], &["x"; 51]] {
            assert!(others(wrong).is_err(), "{wrong:?}");
        }
        assert!(Role::Owner.reaches(Role::Admin) && !Role::Admin.reaches(Role::Owner));
    }
}
