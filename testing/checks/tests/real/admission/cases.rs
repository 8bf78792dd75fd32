//! Services that are good or bad, cloud by cloud: the values of the tests of the readers, and a few more. What a policy does not
//! catch is listed with the reason.

use crate::admission::apiserver::service;
use serde_json::{Value, json};

/// Who finds out that a Service is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nobody: it is good.
    Good,
    /// The policy, and so does the reader.
    Caught,
    /// The policy; the reader takes it, and the cloud or the API server refuses it later, or it comes to nothing.
    CaughtBeforeTheCloud,
    /// The reader alone: beyond CEL.
    Beyond,
}

use Verdict::{Beyond, Caught, CaughtBeforeTheCloud, Good};

/// One Service.
pub(crate) struct Case {
    pub(crate) cloud: &'static str,
    pub(crate) verdict: Verdict,
    /// What a complaint must contain.
    pub(crate) names: &'static str,
    pub(crate) service: Value,
}

pub(crate) fn all() -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |cloud, prefix: &str, rows: &[(&'static str, &str, Verdict)]| {
        for (key, value, verdict) in rows {
            let service = service(&[(&format!("{prefix}{key}"), value)]);
            all.push(Case {
                cloud,
                verdict: *verdict,
                names: key,
                service,
            });
        }
    };
    add("cloudscale", "k8s.cloudscale.ch/loadbalancer-", CLOUDSCALE);
    add(
        "cloudstack",
        "service.beta.kubernetes.io/cloudstack-load-balancer-",
        CLOUDSTACK,
    );
    add("openstack", "loadbalancer.openstack.org/", OPENSTACK);
    add("openstack", "service.beta.kubernetes.io/", OPENSTACK_ELSEWHERE);
    add("phoenixnap", "phoenixnap.com/", PHOENIXNAP);
    for (cloud, keys) in MISSPELT_PREFIXES {
        add(cloud, "", &keys.map(|key| (key, "x", CaughtBeforeTheCloud)));
    }
    all.extend(of_several());
    all
}

const MISSPELT_PREFIXES: [(&str, [&str; 2]); 3] = [
    (
        "cloudscale",
        [
            "k8s.cloudscale.com/loadbalancer-flavor",
            "cloudscale.ch/loadbalancer-zone",
        ],
    ),
    (
        "cloudstack",
        [
            "service.beta.kubernetes.io/cloudstackload-balancer-keep-ip",
            "service.kubernetes.io/cloudstack-load-balancer-hostname",
        ],
    ),
    (
        "openstack",
        [
            "loadbalancers.openstack.org/network-id",
            "loadbalancer.openstack.com/proxy-protocol",
        ],
    ),
];

const CLOUDSCALE: &[(&str, &str, Verdict)] = &[
    // Keys.
    ("flavour", "lb-standard", Caught),
    ("timeout-client-data", "5", Caught),
    ("Flavor", "lb-standard", Caught),
    ("nonsense", "", Caught),
    // Texts.
    ("flavor", "lb-flex-4-2", Good),
    ("flavor", "", Good),
    ("zone", "rma1", Good),
    ("uuid", "", Good),
    ("uuid", "1a2b3c4d-1a2b-3c4d-5e6f-1a2b3c4d5e6f", Good),
    ("uuid", "1A2B3C4D1A2B3C4D5E6F1A2B3C4D5E6F", Good),
    ("uuid", "{1a2b3c4d-1a2b-3c4d-5e6f-1a2b3c4d5e6f}", Good),
    ("uuid", "urn:uuid:1a2b3c4d-1a2b-3c4d-5e6f-1a2b3c4d5e6f", Good),
    ("uuid", "lb-1", Caught),
    ("uuid", "{1a2b3c4d1a2b3c4d5e6f1a2b3c4d5e6f}", Caught),
    ("config-version", "1", Good),
    ("config-version", "2", Caught),
    ("config-version", "", CaughtBeforeTheCloud),
    ("name", "web", Good),
    ("name", "", Caught),
    ("name", " \t", Caught),
    // Words.
    ("pool-algorithm", "source_ip", Good),
    ("pool-algorithm", "ROUND_ROBIN", Caught),
    ("pool-algorithm", "", CaughtBeforeTheCloud),
    ("pool-protocol", "proxyv2", Good),
    ("pool-protocol", "proxy-v2", Caught),
    ("pool-protocol", "udp", Caught),
    ("listener-protocol", "tcp", Good),
    ("listener-protocol", "http", Caught),
    ("health-monitor-type", "tls-hello", Good),
    ("health-monitor-type", "udp", Caught),
    ("ip-mode", "VIP", Good),
    ("ip-mode", "vip", Caught),
    ("ip-mode", "", CaughtBeforeTheCloud),
    // Numbers.
    ("health-monitor-delay-s", "+7", Good),
    ("health-monitor-delay-s", "007", Good),
    ("timeout-client-data-ms", "0", Good),
    ("timeout-client-data-ms", "-0", Good),
    ("timeout-client-data-ms", "9223372036854775807", Good),
    ("health-monitor-delay-s", " 7", Good),
    ("health-monitor-delay-s", "7.0", Caught),
    ("health-monitor-delay-s", "-1", Caught),
    ("health-monitor-delay-s", "2s", Caught),
    ("health-monitor-timeout-s", "", CaughtBeforeTheCloud),
    ("health-monitor-up-threshold", "two", Caught),
    ("timeout-member-data-ms", "-9223372036854775808", Caught),
    ("timeout-member-data-ms", "50,000", Caught),
    ("health-monitor-down-threshold", "0", Caught),
    // 19 digits are not converted.
    ("timeout-member-connect-ms", "9999999999999999999", Beyond),
    // Lists.
    ("listener-allowed-cidrs", "", Good),
    ("listener-allowed-cidrs", "  ", Good),
    ("listener-allowed-cidrs", "null", Good),
    ("listener-allowed-cidrs", "[]", Good),
    (
        "listener-allowed-cidrs",
        r#"["192.0.2.0/24","2001:db8::/32"]"#,
        Good,
    ),
    (
        "listener-allowed-cidrs",
        "[\n  \"192.0.2.7/24\" , \" 10.0.0.0/8 \"\n]\n",
        Good,
    ),
    (
        "listener-allowed-cidrs",
        r#"["::ffff:192.0.2.0/120", "::ffff:c000:200/120", "010.0.0.0/8", "10.0.0.0/08"]"#,
        Good,
    ),
    ("listener-allowed-cidrs", "a", Caught),
    ("listener-allowed-cidrs", r#"["a",1]"#, Caught),
    ("listener-allowed-cidrs", "{}", Caught),
    ("listener-allowed-cidrs", "192.0.2.0/24", Caught),
    ("listener-allowed-cidrs", r#"["192.0.2.0/24",]"#, Caught),
    ("listener-allowed-cidrs", r#"["192.0.2.7"]"#, Caught),
    ("listener-allowed-cidrs", r#"["192.0.2.0/33"]"#, Caught),
    (
        "listener-allowed-cidrs",
        r#"["192.0.2.0/24", "http://example.org/8"]"#,
        Caught,
    ),
    (
        "listener-allowed-cidrs",
        r#"["192.0.2.0/24, 10.0.0.0/8"]"#,
        Caught,
    ),
    (
        "listener-allowed-subnets",
        r#"["1a2b3c4d-1a2b-3c4d-5e6f-1a2b3c4d5e6f"]"#,
        Good,
    ),
    ("listener-allowed-subnets", "[]", Good),
    (
        "listener-allowed-subnets",
        r#"["10.0.0.0/24"]"#,
        CaughtBeforeTheCloud,
    ),
    ("listener-allowed-subnets", r#"[""]"#, CaughtBeforeTheCloud),
    ("listener-allowed-subnets", "['a']", Caught),
    // Escapes in JSON, and zeros in front.
    ("listener-allowed-cidrs", r#"["192.0.2.0\/33"]"#, Beyond),
    ("listener-allowed-cidrs", r#"["010.0.0.999/8"]"#, Beyond),
    ("floating-ips", "null", Good),
    (
        "floating-ips",
        r#"["198.51.100.7/32","2001:DB8:5:0::7", " 198.51.100.8 ", "2001:db8::7/128"]"#,
        Good,
    ),
    ("floating-ips", r#"["198.51.100.0/24"]"#, CaughtBeforeTheCloud),
    (
        "floating-ips",
        r#"["198.51.100.7/32", "2001:db8::/56"]"#,
        CaughtBeforeTheCloud,
    ),
    ("floating-ips", "198.51.100.7", Caught),
    ("floating-ips", r#"["x"]"#, Caught),
    ("floating-ips", r#"["198.51.100.300"]"#, Caught),
    // JSON.
    ("vip-addresses", "null", Good),
    ("vip-addresses", "[]", Good),
    (
        "vip-addresses",
        r#"[{"subnet": "6e8f", "Address": "10.0.0.7"}, {}, {"address": ""}]"#,
        Good,
    ),
    // Fields that nobody heeds.
    ("vip-addresses", r#"[{"addr": "10.20.0.99"}]"#, Caught),
    ("vip-addresses", r#"[{"address": "", "note": 7}]"#, Caught),
    (
        "vip-addresses",
        r#"[{"address": null, "other": {"address": "x"}}]"#,
        Beyond,
    ),
    ("vip-addresses", "", CaughtBeforeTheCloud),
    ("vip-addresses", "10.0.0.7", Caught),
    ("vip-addresses", r#"["10.0.0.7"]"#, Caught),
    ("vip-addresses", r#"{"address": "10.0.0.7"}"#, Caught),
    ("vip-addresses", r#"[{"address": "10.0.0.300"}]"#, Caught),
    ("vip-addresses", r#"[{"address": "10.0.0.7/32"}]"#, Caught),
    ("vip-addresses", r#"[{"subnet": 7}]"#, Caught),
    ("vip-addresses", r#"[["s", "10.0.0.7"]]"#, Caught),
    ("vip-addresses", r#"[{"address": "10.0.0.7",}]"#, Caught),
    ("vip-addresses", r#"[{"address": ["10.0.0.7"]}]"#, Caught),
    // What stands in objects of objects is not looked at.
    ("vip-addresses", r#"[{"other": {"a": 1,}}]"#, Beyond),
    ("health-monitor-http", "{}", Good),
    ("health-monitor-http", "{ }", Good),
    (
        "health-monitor-http",
        r#"{"expected_codes": ["200", "204"], "METHOD": "GET", "url_path": "/livez", "version": "1.1", "host": null, "x": {"y": [1]}}"#,
        Beyond,
    ),
    (
        "health-monitor-http",
        r#"{"url_path": "/a\":b", "host": "a.b", "version": "1.1", "method": " "}"#,
        Good,
    ),
    ("health-monitor-http", r#"{"path":"/healthz"}"#, Caught),
    ("health-monitor-http", r#"{"urlPath" : "/healthz"}"#, Caught),
    ("health-monitor-http", r#"{"timeout":3}"#, Caught),
    (
        "health-monitor-http",
        r#"{"method":"FETCH"}"#,
        CaughtBeforeTheCloud,
    ),
    ("health-monitor-http", r#"{"method":"get"}"#, Good),
    ("health-monitor-http", r#"{"version":"2"}"#, CaughtBeforeTheCloud),
    (
        "health-monitor-http",
        r#"{"host":"a.b","version":"1.0"}"#,
        CaughtBeforeTheCloud,
    ),
    (
        "health-monitor-http",
        r#"{"url_path":"healthz"}"#,
        CaughtBeforeTheCloud,
    ),
    ("health-monitor-http", "", CaughtBeforeTheCloud),
    ("health-monitor-http", "null", Caught),
    ("health-monitor-http", "[]", Caught),
    ("health-monitor-http", "/livez", Caught),
    ("health-monitor-http", r#"{"expected_codes": ["200-204"]}"#, Good),
    ("health-monitor-http", r#"{"expected_codes": []}"#, Good),
    (
        "health-monitor-http",
        r#"{"expected_codes": ["2xx"]}"#,
        CaughtBeforeTheCloud,
    ),
    (
        "health-monitor-http",
        r#"{"expected_codes": ["200", "2xx"]}"#,
        CaughtBeforeTheCloud,
    ),
    (
        "health-monitor-http",
        r#"{"expected_codes": ["200-204", "300"]}"#,
        CaughtBeforeTheCloud,
    ),
    ("health-monitor-http", r#"{"expected_codes": "200"}"#, Caught),
    ("health-monitor-http", r#"{"expected_codes": [200]}"#, Caught),
    ("health-monitor-http", r#"{"version": 1.1}"#, Caught),
    ("health-monitor-http", r#"{"url_path": "/livez""#, Caught),
    // The second of a list.
    (
        "health-monitor-http",
        r#"{"expected_codes": ["200", 204]}"#,
        Beyond,
    ),
    // Selectors.
    ("node-selector", "", Good),
    ("node-selector", "kubernetes.io/hostname=worker-1", Good),
    (
        "node-selector",
        "tier in (edge, core), !gpu , a!=b,c==d, e=, f notin(,x),g>5",
        Good,
    ),
    ("node-selector", "pool web", Caught),
    ("node-selector", "pool in web", Caught),
    ("node-selector", "pool=web,", Caught),
    ("node-selector", "-pool=web", Caught),
    ("node-selector", "pool=a/b", Caught),
    // The length of a label's name.
    (
        "node-selector",
        "a234567890123456789012345678901234567890123456789012345678901234",
        Beyond,
    ),
    // The API server takes no other name in a status.
    ("force-hostname", "www.example.org", Good),
    ("force-hostname", "", Good),
    ("force-hostname", "https://www.example.org", CaughtBeforeTheCloud),
    ("force-hostname", "WWW.example.org", CaughtBeforeTheCloud),
    ("force-hostname", "192.0.2.7", CaughtBeforeTheCloud),
];

const CLOUDSTACK: &[(&str, &str, Verdict)] = &[
    ("proxy", "true", Caught),
    ("proxyprotocol", "true", Caught),
    ("proxy-protocol", "true", Good),
    ("proxy-protocol", "false", Good),
    ("proxy-protocol", "True", Caught),
    ("proxy-protocol", "1", Caught),
    ("proxy-protocol", "enabled", Caught),
    ("proxy-protocol", "", Caught),
    ("keep-ip", "yes", Caught),
    ("stickyness-method-name", "LbCookie", Good),
    ("stickyness-method-name", "lbcookie", Good),
    ("stickyness-method-name", "LbCookies", Caught),
    ("stickiness-method-name", "LbCookie", Caught),
    ("stickyness-method-param", "mode=insert,nocache=true", Good),
    // Whoever sets the mark to anything else keeps the address.
    ("ip-associated-by-controller", "no", Good),
    ("ip-ids", "anything", Good),
    ("hostname", "ingress.example.org", Good),
    ("hostname", "ingress.example.org:443", CaughtBeforeTheCloud),
    ("ip-mode", "", Good),
    ("ip-mode", "Proxy", Good),
    ("ip-mode", "proxy", Caught),
    ("address", "192.0.2.7", Good),
    ("address", " ", Good),
    ("address", "web-1", CaughtBeforeTheCloud),
    ("source-cidrs", "", Good),
    ("source-cidrs", "192.0.2.0/24, 2001:db8::/32", Good),
    ("source-cidrs", "192.0.2.0/24,", Caught),
    ("source-cidrs", "192.0.2.7", Caught),
    ("source-cidrs", r#"["192.0.2.0/24"]"#, Caught),
    ("source-cidrs", "192.0.2.0/24 198.51.100.0/24", Caught),
    // Zeros in front, which other clouds take.
    ("source-cidrs", "010.0.0.0/8", Beyond),
];

const OPENSTACK: &[(&str, &str, Verdict)] = &[
    ("flavour-id", "x", Caught),
    ("proxyprotocol", "true", Caught),
    ("keep-floatingip", "true", Good),
    ("keep-floatingip", "True", Caught),
    ("keep-floatingip", "", Caught),
    ("x-forwarded-for", "1", Caught),
    ("enable-health-monitor", "no", Caught),
    ("proxy-protocol", "v2", Good),
    ("proxy-protocol", "", Good),
    ("proxy-protocol", "V2", Caught),
    ("proxy-protocol", "proxy", Caught),
    ("connection-limit", "-1", Good),
    ("connection-limit", "many", Caught),
    ("connection-limit", "-2", Caught),
    ("timeout-client-data", "+7", Good),
    ("timeout-client-data", "50s", Caught),
    ("timeout-member-data", "3000000000", Caught),
    ("health-monitor-max-retries", "10", Good),
    ("health-monitor-max-retries", "0", CaughtBeforeTheCloud),
    ("health-monitor-max-retries-down", "11", CaughtBeforeTheCloud),
    ("health-monitor-delay", "99999999999999999999", Caught),
    ("lb-method", "SOURCE_IP_PORT", Good),
    ("lb-method", "round_robin", Caught),
    ("hostname", "www.example.org", Good),
    ("hostname", "www.example.org.", Caught),
    ("node-selector", "env=prod, gpu", Good),
    ("node-selector", "", Good),
    ("node-selector", " ,kubernetes.io/os=linux,gpu=", Good),
    ("node-selector", "env in (prod)", Caught),
    ("node-selector", "env in (prod, test)", Caught),
    ("node-selector", "!gpu", Caught),
    ("node-selector", "env!=prod", Caught),
    ("node-selector", "env==prod", Caught),
    ("node-selector", "env = prod", Caught),
    ("floating-subnet", "pub-*", Good),
    ("default-tls-container-ref", "https://kms/v1/secrets/x", Good),
    // Names that the configuration file knows.
    ("class", "no", Beyond),
    // Patterns, and references whose form depends on the key manager.
    ("floating-subnet", "~(", Beyond),
    ("floating-subnet", "pub-[", Beyond),
    ("default-tls-container-ref", "x", Beyond),
    ("default-tls-container-ref", "secrets/", Beyond),
    ("default-tls-container-ref", "keys/x", Beyond),
];

const OPENSTACK_ELSEWHERE: &[(&str, &str, Verdict)] = &[
    ("openstack-internal-load-balancer", "true", Good),
    ("openstack-internal-load-balancer", "yes", Caught),
    ("openstack-internal-loadbalancer", "true", CaughtBeforeTheCloud),
    ("openstack-internal-lb", "true", CaughtBeforeTheCloud),
    ("openstack_internal-load-balancer", "true", CaughtBeforeTheCloud),
    ("load-balancer-source-range", "10.0.0.0/8", CaughtBeforeTheCloud),
    ("loadbalancer-source-ranges", "10.0.0.0/8", CaughtBeforeTheCloud),
    // The API server itself looks at this one.
    ("load-balancer-source-ranges", "10.0.0.0/8 nonsense", Caught),
    ("load-balancer-source-ranges", "10.0.0.0/8,192.0.2.0/24", Good),
    ("aws-load-balancer-type", "nlb", Good),
];

const PHOENIXNAP: &[(&str, &str, Verdict)] = &[
    ("ip-location", "NLD", Good),
    ("ip-locations", "NLD", CaughtBeforeTheCloud),
    ("ip-block-claim", "anything", Good),
    // Not the one that the manager writes on Nodes, nor meant to be.
    ("server", "s-1", Good),
    // The operator may have chosen another key.
    ("site", "NLD", Good),
];

fn of_several() -> Vec<Case> {
    let case = |cloud, verdict, names, change: &dyn Fn(&mut Value)| {
        let mut service = service(&[]);
        change(&mut service);
        Case {
            cloud,
            verdict,
            names,
            service,
        }
    };
    let (proxy, forwarded) = (
        "loadbalancer.openstack.org/proxy-protocol",
        "loadbalancer.openstack.org/x-forwarded-for",
    );
    let ranges = bowline_cloud_provider::keys::ANNOTATION_LOAD_BALANCER_SOURCE_RANGES;
    let ports = json!([
        { "name": "a", "port": 443, "protocol": "TCP" },
        { "name": "b", "port": 443, "protocol": "UDP" },
    ]);
    vec![
        case("openstack", Caught, "cannot be used together", &|it| {
            it["metadata"]["annotations"] = json!({ proxy: "v1", forwarded: "true" });
        }),
        case("openstack", Good, "", &|it| {
            it["metadata"]["annotations"] = json!({ proxy: "false", forwarded: "true" });
        }),
        case("openstack", Caught, "spec.ports", &|it| {
            it["metadata"]["annotations"] = json!({ forwarded: "true" });
            it["spec"]["ports"] = ports.clone();
        }),
        case("openstack", Caught, "spec.ports", &|it| {
            it["metadata"]["annotations"] =
                json!({ "loadbalancer.openstack.org/default-tls-container-ref": "secrets/x" });
            it["spec"]["ports"] = ports.clone();
        }),
        case("openstack", Caught, "every port must be TCP", &|it| {
            it["metadata"]["annotations"] =
                json!({ "loadbalancer.openstack.org/default-tls-container-ref": "secrets/x" });
            it["spec"]["ports"][0]["protocol"] = "UDP".into();
        }),
        case("openstack", Good, "", &|it| it["spec"]["ports"] = ports.clone()),
        case("openstack", Good, "", &|it| {
            it["spec"]["ports"][0]["protocol"] = "SCTP".into()
        }),
        case(
            "openstack",
            CaughtBeforeTheCloud,
            "every port must be TCP",
            &|it| {
                it["metadata"]["annotations"] = json!({ forwarded: "true" });
                it["spec"]["ports"][0]["protocol"] = "UDP".into();
            },
        ),
        case("openstack", Caught, "must be an IP address", &|it| {
            it["spec"]["loadBalancerIP"] = "web".into();
        }),
        case(
            "cloudstack",
            CaughtBeforeTheCloud,
            "must be an IP address",
            &|it| {
                it["spec"]["loadBalancerIP"] = "web".into();
            },
        ),
        case(
            "cloudstack",
            CaughtBeforeTheCloud,
            "allocateLoadBalancerNodePorts",
            &|it| {
                it["spec"]["allocateLoadBalancerNodePorts"] = false.into();
            },
        ),
        case(
            "cloudscale",
            CaughtBeforeTheCloud,
            "allocateLoadBalancerNodePorts",
            &|it| {
                it["spec"]["allocateLoadBalancerNodePorts"] = false.into();
            },
        ),
        case("cloudscale", Good, "", &|it| {
            it["spec"]["allocateLoadBalancerNodePorts"] = false.into();
            it["spec"]["ports"][0]["nodePort"] = 30_080.into();
        }),
        case(
            "cloudscale",
            CaughtBeforeTheCloud,
            "spec.loadBalancerSourceRanges",
            &|it| {
                it["spec"]["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"]);
            },
        ),
        case(
            "cloudscale",
            CaughtBeforeTheCloud,
            "everybody may connect",
            &|it| {
                it["metadata"]["annotations"] = json!({ ranges: "192.0.2.0/24" });
            },
        ),
        case(
            "cloudstack",
            CaughtBeforeTheCloud,
            "everybody may connect",
            &|it| {
                it["metadata"]["annotations"] = json!({ ranges: "192.0.2.0/24" });
            },
        ),
        case(
            "phoenixnap",
            CaughtBeforeTheCloud,
            "everybody may connect",
            &|it| {
                it["metadata"]["annotations"] = json!({ ranges: "192.0.2.0/24" });
            },
        ),
        case(
            "cloudscale",
            Caught,
            "is it k8s.cloudscale.ch/loadbalancer-pool-protocol",
            &|it| {
                it["metadata"]["annotations"] = json!({ "k8s.cloudscale.ch/pool-protocol": "proxy" });
            },
        ),
        case("cloudscale", Good, "", &|it| {
            it["metadata"]["annotations"] = json!({ "k8s.cloudscale.ch/volume": "x" });
        }),
        case(
            "cloudscale",
            Caught,
            "is it k8s.cloudscale.ch/loadbalancer-force-hostname?",
            &|it| {
                it["metadata"]["annotations"] = json!({ "k8s.cloudscale.ch/loadbalancer-hostname": "x" });
            },
        ),
        case(
            "openstack",
            Caught,
            "is it service.beta.kubernetes.io/openstack-internal-load-balancer?",
            &|it| {
                it["metadata"]["annotations"] =
                    json!({ "loadbalancer.openstack.org/internal-load-balancer": "true" });
            },
        ),
        case(
            "phoenixnap",
            CaughtBeforeTheCloud,
            "is it phoenixnap.com/ip-location?",
            &|it| {
                it["metadata"]["annotations"] = json!({ "phoenixnap.com/ip": "NLD" });
            },
        ),
        case("cloudscale", Caught, "spec.ports", &|it| {
            it["spec"]["ports"][0]["protocol"] = "SCTP".into()
        }),
        case("cloudstack", Caught, "spec.ports", &|it| {
            it["spec"]["ports"][0]["protocol"] = "SCTP".into()
        }),
        case("cloudscale", Good, "", &|it| it["spec"]["ports"] = ports.clone()),
        case("phoenixnap", CaughtBeforeTheCloud, "loadBalancerIP", &|it| {
            it["spec"]["loadBalancerIP"] = "web".into();
        }),
        case(
            "phoenixnap",
            CaughtBeforeTheCloud,
            "must be an IPv4 address",
            &|it| {
                it["spec"]["loadBalancerIP"] = "2001:db8::7".into();
            },
        ),
        case("phoenixnap", Good, "", &|it| {
            it["spec"]["loadBalancerIP"] = " 192.0.2.7 ".into()
        }),
        // Without annotations at all.
        case("cloudscale", Good, "", &|it| {
            it["metadata"].as_object_mut().unwrap().remove("annotations");
        }),
        // Keys of other clouds, and of nobody.
        case("cloudscale", Good, "", &|it| {
            it["metadata"]["annotations"] = json!({
                "example.org/loadbalancer-flavour": "x",
                "loadbalancer.openstack.org/flavour-id": "x",
                "csi.cloudscale.ch/anything": "x",
            });
        }),
        // Services of others.
        case("cloudscale", Good, "", &|it| {
            it["metadata"]["annotations"] = json!({ "k8s.cloudscale.ch/loadbalancer-ip-mode": "x" });
            it["spec"]["type"] = "ClusterIP".into();
        }),
    ]
}
