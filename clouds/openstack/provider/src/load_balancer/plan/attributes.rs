//! What differs at listeners, pools and monitors and can be changed where it stands. An update holds only that.

use std::collections::BTreeMap;

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{
    Listener, ListenerAttributes, ListenerUpdate, Monitor, MonitorUpdate, NewListener, NewMonitor,
};

use crate::load_balancer::plan::desired::FORWARDED_FOR;

/// What differs at a listener that is to get these tags; its name is not compared.
pub(super) fn listener_update(
    wanted: &NewListener,
    there: &Listener,
    tags: Option<Vec<String>>,
) -> Option<ListenerUpdate> {
    let wishes = &wanted.attributes;
    let number = |wanted: Option<i64>, there: Option<i64>| wanted.filter(|_| wanted != there);
    let attributes = ListenerAttributes {
        tags,
        connection_limit: number(wishes.connection_limit, there.connection_limit),
        insert_headers: headers(wishes, &there.insert_headers),
        default_tls_container_ref: wishes
            .default_tls_container_ref
            .clone()
            .filter(|_| wishes.default_tls_container_ref != there.default_tls_container_ref),
        timeout_client_data: number(wishes.timeout_client_data, there.timeout_client_data),
        timeout_member_connect: number(wishes.timeout_member_connect, there.timeout_member_connect),
        timeout_member_data: number(wishes.timeout_member_data, there.timeout_member_data),
        timeout_tcp_inspect: number(wishes.timeout_tcp_inspect, there.timeout_tcp_inspect),
        allowed_cidrs: wishes
            .allowed_cidrs
            .clone()
            .filter(|wanted| !spelling::same_networks(wanted, &there.allowed_cidrs)),
    };
    let update = ListenerUpdate {
        name: None,
        default_pool_id: None,
        attributes,
    };
    (update != ListenerUpdate::default()).then_some(update)
}

/// The headers with the one that is wanted or without the one that is not; `None` if nothing changes. Others are kept.
fn headers(
    wishes: &ListenerAttributes,
    there: &BTreeMap<String, String>,
) -> Option<BTreeMap<String, String>> {
    let is_wanted = wishes.insert_headers.is_some();
    let is_there = there.get(FORWARDED_FOR).is_some_and(|value| value == "true");
    if is_wanted == is_there {
        return None;
    }
    let mut headers = there.clone();
    if is_wanted {
        headers.insert(FORWARDED_FOR.to_owned(), "true".to_owned());
    } else {
        headers.remove(FORWARDED_FOR);
    }
    Some(headers)
}

/// All that can be changed at a monitor, if anything of it differs. The Go manager names the monitor of a Service that shares a
/// load balancer now after the one and now after the other: it may keep the `other_name`.
pub(super) fn monitor_update(
    wanted: &NewMonitor,
    other_name: &str,
    there: &Monitor,
) -> Option<MonitorUpdate> {
    let is_equal = (wanted.name == there.name || other_name == there.name)
        && wanted.delay == there.delay
        && wanted.timeout == there.timeout
        && wanted.max_retries == there.max_retries
        && wanted.max_retries_down == there.max_retries_down;
    (!is_equal).then(|| whole_monitor(wanted))
}

/// All that can be changed at a monitor.
pub(super) fn whole_monitor(wanted: &NewMonitor) -> MonitorUpdate {
    MonitorUpdate {
        name: Some(wanted.name.clone()),
        delay: Some(wanted.delay),
        timeout: Some(wanted.timeout),
        max_retries: Some(wanted.max_retries),
        max_retries_down: Some(wanted.max_retries_down),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_headers_are_kept() {
        let on = ListenerAttributes {
            insert_headers: Some(BTreeMap::from([(FORWARDED_FOR.to_owned(), "true".to_owned())])),
            ..ListenerAttributes::default()
        };
        let other = BTreeMap::from([("X-Forwarded-Port".to_owned(), "true".to_owned())]);
        let both = headers(&on, &other).unwrap();
        assert_eq!(both.len(), 2);
        assert_eq!(headers(&ListenerAttributes::default(), &both), Some(other));
        assert_eq!(headers(&on, &both), None);
    }
}
