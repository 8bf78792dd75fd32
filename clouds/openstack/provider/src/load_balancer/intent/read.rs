//! Reads a Service, and says everything that is wrong with it in one text.

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloud_provider::k8s::{Service, ServiceSpec};
use bowline_cloud_provider::keys::{LABEL_EXCLUDE_FROM_BALANCERS, TAINT_TO_BE_DELETED};
use bowline_cloud_provider::{AnnotationSpec, IpMode, ServiceFacts, ServiceKey, facts, spelling};
use bowline_openstack_client::{
    KeyKind, ListenerAttributes, LoadBalancerId, MonitorType, NewMonitor, PoolProtocol,
};
use bowline_plan::Refusal;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::namesakes::{self, Namesakes};
use super::settings::{Bars, Flaw, Setting, seconds};
use super::{
    FloatingWish, Identity, Intent, ListenerSettings, PoolSettings, Publish, Sources, Tagging, TlsKey,
    TlsWish, VipWish, Wanted, notes, ports, settings,
};
use crate::config::{ClassOptions, FloatingOptions, LoadBalancerOptions};
use crate::load_balancer::annotations::{self as keys, Reader};
use crate::load_balancer::members::{Family, NodeFilter};
use crate::load_balancer::names;
use crate::load_balancer::subnets::floating::{self, WantedSubnet, Words};
use crate::load_balancer::tags::{self, Added, Tags};
use crate::messages::NO_VALID_NODES;

/// Reads what is asked for. What is to go cannot be wrong: a typo must not block a removal.
pub(crate) fn read(options: &Arc<LoadBalancerOptions>, facts: &ServiceFacts) -> Result<Intent, Refusal> {
    let identity = identity(options, facts);
    if !facts.is_wanted {
        return Ok(Intent::Absent(Box::new(identity)));
    }
    let mut problems = Vec::new();
    let mut wanted = wanted(identity, facts, &mut problems);
    if !problems.is_empty() {
        if !wanted.identity.is_served() {
            return Err(Refusal::new(problems.join("; ")));
        }
        // Ports are then told apart as the Service writes them.
        wanted.listener.tls = None;
        wanted.listener.forwards_for = false;
    }
    wanted.flaws.extend(problems.into_iter().map(|text| Flaw {
        what: "",
        text,
        bars: Bars::All,
    }));
    Ok(Intent::Wanted(Box::new(wanted)))
}

/// How the load balancer of a Service is told from all others.
fn identity(options: &Arc<LoadBalancerOptions>, facts: &ServiceFacts) -> Identity {
    let service = &*facts.service;
    let key = facts.key();
    let uid = service.metadata.uid.clone().unwrap_or_default();
    let text = |spec: &AnnotationSpec| facts::annotation(service, spec.key).filter(|text| !text.is_empty());
    let recorded_address = text(&keys::ADDRESS).map(str::to_owned);
    let classes = facts.services.classes();
    let records_it_too = |other: &Arc<Service>| {
        let recorded = facts::annotation(other, keys::ADDRESS.key);
        let is_other = other.metadata.uid != service.metadata.uid && classes.is_wanted(other);
        is_other && recorded == recorded_address.as_deref()
    };
    let others = facts.services.services();
    let is_going = |other: &&Arc<Service>| {
        let has_begun =
            other.metadata.deletion_timestamp.is_some() || facts::annotation(other, keys::ID.key).is_some();
        has_begun && other.metadata.uid != service.metadata.uid && !classes.is_wanted(other)
    };
    let tag = |other: &Arc<Service>| names::balancer(&facts.cluster.name, &ServiceKey::of(other));
    let asks_for_tags = |other: &&Arc<Service>| {
        let is_other = other.metadata.uid != service.metadata.uid && classes.is_wanted(other);
        is_other && facts::annotation(other, keys::BALANCER_TAGS.key).is_some()
    };
    let tagging = |other: &Arc<Service>| Tagging {
        mark: tag(other),
        balancer: facts::annotation(other, keys::ID.key).map(LoadBalancerId::from),
        tags: listed_tags(other, &keys::BALANCER_TAGS),
    };
    let Namesakes { elder, balancers } = namesakes::of(facts);
    let name = match elder {
        None => names::balancer(&facts.cluster.name, &key),
        // Nothing of the cut name is this Service's, and no object bears a name that is not cut.
        Some(_) => names::whole_balancer(&facts.cluster.name, &key),
    };
    let tagged = others.iter().filter(asks_for_tags);
    Identity {
        going: others.iter().filter(is_going).map(tag).collect(),
        name,
        annotated: namesakes::balancer(service).filter(|_| elder.is_none()),
        elder,
        of_namesakes: balancers,
        legacy_name: names::legacy_balancer(&uid),
        cluster: facts.cluster.name.clone(),
        cluster_uid: facts.services.cluster_uid(),
        is_told_recorded: tells(service, recorded_address.as_deref()),
        shares_address: recorded_address.is_some() && others.iter().any(records_it_too),
        recorded_address,
        is_deleted: service.metadata.deletion_timestamp.is_some(),
        is_published: text(&keys::ADDRESS).is_some() || !facts::published_addresses(service).is_empty(),
        shown: facts::published_addresses(service),
        keeps_floating_ip: text(&keys::KEEP_FLOATING_IP) == Some("true"),
        added_tags: facts::annotation(service, keys::ADDED_TAGS.key)
            .map(Added::read)
            .unwrap_or_default(),
        tagging: tagged.map(tagging).collect(),
        options: Arc::clone(options),
        service: key,
        uid,
        created: service.metadata.creation_timestamp,
    }
}

fn listed_tags(service: &Service, list: &AnnotationSpec) -> BTreeSet<String> {
    let list = facts::annotation(service, list.key).into_iter();
    list.flat_map(tags::listed).map(str::to_owned).collect()
}

/// Whether a Service's status shows this address, or nothing but host names.
fn tells(service: &Service, address: Option<&str>) -> bool {
    let status = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let ingress = status
        .and_then(|status| status.ingress.as_deref())
        .unwrap_or_default();
    let mut addresses = ingress.iter().filter_map(|entry| entry.ip.as_deref()).peekable();
    match addresses.peek() {
        None => !ingress.is_empty(),
        Some(_) => {
            addresses.any(|shown| Some(spelling::of_address(shown)) == address.map(spelling::of_address))
        }
    }
}

fn wanted(identity: Identity, facts: &ServiceFacts, problems: &mut Vec<String>) -> Wanted {
    let service = &*facts.service;
    let options = Arc::clone(&identity.options);
    let empty = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&empty);
    let mut reader = Reader::new(service);
    // One that is there stays, with nobody behind it.
    if facts.nodes.is_empty() && identity.annotated.is_none() {
        problems.push(format!(
            "there are no available nodes for LoadBalancer service {}",
            identity.service
        ));
    }
    if let Some(elder) = &identity.elder {
        problems.push(format!(
            "the load balancer of service {} would have the name of that of service {elder}, because names are cut to 255 characters: give it another name or namespace, or a load balancer of its own in {}",
            identity.service,
            keys::ID.key
        ));
    }
    let ports = ports::read(spec, problems);
    let class = class(&reader, &options, problems);
    let named = reader.given(&keys::CLASS).map(|name| (name, &class));
    let families: Vec<Family> = spec
        .ip_families
        .iter()
        .flatten()
        .filter_map(|word| Family::parse(word))
        .collect();
    let is_internal = options.is_internal || reader.flag(&keys::INTERNAL, false);
    let _ = reader.flag(&keys::KEEP_FLOATING_IP, false); // read before; here only to tell of a bad value
    let proxy = match reader.word(&keys::PROXY_PROTOCOL, "false") {
        "true" | "v1" => Some(PoolProtocol::Proxy),
        "v2" => Some(PoolProtocol::ProxyV2),
        _ => None,
    };
    let forwards_for = reader.flag(&keys::X_FORWARDED_FOR, false);
    if proxy.is_some() && forwards_for {
        problems.push(format!(
            "annotation {} and {} cannot be used together",
            keys::PROXY_PROTOCOL.key,
            keys::X_FORWARDED_FOR.key
        ));
    }
    let sources = sources(service, spec, families.first().copied(), problems);
    let settings = settings::settings(&reader, named, &options, spec);
    let said = |entry| settings::find(&settings, entry).map(|setting| setting.value.as_str());
    let tls_setting = settings::find(&settings, &keys::TLS);
    let tls = tls_setting.map(|setting| tls(setting, &options, problems));
    problems.extend(if let Some(setting) = tls_setting {
        ports::without_tls(&ports, setting)
    } else if forwards_for {
        ports::shared_listener(&ports)
    } else {
        None
    });
    let member_subnet = said(&keys::MEMBER_SUBNET).map(Into::into);
    let method = said(&keys::LB_METHOD).filter(|method| !method.is_empty());
    let selector = reader
        .text(&keys::NODE_SELECTOR, &options.node_selector)
        .to_owned();
    let filter = NodeFilter::parse(&selector);
    let is_monitored_by_service = reader.given(&keys::MONITOR).is_some();
    let mut wanted = Wanted {
        vip: VipWish {
            network: said(&keys::NETWORK).map(Into::into),
            subnet: said(&keys::SUBNET).map(Into::into),
            port: said(&keys::PORT).map(Into::into),
            flavor: said(&keys::FLAVOR).map(str::to_owned),
            zone: said(&keys::ZONE).map(str::to_owned),
        },
        member_subnet: member_subnet.or_else(|| options.placement.subnet.clone()),
        is_internal,
        address: spec
            .load_balancer_ip
            .as_deref()
            .and_then(|address| non_empty(address.trim())),
        floating: wished_floating(&reader, &class, &options, problems),
        families,
        ports,
        pool: PoolSettings {
            method: method.unwrap_or(&options.method).to_owned(),
            is_sticky: spec.session_affinity.as_deref() == Some("ClientIP"),
            proxy: proxy.clone(),
        },
        publish: publish(said(&keys::HOSTNAME), proxy.is_some(), &options),
        listener: ListenerSettings {
            limits: ListenerAttributes {
                connection_limit: Some(reader.number(&keys::CONNECTION_LIMIT, -1)),
                timeout_client_data: Some(reader.number(&keys::TIMEOUT_CLIENT_DATA, 50_000)),
                timeout_member_connect: Some(reader.number(&keys::TIMEOUT_MEMBER_CONNECT, 5_000)),
                timeout_member_data: Some(reader.number(&keys::TIMEOUT_MEMBER_DATA, 50_000)),
                timeout_tcp_inspect: Some(reader.number(&keys::TIMEOUT_TCP_INSPECT, 0)),
                ..ListenerAttributes::default()
            },
            forwards_for,
            tls,
            sources,
        },
        monitor: monitor(&mut reader, &options),
        tags: Tags {
            balancer: reader.tags(&keys::BALANCER_TAGS),
            listener: reader.tags(&keys::LISTENER_TAGS),
            pool: reader.tags(&keys::POOL_TAGS),
        },
        health_check_port: facts::health_check_node_port(service),
        nodes: facts
            .nodes
            .iter()
            .filter(|node| filter.matches(node))
            .cloned()
            .collect(),
        all_nodes: Arc::clone(&facts.nodes),
        identity,
        notes: Vec::new(),
        settings,
        flaws: Vec::new(),
    };
    wanted.flaws = settings::flaws(&wanted.settings, wanted.family(), wanted.monitor.is_some());
    let port = wanted.vip.port.as_ref();
    if let Some((port, elder)) =
        port.and_then(|port| Some((port, namesakes::elder_on(facts, port.as_str())?)))
    {
        wanted.flaws.push(Flaw {
            what: keys::PORT.key,
            text: format!(
                "port {port} of Service {} is named by Service {elder} too, which is older: both would answer at one address; name another port in {} of one of them",
                wanted.identity.service,
                keys::PORT.key
            ),
            bars: Bars::Creation,
        });
    }
    if wanted.nodes.is_empty() && !wanted.all_nodes.is_empty() {
        wanted.notes.push(NO_VALID_NODES.note(format!(
            "no Node that may be a member has the labels of {selector:?}, so the load balancer has no members ({}, or node-selector in cloud.conf). Nodes that are being deleted, that have the taint {TAINT_TO_BE_DELETED} of the cluster autoscaler or the label {LABEL_EXCLUDE_FROM_BALANCERS}, may be none",
            keys::NODE_SELECTOR.key
        )));
    }
    wanted.notes.extend(notes::unaddressed(&wanted));
    wanted
        .notes
        .extend(notes::unmonitored(&wanted, is_monitored_by_service));
    wanted.notes.extend(notes::ignored_note(reader, &wanted));
    wanted
}

/// What the status shows.
fn publish(hostname: Option<&str>, is_proxied: bool, options: &LoadBalancerOptions) -> Publish {
    match (hostname, is_proxied) {
        (None, true) if options.has_ingress_hostname => Publish::AddressAsHostname {
            suffix: options.ingress_hostname_suffix.clone(),
        },
        (None, true) => Publish::Address(IpMode::Proxy),
        (None, false) => Publish::Address(IpMode::Vip),
        (Some(hostname), _) => Publish::Hostname(hostname.to_owned()),
    }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn class(reader: &Reader<'_>, options: &LoadBalancerOptions, problems: &mut Vec<String>) -> ClassOptions {
    let Some(name) = reader.given(&keys::CLASS).filter(|name| !name.is_empty()) else {
        return ClassOptions::default();
    };
    match options.classes.get(name) {
        Some(class) => class.clone(),
        None => {
            let known: Vec<&str> = options.classes.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            problems.push(format!(
                "invalid loadbalancer class \"{name}\": {} must name a section [LoadBalancerClass] of cloud.conf, which has {known}",
                keys::CLASS.key
            ));
            ClassOptions::default()
        }
    }
}

/// Who may connect: the spec's ranges, else the annotation's, else everybody.
fn sources(
    service: &Service,
    spec: &ServiceSpec,
    family: Option<Family>,
    problems: &mut Vec<String>,
) -> Sources {
    let listed = spec.load_balancer_source_ranges.as_deref().unwrap_or_default();
    let annotated = facts::annotation(service, keys::SOURCE_RANGES.key).unwrap_or_default();
    let (texts, place): (Vec<&str>, &str) = if listed.is_empty() {
        let texts = annotated.split(|c: char| c == ',' || c.is_whitespace());
        (
            texts.filter(|text| !text.is_empty()).collect(),
            keys::SOURCE_RANGES.key,
        )
    } else {
        (
            listed.iter().map(|text| text.trim()).collect(),
            "spec.loadBalancerSourceRanges",
        )
    };
    let mut ranges = BTreeSet::new();
    for text in &texts {
        match text.parse::<IpNet>() {
            Ok(range) => {
                ranges.insert(range.trunc());
            }
            Err(_) => problems.push(format!("{place}: `{text}` is not a network in CIDR notation")),
        }
    }
    if texts.is_empty() {
        ranges.insert(match family {
            Some(Family::V6) => IpNet::from(Ipv6Net::default()),
            _ => IpNet::from(Ipv4Net::default()),
        });
    }
    Sources {
        ranges: ranges.into_iter().collect(),
        is_asked: !texts.is_empty(),
    }
}

/// Where a floating IP comes from.
fn wished_floating(
    reader: &Reader<'_>,
    class: &ClassOptions,
    options: &LoadBalancerOptions,
    problems: &mut Vec<String>,
) -> FloatingWish {
    fn words(options: &FloatingOptions) -> Words<'_> {
        Words {
            id: options.subnet.as_ref().map(|id| id.as_str()),
            name: options.subnet_name.as_deref(),
            tags: options.subnet_tags.as_deref(),
        }
    }
    let (class, option) = (&class.floating, &options.floating);
    let annotations = Words {
        id: reader.given(&keys::FLOATING_SUBNET_ID),
        name: reader.given(&keys::FLOATING_SUBNET),
        tags: reader.given(&keys::FLOATING_SUBNET_TAGS),
    };
    let subnet = WantedSubnet::choose(words(class), annotations, words(option)).unwrap_or_else(|error| {
        let origin = match annotations.name {
            Some(_) => format!("annotation {}", keys::FLOATING_SUBNET.key),
            None => "floating-subnet in cloud.conf".to_owned(),
        };
        problems.push(format!("{error} ({origin})"));
        WantedSubnet::Any
    });
    let network = floating::network(
        class.network.as_ref().map(|id| id.as_str()),
        reader.given(&keys::FLOATING_NETWORK),
        option.network.as_ref().map(|id| id.as_str()),
    );
    FloatingWish { network, subnet }
}

fn tls(setting: &Setting, options: &LoadBalancerOptions, problems: &mut Vec<String>) -> TlsWish {
    let Setting {
        value: reference,
        origin,
        ..
    } = setting;
    let is_asked_for = options.container_store == "barbican";
    let key = key_of(reference).filter(|_| is_asked_for);
    if is_asked_for && key.is_none() {
        problems.push(format!(
            "failed to parse TLS container reference `{reference}`: it must end in containers/ID or secrets/ID ({origin})"
        ));
    }
    TlsWish {
        reference: reference.clone(),
        key,
    }
}

/// The last two parts of a reference's path: the kind and the id.
fn key_of(reference: &str) -> Option<TlsKey> {
    let (rest, id) = reference.rsplit_once('/')?;
    let kind = match rest.rsplit('/').next()? {
        "containers" => KeyKind::Container,
        "secrets" => KeyKind::Secret,
        _ => return None,
    };
    (!id.is_empty()).then(|| TlsKey {
        kind,
        id: id.to_owned(),
    })
}

fn monitor(reader: &mut Reader<'_>, options: &LoadBalancerOptions) -> Option<NewMonitor> {
    let option = &options.monitor;
    let settings = NewMonitor {
        delay: reader.number(&keys::MONITOR_DELAY, seconds(option.delay)),
        timeout: reader.number(&keys::MONITOR_TIMEOUT, seconds(option.timeout)),
        max_retries: reader.number(&keys::MONITOR_MAX_RETRIES, option.max_retries.into()),
        max_retries_down: reader.number(&keys::MONITOR_MAX_RETRIES_DOWN, option.max_retries_down.into()),
        // Each port has its own.
        pool_id: None,
        name: String::new(),
        kind: MonitorType::Tcp,
        http: None,
    };
    reader.flag(&keys::MONITOR, option.is_wanted).then_some(settings)
}
