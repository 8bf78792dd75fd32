//! What a Service asks for. Pure.

use std::sync::Arc;

use bowline_cloud_http::meant;
use bowline_cloud_provider::{Service, ServiceFacts, ServiceKey, ServicesView, facts};
use bowline_plan::{Refusal, refusal};
use jiff::Timestamp;

use crate::annotations::{PREFIX, annotation_table};
use crate::config::Options;
use crate::load_balancer::blocks::Address;
use crate::load_balancer::claim::{self, Claim};
use crate::load_balancer::names::ClusterTags;
use crate::load_balancer::vip::VipAnnotation;

/// What a Service asks for.
pub(crate) enum Intent {
    /// A block and its address.
    Wanted(Wanted),
    /// That its blocks go.
    Absent(Identity),
}

/// By what a Service's blocks are found.
pub(crate) struct Identity {
    /// The Service.
    pub(crate) key: ServiceKey,
    /// Its cluster.
    pub(crate) cluster: ClusterTags,
    /// `spec.loadBalancerIP` as it stands there; empty if it is not set.
    pub(crate) field: String,
    /// The claim on it.
    pub(crate) claim: Option<Claim>,
    /// Whether there is anything in the claim's place, a claim or not.
    pub(crate) has_claim_text: bool,
    /// kube-vip's annotation on it.
    pub(crate) vip: VipAnnotation,
    /// Who this process is.
    pub(crate) holder: String,
    /// The wall time at which the facts were gathered.
    pub(crate) now: Timestamp,
}

/// A Service that wants a block.
pub(crate) struct Wanted {
    pub(crate) identity: Identity,
    /// The Service itself, for its present status.
    pub(crate) service: Arc<Service>,
    /// All Services.
    pub(crate) services: Arc<dyn ServicesView>,
    /// Where a block would be bought.
    pub(crate) location: Option<String>,
    /// The annotation by which it says so.
    pub(crate) location_annotation: String,
    /// Where the configuration says so, in words; `None` if it is the annotation that does.
    pub(crate) location_source: Option<String>,
    /// Where the configuration names the public network, in words.
    pub(crate) network_source: String,
    /// What a block would be described with.
    pub(crate) block_description: Option<String>,
    /// Whether kube-vip's annotation is kept equal to the address.
    pub(crate) keeps_kube_vip_annotation: bool,
    /// Which IP families it asks for.
    pub(crate) families: Families,
    /// Annotations that have no effect, and why; empty if there is none.
    pub(crate) ignored: String,
}

/// The IP families of a Service, as far as they matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Families {
    /// IPv4, or not said.
    Ipv4,
    /// Both.
    Dual,
    /// IPv6 alone.
    Ipv6,
}

/// What to do where the configuration has blocks bought in another location than that of the public network.
pub(crate) fn correct_location(source: &str, location: &str, of_network: &str) -> String {
    format!(
        "whoever runs the manager corrects {source}, which is {location}, to {of_network}, or names a public network that is in {location}"
    )
}

/// What to do where the API denies the public network.
pub(crate) fn correct_network(source: &str, network: &str) -> String {
    format!(
        "whoever runs the manager looks in the portal whether public network {network} is there: if it was deleted, or the ID is wrong, another one \
         belongs into {source}, kube-vip://ID; if it is there, the manager needs credentials of its account"
    )
}

impl Wanted {
    /// What to do where blocks are bought in another location than that of the public network.
    pub(crate) fn correct_location(&self, location: &str, of_network: &str) -> String {
        match &self.location_source {
            Some(source) => correct_location(source, location, of_network),
            None => format!(
                "whoever owns the Service corrects its annotation {} to {of_network}",
                self.location_annotation
            ),
        }
    }
}

impl Intent {
    pub(crate) fn identity(&self) -> &Identity {
        match self {
            Self::Wanted(wanted) => &wanted.identity,
            Self::Absent(identity) => identity,
        }
    }
}

impl Identity {
    /// The address in the field: `None` if it is not set, an error with its text if it is no address.
    pub(crate) fn address(&self) -> Result<Option<Address>, &str> {
        if self.field.is_empty() {
            return Ok(None);
        }
        self.field
            .trim()
            .parse()
            .map(Some)
            .map_err(|_| self.field.as_str())
    }

    /// The claim on the Service if this very process made it.
    pub(crate) fn claim_of_process(&self) -> Option<&Claim> {
        self.claim.as_ref().filter(|claim| claim.holder == self.holder)
    }

    /// The claim on the Service if this very reconcile made it.
    pub(crate) fn own_claim(&self, reconcile: u64) -> Option<&Claim> {
        self.claim_of_process()
            .filter(|claim| claim.reconcile == reconcile)
    }
}

/// Reads what is asked for. Nothing that a deletion does not need is even looked at for one.
pub(crate) fn read(options: &Options, facts: &ServiceFacts) -> Result<Intent, Refusal> {
    let Some(uid) = facts.cluster.uid.clone() else {
        return Err(refusal!(
            "the cluster's ID is not known";
            "the manager must be allowed to get the namespace kube-system"
        ));
    };
    let spec = facts.service.spec.as_ref();
    let identity = Identity {
        key: facts.key(),
        cluster: ClusterTags { uid },
        field: spec
            .and_then(|spec| spec.load_balancer_ip.clone())
            .unwrap_or_default(),
        claim: Claim::of(&facts.service),
        has_claim_text: claim::is_written_on(&facts.service),
        vip: VipAnnotation::of(&facts.service),
        holder: facts.cluster.holder.clone(),
        now: facts.now,
    };
    if !facts.is_wanted {
        return Ok(Intent::Absent(identity));
    }
    let families = spec
        .and_then(|spec| spec.ip_families.as_deref())
        .unwrap_or_default();
    let has = |family: &str| families.iter().any(|present| present == family);
    let annotated = facts::annotation(&facts.service, &options.location_annotation)
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let described = options.block_description.as_ref();
    let described = described.map(|description| description.of(&identity.key, &identity.cluster.uid));
    Ok(Intent::Wanted(Wanted {
        identity,
        block_description: described,
        keeps_kube_vip_annotation: options.keeps_kube_vip_annotation,
        location: options.location.as_deref().or(annotated).map(str::to_owned),
        location_annotation: options.location_annotation.clone(),
        location_source: options.location.as_ref().map(|_| options.location_source.clone()),
        network_source: options.network_source.clone(),
        ignored: ignored(&facts.service, options, annotated),
        families: match (has("IPv4"), has("IPv6")) {
            (false, true) => Families::Ipv6,
            (true, true) => Families::Dual,
            _ => Families::Ipv4,
        },
        service: Arc::clone(&facts.service),
        services: Arc::clone(&facts.services),
    }))
}

/// What annotations of the provider say in vain.
fn ignored(service: &Service, options: &Options, annotated: Option<&str>) -> String {
    let mut texts = Vec::new();
    let unknown = facts::unknown_annotations(service, PREFIX, annotation_table(), meant).into_iter();
    let unknown = unknown.filter(|it| it.key != options.location_annotation);
    let unknown: Vec<String> = unknown.map(|it| it.to_string()).collect();
    if !unknown.is_empty() {
        texts.push(format!("the provider does not know {}", unknown.join(", ")));
    }
    if let (Some(global), Some(annotated)) = (&options.location, annotated)
        && global != annotated
    {
        texts.push(format!(
            "{} is {annotated}, and the location {global} of the configuration counts",
            options.location_annotation
        ));
    }
    texts.join("; ")
}
