//! Ids, one type per kind of object, so that none is taken for another.

bowline_cloud_http::ids!(
    /// The id of a virtual machine.
    VirtualMachineId
    /// The id of a network.
    NetworkId
    /// The id of a VPC.
    VpcId
    /// The id of a public address.
    PublicIpId
    /// The id of a port forwarding rule.
    PortForwardingId
    /// The id of a load balancer rule.
    RuleId
    /// The id of a stickiness policy.
    StickinessPolicyId
    /// The id of a firewall rule.
    FirewallRuleId
    /// The id of an ACL list.
    AclListId
    /// The id of an item of an ACL list.
    AclItemId
    /// The id of a job.
    JobId
    /// The id of a project.
    ProjectId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_text_or_the_number_of_an_old_server() {
        let id = |json: &str| serde_json::from_str::<JobId>(json).ok();
        assert_eq!(id(r#""1b2c""#), Some("1b2c".into()));
        assert_eq!(id("4711"), Some("4711".into()));
        for json in ["null", "{}", "[1]", "true"] {
            assert_eq!(id(json), None, "{json}");
        }
    }
}
