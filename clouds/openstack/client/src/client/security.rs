//! Calls to Neutron: security groups.

use super::{Client, Deleted, in_pages, read};
use crate::error::ApiError;
use crate::operation;
use crate::wire::{
    NewSecurityGroup, NewSecurityGroupRule, SecurityGroup, SecurityGroupId, SecurityGroupRule,
    SecurityGroupRuleId,
};

impl Client {
    /// All security groups of the project, each with its rules. Neutron also shows those that another
    /// project shares with this one, and to an administrator those of all projects: they are not asked for.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class), as for every call.
    pub async fn security_groups(&self) -> Result<Vec<SecurityGroup>, ApiError> {
        let query = self.session.ticket().await?.of_project();
        let call = read(operation::SECURITY_GROUPS_LIST, &[]);
        let mut groups: Vec<SecurityGroup> = self.list(call, &in_pages(query)).await?;
        let ticket = self.session.ticket().await?;
        groups.retain(|group| !ticket.is_foreign(group.project_id.as_deref()));
        Ok(groups)
    }

    /// Creates a security group; the API gives it rules that let everything out.
    ///
    /// # Repeatability
    ///
    /// None: names need not be unique. If [`ApiError::maybe_applied`], look for it by its name first.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class).
    pub async fn create_security_group(&self, new: &NewSecurityGroup) -> Result<SecurityGroup, ApiError> {
        self.post(operation::SECURITY_GROUPS_CREATE, &[], new).await
    }

    /// Deletes a security group with its rules.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`](crate::Class::Conflict) while a port has it; one that is gone is none.
    pub async fn delete_security_group(&self, id: &SecurityGroupId) -> Result<Deleted, ApiError> {
        self.remove(operation::SECURITY_GROUPS_DELETE, &[id.as_str()])
            .await
    }

    /// Creates a rule of a security group.
    ///
    /// # Errors
    ///
    /// [`Class::Conflict`](crate::Class::Conflict) if there is such a rule.
    pub async fn create_security_group_rule(
        &self,
        new: &NewSecurityGroupRule,
    ) -> Result<SecurityGroupRule, ApiError> {
        self.post(operation::SECURITY_GROUP_RULES_CREATE, &[], new).await
    }

    /// Deletes a rule of a security group.
    ///
    /// # Errors
    ///
    /// See [`Class`](crate::Class); one that is gone is none.
    pub async fn delete_security_group_rule(&self, id: &SecurityGroupRuleId) -> Result<Deleted, ApiError> {
        self.remove(operation::SECURITY_GROUP_RULES_DELETE, &[id.as_str()])
            .await
    }
}
