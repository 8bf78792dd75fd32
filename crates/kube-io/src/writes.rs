//! Writes to Nodes and Services.
//!
//! # Repeatability
//!
//! Each of these is one request and can be sent again. One whose answer was lost may have been made.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{
    AddressNote, LoadBalancerStatus, Node, NodeAddress, NodeName, Service, ServiceKey,
};
use http::Method;
use serde::Serialize;
use serde_json::Value;

use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::{Call, JSON, MERGE, STRATEGIC, node_path, segment};
use crate::patch::{self, NodePatch};
use crate::reads::decode_answer;
use crate::written::{self, Written};

impl Kube {
    /// Changes labels, annotations, provider ID or taints of a Node in one request.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Node is another one by now or, when the taints are changed, in another version.
    pub async fn patch_node(&self, node: &Node, patch: &NodePatch) -> Result<Written, KubeError> {
        self.write_node(&node.name, "", MERGE, &patch::node(node, patch))
            .await
    }

    /// Replaces the addresses of a Node; gives the Node as it is after that.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Node is another one by now.
    pub async fn patch_node_addresses(
        &self,
        node: &Node,
        addresses: &[NodeAddress],
    ) -> Result<Node, KubeError> {
        let body = patch::node_addresses(node, addresses);
        let path = node_path(&node.name, "/status");
        let answer = self
            .exchange(Call::send(Method::PATCH, path, STRATEGIC, &body))
            .await?;
        decode_answer(&answer, &node.name, self).map(Arc::unwrap_or_clone)
    }

    /// Sets the condition `NetworkUnavailable` of a Node.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Node is another one by now.
    pub async fn set_network_unavailable(
        &self,
        node: &Node,
        unavailable: bool,
        reason: &str,
        message: &str,
    ) -> Result<Written, KubeError> {
        let body = patch::network_unavailable(node, unavailable, reason, message, self.clock().now());
        self.write_node(&node.name, "/status", STRATEGIC, &body).await
    }

    /// Gives a Node its pod networks, which can be set once; the first is `spec.podCIDR`.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Node is another one by now, [`KubeError::Invalid`] if it has other networks.
    pub async fn set_pod_networks(&self, node: &Node, networks: &[String]) -> Result<Written, KubeError> {
        self.write_node(&node.name, "", MERGE, &patch::pod_networks(node, networks))
            .await
    }

    /// Deletes this very Node.
    ///
    /// # Errors
    ///
    /// [`KubeError::NotFound`] if it is gone already, [`KubeError::Conflict`] if another Node has its name by now.
    pub async fn delete_node(&self, node: &Node) -> Result<(), KubeError> {
        let path = node_path(&node.name, "");
        let call = Call::send(Method::DELETE, path, JSON, &patch::delete_node(node));
        self.exchange(call).await.map(drop)
    }

    /// Adds or removes the finalizer that protects a balancer. Needs no write permission on Services, only on their
    /// status.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Service is another one or in another version by now.
    pub async fn set_service_finalizer(
        &self,
        service: &Service,
        present: bool,
    ) -> Result<Service, KubeError> {
        self.write_service(service, "/status", patch::service_finalizer(service, present))
            .await
    }

    /// Publishes the addresses of a balancer, and in the same write what is told of those before.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Service is another one by now.
    pub async fn patch_service_status(
        &self,
        service: &Service,
        status: &LoadBalancerStatus,
        note: &AddressNote,
    ) -> Result<Service, KubeError> {
        let content_type = match note {
            AddressNote::Keep => MERGE,
            AddressNote::Remove | AddressNote::Set(_) => STRATEGIC,
        };
        let body = patch::service_status(service, status, note);
        self.send_to_service(service, "/status", content_type, body).await
    }

    /// Writes what is told of addresses before, and leaves the addresses alone.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Service is another one by now.
    pub async fn patch_address_note(
        &self,
        service: &Service,
        note: &AddressNote,
    ) -> Result<Service, KubeError> {
        let body = patch::address_note(service, note);
        self.send_to_service(service, "/status", STRATEGIC, body).await
    }

    /// Sets the condition that tells of trouble with the load balancer, its reason and message; `None` removes it.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Service is another one by now.
    pub async fn set_service_trouble(
        &self,
        service: &Service,
        trouble: Option<(&str, &str)>,
        lasts: Duration,
    ) -> Result<Service, KubeError> {
        let now = self.clock().now();
        let since = now.checked_sub(lasts).unwrap_or(now);
        let body = patch::service_trouble(service, trouble, since);
        self.send_to_service(service, "/status", STRATEGIC, body).await
    }

    /// Sets annotations of a Service; `None` removes one.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Service is another one or in another version by now.
    pub async fn annotate_service(
        &self,
        service: &Service,
        annotations: &[(String, Option<String>)],
    ) -> Result<Service, KubeError> {
        self.write_service(service, "", patch::service_annotations(service, annotations))
            .await
    }

    /// Sets `spec.loadBalancerIP`, and annotations in the same write; an empty text clears it, and none an annotation.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if the Service is another one or in another version by now.
    pub async fn set_load_balancer_ip(
        &self,
        service: &Service,
        ip: &str,
        annotations: &[(String, Option<String>)],
    ) -> Result<Service, KubeError> {
        self.write_service(service, "", patch::load_balancer_ip(service, ip, annotations))
            .await
    }

    /// Has the API server try a write of the Node, or of a part such as `/status`, that would change nothing, and keep nothing:
    /// admission is asked as for a real write. The gate does not hold it, for even if the dry run were overlooked, nothing would change.
    ///
    /// # Errors
    ///
    /// What a real write would meet; and [`KubeError::Invalid`] of a webhook that takes no part in dry runs.
    pub async fn rehearse_node(&self, node: &Node, subresource: &str) -> Result<(), KubeError> {
        let path = node_path(&node.name, subresource);
        self.rehearse(path, &patch::node(node, &NodePatch::default()))
            .await
    }

    /// The same for a Service.
    ///
    /// # Errors
    ///
    /// As for a Node.
    pub async fn rehearse_service(&self, service: &Service, subresource: &str) -> Result<(), KubeError> {
        let path = service_path(&ServiceKey::of(service), subresource);
        let mut body = patch::nothing(service);
        if self.speaker.notes_no_class {
            patch::leave_out_class(&mut body);
        }
        self.rehearse(path, &body).await
    }

    /// The same with the finalizer that protects a balancer, as the first write to a Service puts it on.
    ///
    /// # Errors
    ///
    /// As for a Node, and [`KubeError::Conflict`] if it is in another version by now.
    pub async fn rehearse_finalizer(&self, service: &Service) -> Result<(), KubeError> {
        let mut body = patch::service_finalizer(service, true);
        if self.speaker.notes_no_class {
            patch::leave_out_class(&mut body);
        }
        self.rehearse(service_path(&ServiceKey::of(service), "/status"), &body)
            .await
    }

    /// The same with the note of the class.
    ///
    /// # Errors
    ///
    /// As for a Node.
    pub async fn rehearse_class_note(&self, service: &Service, subresource: &str) -> Result<(), KubeError> {
        let path = service_path(&ServiceKey::of(service), subresource);
        self.rehearse(path, &patch::class_note(service)).await
    }

    async fn rehearse(&self, path: String, body: &impl Serialize) -> Result<(), KubeError> {
        let call = Call::send(Method::PATCH, format!("{path}?dryRun=All"), MERGE, body);
        let answer = self.for_reviews().exchange(call.for_metadata()).await;
        answer.map(drop)
    }

    async fn write_node(
        &self,
        name: &NodeName,
        subresource: &str,
        content_type: &'static str,
        body: &impl Serialize,
    ) -> Result<Written, KubeError> {
        let call = Call::send(Method::PATCH, node_path(name, subresource), content_type, body);
        let answer = self.exchange(call.for_metadata()).await?;
        written::decode::<Node>(&answer, name)
    }

    async fn write_service(
        &self,
        service: &Service,
        subresource: &str,
        body: Value,
    ) -> Result<Service, KubeError> {
        self.send_to_service(service, subresource, MERGE, body).await
    }

    async fn send_to_service(
        &self,
        service: &Service,
        subresource: &str,
        content_type: &'static str,
        mut body: Value,
    ) -> Result<Service, KubeError> {
        if self.speaker.notes_no_class {
            patch::leave_out_class(&mut body);
        }
        let key = ServiceKey::of(service);
        let path = service_path(&key, subresource);
        let answer = self
            .exchange(Call::send(Method::PATCH, path, content_type, &body))
            .await?;
        decode_answer(&answer, &key, self).map(Arc::unwrap_or_clone)
    }
}

fn service_path(key: &ServiceKey, subresource: &str) -> String {
    let (namespace, name) = (segment(&key.namespace), segment(&key.name));
    format!("/api/v1/namespaces/{namespace}/services/{name}{subresource}")
}
