//! Every annotation of the provider, one entry each. `LOCATION` may have another name by the operator's choice; of `CLAIM`
//! see [`crate::load_balancer::claim`]; of `VIP_ADDRESS` see [`crate::load_balancer::vip`]; `SERVER_ID` stands on Nodes.

use bowline_cloud_provider::{AnnotationSpec, annotations};

annotations! {
    "phoenixnap.com/";
    LOCATION = "ip-location", Text, "", CreationOnly, None,
        "Where the IP block of a Service is bought, such as `NLD`, if no global location is set. The operator can choose another name for this annotation.";
    CLAIM = "ip-block-claim", Text, "", Written, None,
        "Which process is buying an IP block for the Service, and since when. It goes away when the block is there.";
    VIP_ADDRESS = "kube-vip-address", Text, "", Written, None,
        "The value of `kube-vip.io/loadbalancerIPs` that this program wrote, if the option for that annotation is on. Any other value is somebody else's and stays.";
    SERVER_ID = "server-id", Text, "", Written, None,
        "On Nodes that Services are balanced over: the ID of the Node's server.";
}

/// What all keys begin with.
pub(crate) const PREFIX: &str = "phoenixnap.com/";

/// All annotations of the provider, in the order of the reference page.
#[must_use]
pub fn annotation_table() -> &'static [AnnotationSpec] {
    TABLE
}
