//! A caller of the API that knows nothing but HTTP and how to sign.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bowline_cloudstack_sim::kit::TransportError;
use bowline_cloudstack_sim::{CloudstackSim, NicSpec, VmSpec};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;
use serde_json::Value;

const KEPT: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'*');

/// Pairs of names and values.
pub(crate) type Pairs = Vec<(String, String)>;

pub(crate) fn pairs(parameters: &[(&str, &str)]) -> Pairs {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    parameters.iter().map(owned).collect()
}

/// The query of these parameters, sorted and escaped.
pub(crate) fn query(parameters: &Pairs) -> String {
    let mut sorted = parameters.clone();
    sorted.sort();
    let pair = |(name, value): &(String, String)| format!("{name}={}", utf8_percent_encode(value, &KEPT));
    sorted.iter().map(pair).collect::<Vec<_>>().join("&")
}

pub(crate) fn sign(secret: &str, parameters: &Pairs) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
    BASE64_STANDARD.encode(hmac::sign(&key, query(parameters).to_lowercase().as_bytes()))
}

/// Sends a request as it is; answers the status and the body.
pub(crate) async fn send(
    sim: &CloudstackSim,
    request: Request<String>,
) -> Result<(u16, Value), TransportError> {
    let request = request.map(|body| Full::<bytes::Bytes>::from(body.into_bytes()));
    let response = sim.service().send(request).await?;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
}

/// The end of a job: its result, or its code and text.
pub(crate) type End = Result<Value, (u64, String)>;

/// Calls in memory with one user's keys.
pub(crate) struct Caller {
    pub(crate) sim: CloudstackSim,
    api_key: String,
    secret: String,
}

impl Caller {
    /// The user who is there if none is named.
    pub(crate) fn new(sim: &CloudstackSim) -> Self {
        Self::with_keys(sim, CloudstackSim::API_KEY, CloudstackSim::SECRET_KEY)
    }

    pub(crate) fn with_keys(sim: &CloudstackSim, api_key: &str, secret: &str) -> Self {
        Self {
            sim: sim.clone(),
            api_key: api_key.to_owned(),
            secret: secret.to_owned(),
        }
    }

    /// All parameters of a call, signed.
    pub(crate) fn signed(&self, command: &str, parameters: &[(&str, &str)]) -> Pairs {
        let mut all = pairs(parameters);
        let common = [
            ("apiKey", self.api_key.as_str()),
            ("command", command),
            ("response", "json"),
            ("signatureversion", "3"),
            ("expires", "2026-01-01T06:00:00Z"),
        ];
        let is_given = |name: &str| parameters.iter().any(|(given, _)| *given == name);
        let missing = common.into_iter().filter(|(name, _)| !is_given(name));
        all.extend(pairs(&missing.collect::<Vec<_>>()));
        let signature = sign(&self.secret, &all);
        all.extend(pairs(&[("signature", &signature)]));
        all
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        command: &str,
        parameters: &[(&str, &str)],
    ) -> Result<(u16, Value), TransportError> {
        let signed = self.signed(command, parameters);
        let request = if method == Method::GET {
            Request::get(format!("{}?{}", CloudstackSim::PATH, query(&signed))).body(String::new())
        } else {
            Request::post(CloudstackSim::PATH)
                .header("content-type", "application/x-www-form-urlencoded")
                .body(
                    url::form_urlencoded::Serializer::new(String::new())
                        .extend_pairs(&signed)
                        .finish(),
                )
        };
        send(&self.sim, request.unwrap()).await
    }

    /// Reads; answers the payload.
    pub(crate) async fn get(&self, command: &str, parameters: &[(&str, &str)]) -> Value {
        let (status, body) = self.call(Method::GET, command, parameters).await.unwrap();
        assert_eq!(status, 200, "{body}");
        body[format!("{}response", command.to_lowercase())].clone()
    }

    /// Writes; answers the payload of the acceptance, or the code and text of the refusal.
    pub(crate) async fn post(&self, command: &str, parameters: &[(&str, &str)]) -> End {
        let (status, body) = self.call(Method::POST, command, parameters).await.unwrap();
        let payload = body.as_object().unwrap().values().next().unwrap();
        if status == 200 {
            return Ok(payload.clone());
        }
        assert_eq!(payload["errorcode"], status, "{body}");
        Err((u64::from(status), text(&payload["errortext"])))
    }

    /// Writes, then polls to the end.
    pub(crate) async fn run(&self, command: &str, parameters: &[(&str, &str)]) -> End {
        let accepted = self.post(command, parameters).await?;
        self.end(&text(&accepted["jobid"])).await
    }

    pub(crate) async fn poll(&self, job: &str) -> Value {
        self.get("queryAsyncJobResult", &[("jobid", job)]).await
    }

    /// Polls a job that takes no time to its end.
    pub(crate) async fn end(&self, job: &str) -> End {
        for _ in 0..10 {
            let answer = self.poll(job).await;
            match answer["jobstatus"].as_u64() {
                Some(0) => {}
                Some(1) => return Ok(answer["jobresult"].clone()),
                _ => {
                    let result = &answer["jobresult"];
                    assert_eq!(answer["jobresultcode"], result["errorcode"]);
                    return Err((result["errorcode"].as_u64().unwrap(), text(&result["errortext"])));
                }
            }
        }
        panic!("job {job} does not end");
    }

    /// Takes a public address for the first network; answers its id.
    pub(crate) async fn associate(&self) -> String {
        let network = self.sim.network();
        let made = self
            .run("associateIpAddress", &[("networkid", &network)])
            .await
            .unwrap();
        text(&made["ipaddress"]["id"])
    }

    /// Makes a rule for a TCP port and its node port 30000 higher; answers its id.
    pub(crate) async fn rule(&self, address: &str, name: &str, port: u16) -> String {
        let made = self.try_rule(address, name, port, &[]).await.unwrap();
        text(&made["loadbalancer"]["id"])
    }

    pub(crate) async fn try_rule(&self, address: &str, name: &str, port: u16, more: &[(&str, &str)]) -> End {
        let (public, private) = (port.to_string(), (u32::from(port) + 30_000).to_string());
        let mut parameters = vec![
            ("name", name),
            ("algorithm", "roundrobin"),
            ("publicipid", address),
            ("publicport", &public),
            ("privateport", &private),
            ("openfirewall", "false"),
        ];
        parameters.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        parameters.extend(more);
        self.run("createLoadBalancerRule", &parameters).await
    }
}

/// A cloud with the three virtual machines `cp-a`, `pool-a-7` and `pool-a-8`, and their ids.
pub(crate) fn cloud() -> (CloudstackSim, Vec<String>) {
    let sim = CloudstackSim::builder().seed(1).build();
    let vms = [("cp-a", 10), ("pool-a-7", 47), ("pool-a-8", 48)];
    let ids =
        vms.map(|(name, last)| sim.add_vm(VmSpec::with_nics(name, [NicSpec::at([10, 1, 1, last].into())])));
    (sim, ids.into())
}

pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value}"))
        .to_owned()
}
