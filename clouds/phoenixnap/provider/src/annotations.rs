//! Every annotation of the provider, one entry each. `LOCATION` may have another name by the operator's choice; of `CLAIM`
//! see [`crate::claim`]; `SERVER_ID` stands on Nodes.

use bowline_cloud_provider::{AnnotationSpec, annotations};

annotations! {
    "phoenixnap.com/";
    LOCATION = "ip-location", Text, "", CreationOnly, None,
        "Where the IP block of a Service is bought, such as `NLD`, if no global location is set. The operator can choose another name for this annotation.";
    CLAIM = "ip-block-claim", Text, "", Written, None,
        "Which process is buying an IP block for the Service, and since when. It goes away when the block is there.";
    SERVER_ID = "server-id", Text, "", Written, None,
        "On Nodes, while load balancing is on: the ID of the Node's server.";
}

/// All annotations of the provider, in the order of the reference page.
#[must_use]
pub fn annotation_table() -> &'static [AnnotationSpec] {
    TABLE
}
