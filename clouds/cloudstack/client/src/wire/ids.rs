//! Ids, one type per kind of object, so that none is taken for another.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        ///
        /// Opaque; the server makes UUIDs.
        #[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The id as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether it is that of nothing: the default, where the server names none.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                super::opaque(deserializer).map(Self)
            }
        }

        /// So that texts find it in maps, and a list of them is joined as texts are.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

id!(
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
