//! Every annotation of the provider.

use bowline_cloud_provider::{AnnotationSpec, Changeability, ValueKind};
use bowline_plan::Impact;

/// The location of a Service's block, unless the operator chose another name.
pub(crate) const LOCATION: AnnotationSpec = AnnotationSpec {
    key: "phoenixnap.com/ip-location",
    kind: ValueKind::Text,
    default: "",
    change: Changeability::CreationOnly,
    impact: Impact::None,
    doc: "Where the IP block of a Service is bought, such as `NLD`, if no global location is set. The operator can choose \
          another name for this annotation.",
};

/// See [`crate::claim`].
pub(crate) const CLAIM: AnnotationSpec = AnnotationSpec {
    key: "phoenixnap.com/ip-block-claim",
    kind: ValueKind::Text,
    default: "",
    change: Changeability::Written,
    impact: Impact::None,
    doc: "Which process is buying an IP block for the Service, and since when. It goes away when the block is there.",
};

/// On Nodes.
pub(crate) const SERVER_ID: AnnotationSpec = AnnotationSpec {
    key: "phoenixnap.com/server-id",
    kind: ValueKind::Text,
    default: "",
    change: Changeability::Written,
    impact: Impact::None,
    doc: "On Nodes, while load balancing is on: the ID of the Node's server.",
};

static TABLE: &[AnnotationSpec] = &[LOCATION, CLAIM, SERVER_ID];

/// All annotations of the provider, in the order of the reference page.
#[must_use]
pub fn annotation_table() -> &'static [AnnotationSpec] {
    TABLE
}
