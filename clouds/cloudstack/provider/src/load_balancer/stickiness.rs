//! By what rules lead a client to the same member again: what a Service asks for, and whether a policy is that. Pure.
//!
//! The server checks methods, names of parameters, times and sizes, and hands the rest to the router of the network as it is. What the
//! router's haproxy cannot read keeps every later change of a load balancer in that network from taking effect, and the API reports success
//! all the while. So the words of a value are checked here.

use std::collections::BTreeMap;

use bowline_cloud_provider::Service;
use bowline_cloudstack_client::{NewStickinessPolicy, StickinessPolicy};
use bowline_plan::{Refusal, refusal};

use crate::load_balancer::annotations::{self, STICKINESS_METHOD, STICKINESS_PARAMS};
use crate::load_balancer::objects::Network;

/// The method by a cookie of the application.
const APP_COOKIE: &str = "AppCookie";

/// Parameters that are on if they are there, whatever they say (`HAProxyConfigurator` of the management server).
const FLAGS: [&str; 5] = ["nocache", "indirect", "postonly", "request-learn", "prefix"];

/// The longest time that haproxy takes: 2^31 - 1 milliseconds.
const MAX_SECONDS: u64 = 2_147_483;

/// A method and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stickiness {
    method: String,
    params: BTreeMap<String, String>,
}

impl Stickiness {
    /// What the annotations of a Service ask for.
    pub(super) fn of(service: &Service, problems: &mut Vec<String>) -> Option<Self> {
        let method = annotations::text(service, &STICKINESS_METHOD);
        let params = annotations::text(service, &STICKINESS_PARAMS);
        let (method_key, params_key) = (STICKINESS_METHOD.key, STICKINESS_PARAMS.key);
        if method.is_empty() {
            return None; // parameters alone are what is left when somebody takes the method off
        }
        let mut methods = STICKINESS_METHOD.words().iter().copied();
        let Some(method) = methods.find(|it| it.eq_ignore_ascii_case(method)) else {
            problems.push(format!(
                "annotation {method_key} is `{method}`, and only `LbCookie`, `AppCookie` or `SourceBased` can be"
            ));
            return None;
        };
        let mut all = BTreeMap::new();
        for item in params.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, value) = item.split_once('=').unwrap_or((item, ""));
            let (name, value) = (name.trim(), value.trim());
            let flaw = flaw(method, name, value);
            let flaw = flaw.or_else(|| all.contains_key(name).then(|| "it stands there twice".to_owned()));
            if let Some(flaw) = flaw {
                problems.push(format!("parameter `{item}` in annotation {params_key}: {flaw}"));
            }
            all.insert(name.to_owned(), value.to_owned());
        }
        if all.contains_key("indirect") && all.get("mode").is_some_and(|mode| mode == "rewrite") {
            problems.push(format!(
                "annotation {params_key}: mode=rewrite and indirect exclude each other"
            ));
        }
        Some(Self {
            method: method.to_owned(),
            params: all,
        })
    }

    /// Whether a policy does the same.
    pub(crate) fn is_as(&self, policy: &StickinessPolicy) -> bool {
        self.method.eq_ignore_ascii_case(&policy.method) && meant(&self.params) == meant(&policy.params)
    }

    /// It, under the name of a rule.
    pub(crate) fn policy(&self, rule: &str) -> NewStickinessPolicy {
        NewStickinessPolicy {
            name: rule.to_owned(),
            method: self.method.clone(),
            params: self.params.clone(),
        }
    }

    /// Why it is asked of no load balancer of this network, if so. A virtual router takes the method, and its haproxy has not known it since
    /// version 1.6 (CloudStack 4.11).
    pub(crate) fn refusal(&self, network: &Network) -> Option<Refusal> {
        (self.method == APP_COOKIE && network.has_router).then(|| {
            refusal!(
                "annotation {} is `{APP_COOKIE}`, which the virtual router of network {} cannot read: with it no change of a load balancer in \
                 this network would take effect", STICKINESS_METHOD.key, network.name;
                "use `LbCookie` or `SourceBased`"
            )
        })
    }
}

/// A policy for people.
pub(crate) fn shown(policy: &NewStickinessPolicy) -> String {
    let params = policy
        .params
        .iter()
        .map(|(name, value)| format!(" {name}={value}"));
    format!("{}{}", policy.method, params.collect::<String>())
}

/// Parameters by what they mean: names count in any letter case, and flags by being there.
fn meant(params: &BTreeMap<String, String>) -> BTreeMap<String, &str> {
    let all = params.iter().map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let is_flag = FLAGS.contains(&name.as_str());
        (name, if is_flag { "" } else { value.as_str() })
    });
    all.collect()
}

/// What is wrong with a parameter.
fn flaw(method: &str, name: &str, value: &str) -> Option<String> {
    let is_word = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !text.is_empty() && text.bytes().all(is_plain)
    };
    if !is_word(name) || !is_word(value) {
        return Some("write NAME=VALUE, of letters, digits, dots, underscores and hyphens".to_owned());
    }
    let wanted = match (method, name) {
        (_, flag) if FLAGS.contains(&flag) => {
            (value != "true").then_some("only `true` can be; leave it out to switch it off")
        }
        ("LbCookie", "mode") => (!["insert", "rewrite", "prefix"].contains(&value))
            .then_some("only `insert`, `rewrite` or `prefix` can be"),
        ("AppCookie", "mode") => (!["path-parameters", "query-string"].contains(&value))
            .then_some("only `path-parameters` or `query-string` can be"),
        ("SourceBased", "tablesize") => {
            (!is_size(value)).then_some("write a number with `k`, `m` or `g`, below 4g")
        }
        (_, "expire" | "holdtime") => {
            (!is_time(value)).then_some("write a number with `s`, `m`, `h` or `d`, of 24 days at most")
        }
        (_, "length") => (number(value).is_none()).then_some("write a number"),
        _ => None,
    };
    wanted.map(str::to_owned)
}

/// A number above 0 in digits alone.
fn number(text: &str) -> Option<u32> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_digits && *number > 0)
}

/// A number and its unit.
fn with_unit(text: &str) -> Option<(u64, char)> {
    let unit = text.chars().last()?;
    Some((number(text.strip_suffix(unit)?)?.into(), unit))
}

fn is_time(text: &str) -> bool {
    let seconds = with_unit(text).and_then(|(number, unit)| {
        let in_unit = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return None,
        };
        number.checked_mul(in_unit)
    });
    seconds.is_some_and(|seconds| seconds <= MAX_SECONDS)
}

fn is_size(text: &str) -> bool {
    let bytes = with_unit(text).and_then(|(number, unit)| {
        let in_unit = match unit {
            'k' => 1 << 10,
            'm' => 1 << 20,
            'g' => 1 << 30,
            _ => return None,
        };
        number.checked_mul(in_unit)
    });
    bytes.is_some_and(|bytes| bytes <= u32::MAX.into())
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::Pairs;

    use super::*;

    fn asked(method: &str, params: &str) -> Result<Option<Stickiness>, String> {
        let mut service = Service::default();
        let annotations = [(STICKINESS_METHOD.key, method), (STICKINESS_PARAMS.key, params)];
        let annotations = annotations.into_iter().filter(|(_, value)| !value.is_empty());
        let annotations: Pairs<String> = annotations.map(|(key, value)| (key, value.to_owned())).collect();
        service.metadata.annotations = Some(annotations);
        let mut problems = Vec::new();
        let asked = Stickiness::of(&service, &mut problems);
        if problems.is_empty() {
            Ok(asked)
        } else {
            Err(problems.join("; "))
        }
    }

    #[test]
    fn what_the_router_could_not_read_is_refused_before_it_is_sent() {
        for (method, params) in [
            ("LbCookie", ""),
            (
                "LbCookie",
                "cookie-name=SRV, mode = insert ,nocache=true,indirect=true,",
            ),
            ("SourceBased", "tablesize=200k,expire=30m"),
            ("SourceBased", "tablesize=3g,expire=24d"),
            (
                "AppCookie",
                "cookie-name=JSESSIONID,length=52,holdtime=3h,request-learn=true,mode=query-string",
            ),
            // The server compares methods in any letter case (`genericValidator` in its `LoadBalancingRulesManagerImpl`).
            ("lbcookie", "mode=insert"),
            // What another provider of load balancing knows is its word.
            ("LbCookie", "holdtime=3h"),
        ] {
            assert!(
                asked(method, params).is_ok_and(|asked| asked.is_some()),
                "{method} {params}"
            );
        }
        assert!(asked("", "mode=insert").is_ok_and(|asked| asked.is_none()));
        for (method, params, text) in [
            (
                "LbCookies",
                "",
                "only `LbCookie`, `AppCookie` or `SourceBased` can be",
            ),
            ("LbCookie", "nocache", "write NAME=VALUE"),
            ("LbCookie", "cookie-name=a b", "write NAME=VALUE"),
            ("LbCookie", "cookie-name=a&b", "write NAME=VALUE"),
            ("LbCookie", "cookie-name=a=b", "write NAME=VALUE"),
            ("LbCookie", "nocache=false", "leave it out to switch it off"),
            (
                "LbCookie",
                "mode=sticky",
                "only `insert`, `rewrite` or `prefix` can be",
            ),
            ("LbCookie", "mode=rewrite,indirect=true", "exclude each other"),
            (
                "LbCookie",
                "domain=a.example,domain=b.example",
                "it stands there twice",
            ),
            ("SourceBased", "tablesize=4g", "below 4g"),
            ("SourceBased", "tablesize=200", "with `k`, `m` or `g`"),
            ("SourceBased", "expire=25d", "24 days at most"),
            ("SourceBased", "expire=-5h", "24 days at most"),
            ("AppCookie", "length=long", "write a number"),
        ] {
            let told = asked(method, params).unwrap_err();
            assert!(told.contains(text), "{method} {params}: {told}");
        }
    }

    #[test]
    fn a_policy_is_compared_by_what_it_means() {
        let wanted = asked("LbCookie", "mode=insert,nocache=true").unwrap().unwrap();
        let is_as = |method: &str, params: &str| {
            let policy = format!(r#"{{"id":"p","methodname":"{method}","params":{{{params}}}}}"#);
            wanted.is_as(&serde_json::from_str(&policy).unwrap())
        };
        assert!(is_as("LbCookie", r#""nocache":"true","mode":"insert""#));
        assert!(is_as("lbcookie", r#""NoCache":"null","mode":"insert""#));
        assert!(!is_as("LbCookie", r#""mode":"insert""#));
        assert!(!is_as("LbCookie", r#""nocache":"true","mode":"prefix""#));
        assert!(!is_as("SourceBased", r#""nocache":"true","mode":"insert""#));
    }
}
