//! Roles and what they may do: one table.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Owner,
    Admin,
    Developer,
    Member,
    Viewer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// See workflows, executions and their logs.
    View,
    /// Start executions; cancel, retry, pause, resume and answer them.
    Execute,
    /// Create and change workflows, schedules; run with debug output.
    Edit,
    Delete,
    /// Tokens, secrets, webhook secret, audit log and limits of the tenant.
    Administer,
}

impl Role {
    pub const ALL: [Role; 5] = [Role::Owner, Role::Admin, Role::Developer, Role::Member, Role::Viewer];

    #[must_use]
    pub fn may(self, permission: Permission) -> bool {
        use Permission::{Administer, Delete, Edit, Execute, View};
        match self {
            Role::Owner | Role::Admin => matches!(permission, View | Execute | Edit | Delete | Administer),
            Role::Developer => matches!(permission, View | Execute | Edit),
            Role::Member => matches!(permission, View | Execute),
            Role::Viewer => matches!(permission, View),
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
        }
    }

    #[must_use]
    pub fn of_name(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Nobody gives, or takes away, more than they have themselves.
    #[must_use]
    pub fn reaches(self, other: Role) -> bool {
        self <= other
    }
}

impl Permission {
    /// What a refused caller is told about it.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Permission::View => "see this",
            Permission::Execute => "start or control executions",
            Permission::Edit => "create or change definitions, or debug",
            Permission::Delete => "delete",
            Permission::Administer => "administer a tenant",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_roles_is_the_documents() {
        let row = |permission: Permission| Role::ALL.map(|role| role.may(permission));
        assert_eq!(row(Permission::View), [true, true, true, true, true]);
        assert_eq!(row(Permission::Execute), [true, true, true, true, false]);
        assert_eq!(row(Permission::Edit), [true, true, true, false, false]);
        assert_eq!(row(Permission::Delete), [true, true, false, false, false]);
        assert_eq!(row(Permission::Administer), [true, true, false, false, false]);
    }

    #[test]
    fn names_go_there_and_back() {
        for role in Role::ALL {
            assert_eq!(Role::of_name(role.name()), Some(role));
        }
        assert_eq!(Role::of_name("Owner"), None);
        assert!(Role::Owner.reaches(Role::Admin) && !Role::Admin.reaches(Role::Owner));
    }
}
