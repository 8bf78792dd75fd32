//! Every event that the controllers record: the reasons with their meaning and what the operator can do.
//!
//! Reasons and messages that upstream has are upstream's, because people alert on them; the rest are ours. The pages
//! of reference and the controllers take them from here.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, Node, NodeName};

bowline_plan::events! {
    pub EVENTS;
    SYNCED = "Synced", Normal, on "Node", "Node synced successfully",
        "The Node has its provider ID, addresses and labels, and its uninitialized taint is gone.",
        "Nothing to do.";
    NODE_INIT_FAILED = "NodeInitFailed", Warning, on "Node", "<what failed>",
        "The Node could not be initialised. It keeps its uninitialized taint, so most pods cannot run there. Bowline tries again after 1 to 60 s, and at once when the Node's labels, taints, provider ID or provided IPs change. What somebody undoes more than five times within ten minutes is written again after 5, 10, 20 ... 300 s. The event is recorded again when its text changes, and about every ten minutes.",
        "Follow the text. The instance must have the Node's name, or the Node must have the right provider ID. The credentials must be those of the project of the cluster. A node IP that the kubelet was given must be an address of the instance. The credentials must be allowed to see the instance.";
    NODE_WRITE_REFUSED = "NodeWriteRefused", Warning, on "Node", "Not all that the cloud says of this node can be written, and it goes on without <part>: <error>",
        "The API server refused the addresses or a label of the Node, or the cloud names a value that no label of Kubernetes can have. Everything else is written, and the Node is initialised. What an admission webhook forbids is tried five times before that. Every periodic pass tries again. A refused provider ID keeps the taint on the Node, and the event is NodeInitFailed.",
        "Follow the text. A zone, region or type has to be a label value: up to 63 letters, digits, '-', '_' and '.'. If an admission webhook or policy refuses the write, have it let this account through.";
    NODE_WITHOUT_ADDRESS = "NodeWithoutAddress", Warning, on "Node", "The cloud names no IP address of this instance, and the node has none. Check the networks of the instance, and the settings that choose among them",
        "The Node has neither an InternalIP nor an ExternalIP, so neither the API server nor a load balancer reaches it.",
        "Look at the networks and addresses of the instance in the cloud, and at the settings of the provider that choose networks.";
    FOREIGN_PROVIDER_ID = "ForeignProviderID", Warning, on "Node", "The provider ID <id> is none of this cloud, so the node is not initialized here and keeps its uninitialized taint until the manager of its cloud takes the taint off",
        "The Node has the uninitialized taint and a provider ID of another form than this cloud's. The letters of the scheme before :// count, also whether they are capitals. Where several clouds share a cluster, this is as it should be, and the manager of the other cloud initialises the Node.",
        "If the Node belongs to this cloud, have its kubelet give no provider ID, as k3s does where its own cloud controller is switched off, then delete the Node: its kubelet registers it again. A provider ID cannot be changed.";
    PROVIDER_ID_MISMATCH = "ProviderIDMismatch", Warning, on "Node", "The cloud gives this instance the provider ID <id>, but the Node has <id>",
        "The provider ID of a Node cannot be changed, so the Node keeps the one that it has.",
        "The instance was rebuilt under the name of its Node: drain the Node and delete it. Its kubelet registers it again, with the new ID.";
    INSTANCE_MISSING = "InstanceMissing", Warning, on "Node", "The cloud shows no instance of this node, and its kubelet reports it as ready, so it stays: <why>",
        "Two periodic passes in a row found no instance of the Node, while they found those of other Nodes. A Node that is ready is never deleted. Its addresses and labels are not refreshed, and on some clouds load balancers leave it out.",
        "Look for the instance in the cloud, also in other projects. If it was deleted and something else runs the kubelet, or its ID has changed, drain the Node and delete it.";
    DELETING_NODE = "DeletingNode", Normal, on "Node", "Deleting node <name> because it does not exist in the cloud provider",
        "The Node is not ready, and the cloud has proved that its instance does not exist any more.",
        "Nothing to do.";
    DELETING_NODE_FAILED = "DeletingNodeFailed", Warning, on "Node", "Failed deleting node <name>: <error>",
        "The API server did not delete the Node, or the lease does not keep the note about deletions that has to be written first. Bowline tries again.",
        "Follow the error text. If it names the lease, have the webhook or policy let the annotation bowline/node-deletions of the manager's lease through: `doctor` tries that write. If it says forbidden, the account needs the verb delete on nodes.";
    NODE_DELETION_FROZEN = "NodeDeletionFrozen", Warning, on "Node", "Not deleting node <name>: with these credentials the cloud shows none of the instances of the <n> ready nodes either. Check that the credentials are valid and belong to the project of this cluster",
        "The cloud refused to show even the instances of Nodes that are ready, or reported that they do not exist. Bowline takes this as wrong credentials or the wrong project, and deletes nothing. If the cloud did not show the instance of this Node either, without saying that it is gone, the text says that nothing is proved about it.",
        "Check that the credentials are valid and belong to the project of this cluster.";
    NODE_DELETION_THROTTLED = "NodeDeletionThrottled", Warning, on "Node", "Not deleting node <name> yet: <n> nodes were deleted, or may have been, within <duration>, which is the limit of --node-deletion-share, or of the first window of a leader. It is deleted when its turn comes",
        "Many instances are gone at once: fewer Nodes than the share --node-deletion-share of the cluster are deleted within --node-deletion-window, but up to three in any case. The Node is deleted when its turn comes.",
        "If the instances were removed on purpose, wait, delete the Nodes by hand, or raise --node-deletion-share.";
    CIDR_NOT_AVAILABLE = "CIDRNotAvailable", Normal, on "Node", "Node <name> status is now: CIDRNotAvailable",
        "All pod networks of the cluster are in use, so the Node gets none, and no pod can run there. The Node gets the next pod network that becomes free.",
        "Delete Nodes that nobody needs, or give a larger --cluster-cidr.";
    CIDR_ASSIGNMENT_FAILED = "CIDRAssignmentFailed", Normal, on "Node", "Node <name> status is now: CIDRAssignmentFailed",
        "The pod networks could not be written on the Node. Bowline tries again after 1 to 60 s.",
        "Look for the error in the log. The account needs the verb patch on nodes.";
    POD_NETWORK_OUTSIDE = "PodNetworkOutside", Warning, on "Node", "The pod network <cidr> is not in --cluster-cidr; the node keeps it, and the other nodes get networks of --cluster-cidr",
        "The Node shows a pod network that cannot be read, is outside of --cluster-cidr, or is of a family of which --cluster-cidr names none. The Node keeps it, because the pod networks of a Node cannot be changed.",
        "Correct --cluster-cidr, or drain the Node and delete it: its kubelet registers it again, and it gets a new network.";
    POD_NETWORK_SHARED = "PodNetworkShared", Warning, on "Node", "The pod network <cidr> has addresses in common with that of node <name>: only one of them can be reached. Drain one of the nodes and delete it, and it gets a network of its own when it registers again",
        "Two Nodes have the same pod network, or one within the other, so pods of both have the same addresses. Only one of the Nodes gets a route for a network that is the same: the one that has it already, else the older one.",
        "Drain one of the Nodes and delete it: its kubelet registers it again, and it gets a network of its own. Look for two programs that give pod networks to Nodes, such as this controller beside kube-controller-manager.";
    ENSURING_LOAD_BALANCER = "EnsuringLoadBalancer", Normal, on "Service", "Ensuring load balancer",
        "The load balancer is being created or changed after somebody changed the Service.",
        "Nothing to do.";
    ENSURED_LOAD_BALANCER = "EnsuredLoadBalancer", Normal, on "Service", "Ensured load balancer",
        "The load balancer is as the Service asks for.",
        "Nothing to do.";
    UPDATED_LOAD_BALANCER = "UpdatedLoadBalancer", Normal, on "Service", "Updated load balancer with new hosts",
        "Nodes changed, and the members of the load balancer were changed with them.",
        "Nothing to do.";
    UNAVAILABLE_LOAD_BALANCER = "UnAvailableLoadBalancer", Warning, on "Service", "There are no available nodes for LoadBalancer",
        "No Node may become a member of the load balancer, so the load balancer drops all traffic.",
        "Add Nodes, or remove the label node.kubernetes.io/exclude-from-external-load-balancers from Nodes.";
    SYNC_LOAD_BALANCER_FAILED = "SyncLoadBalancerFailed", Warning, on "Service", "Error syncing load balancer: <error>",
        "The load balancer could not be made as the Service asks for, or could not be deleted. Bowline tries again after 5, 10, 20 ... 300 s.",
        "Follow the error text.";
    UPDATE_LOAD_BALANCER_FAILED = "UpdateLoadBalancerFailed", Warning, on "Service", "Error updating load balancer with new hosts <names> [node names limited, total number of nodes: <n>], error: <error>",
        "The members of the load balancer could not be changed after a change of Nodes. A full sync follows at once.",
        "Follow the error text.";
    DELETING_LOAD_BALANCER = "DeletingLoadBalancer", Normal, on "Service", "Deleting load balancer",
        "The Service is being deleted or no longer asks for a load balancer.",
        "Nothing to do.";
    DELETED_LOAD_BALANCER = "DeletedLoadBalancer", Normal, on "Service", "Deleted load balancer",
        "The load balancer and all its parts are deleted.",
        "Nothing to do.";
    DELETE_LOAD_BALANCER_FAILED = "DeleteLoadBalancerFailed", Warning, on "Service", "Error deleting load balancer: <error>",
        "The Service was deleted without its finalizer, which somebody had removed by hand, and its load balancer could not be deleted. Bowline tries again.",
        "Follow the error text. Bowline tries again as long as this process leads. After that nothing in the cluster names the load balancer any more: look for it in the cloud by the name or the UID of the Service, and delete it there.";
    FINALIZER_REMOVED = "FinalizerRemoved", Warning, on "Service", "the finalizer service.kubernetes.io/load-balancer-cleanup: changed back again and again, by <program>; put back after 5, 10, 20 ... 300 s",
        "Something else than Bowline takes the finalizer off again and again. Without it, a Service that is deleted while no manager runs leaves its load balancer behind. Bowline puts it back at once five times in a row, then less and less often. The program is the one that the API server notes in the managed fields of the Service.",
        "Have that program, such as a controller that renders the Service from a template, keep the finalizers of Services.";
    CHANGED_BACK = "ChangedBack", Warning, on "Node or Service", "<what>: changed back again and again, by <program>; put back after 5, 10, 20 ... 300 s",
        "Something else than Bowline removes, or overwrites, what Bowline writes on the object, for more than five times with less than ten minutes between two of them. Bowline puts it back less and less often, and asks the cloud nothing for that. The program is the one that the API server notes in the managed fields of the object. Who only removes something leaves no note there: then it says another program.",
        "Have that program leave this part of the object alone. Look for a second cloud controller manager, a GitOps tool, a network plugin, or an admission webhook.";
    ANNOTATIONS_FORBIDDEN = "AnnotationsForbidden", Warning, on "Service", "Annotations may not be written on the service, so it is served without them: <error>",
        "The API server forbids Bowline to write annotations on the Service. Bowline serves the Service without them, where the provider can. But if the process is killed, or an answer of the cloud is lost, while an address is being acquired, that address may stay in the cloud and be billed. The event is recorded once for each Service.",
        "Give the account the verb patch on services, as the shipped role does. If an admission policy denies the annotation that the text names, allow it there.";
    OBJECT_NOT_UNDERSTOOD = "ObjectNotUnderstood", Warning, on "Node or Service", "The API server shows this object in a way that cannot be understood, so what was known of it stays in force: <why>",
        "A value of the object is not of the form that the API of Kubernetes gives it. What was known of the object stays in force. If nothing was known of it, a Service is left alone, and of a Node the rest counts. All other objects are served. The event is recorded again when its text changes, and every 15 minutes.",
        "Look at the object with kubectl get -o yaml, and correct or delete it. If it is well there, look for a proxy between Bowline and the API server.";
    FAILED_TO_CREATE_ROUTE = "FailedToCreateRoute", Warning, on "Node", "Could not create route <node UID> <cidr> for node <name> after <duration>: <error>",
        "Pods of the Node cannot be reached from other Nodes, and the Node's condition NetworkUnavailable is True. Bowline tries again after --route-reconciliation-period at the latest; what the cloud refuses for good, such as a route that exists or a quota that is reached, after 5, 10, 20 ... 1800 s, and at once when the Node's addresses, provider ID or pod networks change. The event is recorded when the error is new, then every 15 minutes at most.",
        "Follow the error text.";
}

/// Whom to look for where something puts the taint of a new Node back.
pub const LOOK_FOR_ANOTHER: &str = "look for another cloud controller manager, a mutating admission webhook, or a program that writes Nodes from a template";

/// The text of [`PROVIDER_ID_MISMATCH`], where the cloud knows the instance of a Node under another ID, this one.
#[must_use]
pub fn other_provider_id(id: &str, node: &Node) -> String {
    let shown = node.provider_id.as_deref().unwrap_or_default();
    format!("The cloud gives this instance the provider ID {id}, but the Node has {shown}")
}

/// The text of [`NODE_DELETION_FROZEN`]: none of the instances of this many Nodes is seen that are ready.
pub(crate) fn deletion_frozen(
    node: &Node,
    ready: usize,
    is_proved: bool,
    refusal: Option<&CloudError>,
) -> String {
    format!(
        "Not deleting node {}: {}with these credentials the cloud shows none of the instances of the {ready} ready nodes either. Check that the credentials are valid and belong to the project of this cluster{}",
        node.name,
        if is_proved {
            ""
        } else {
            "nothing is proved about its instance, and "
        },
        refusal.map_or_else(String::new, |error| format!(". The cloud answered: {error}")),
    )
}

/// The text of [`NODE_DELETION_THROTTLED`].
pub(crate) fn deletion_throttled(node: &Node, recent: usize, window: Duration) -> String {
    format!(
        "Not deleting node {} yet: {recent} nodes were deleted, or may have been, within {window:?}, which is the limit of --node-deletion-share, or of the first window of a leader. It is deleted when its turn comes",
        node.name
    )
}

/// The text of [`POD_NETWORK_OUTSIDE`].
pub(crate) fn outside_network(networks: &str) -> String {
    format!(
        "The pod network {networks} is not in --cluster-cidr; the node keeps it, and the other nodes get networks of --cluster-cidr"
    )
}

/// The text of [`POD_NETWORK_SHARED`].
pub(crate) fn shared_network(network: &str, other: &NodeName) -> String {
    format!(
        "The pod network {network} has addresses in common with that of node {other}: only one of them can be reached. Drain one of the nodes and delete it, and it gets a network of its own when it registers again"
    )
}
