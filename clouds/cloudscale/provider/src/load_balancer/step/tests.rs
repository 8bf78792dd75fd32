use std::sync::Arc;

use bowline_cloudscale_client::{HttpChange, MonitorHttp};
use uuid::Uuid;

use super::*;

const HREF: &str = "https://api.example/v1/thing";

fn id<Id: From<Uuid>>(number: u128) -> Id {
    Uuid::from_u128(number).into()
}

fn old<Id: From<Uuid>>() -> Option<Old<Id>> {
    Some(Old {
        id: id(9),
        name: "old".into(),
        href: HREF.into(),
    })
}

fn part(change: PartChange) -> CloudStep {
    CloudStep::Part {
        balancer: id(1),
        change,
    }
}

fn monitor(old: Option<Old<MonitorId>>) -> CloudStep {
    let new = NewMonitor {
        pool: id(2),
        delay_s: 2,
        timeout_s: 1,
        up_threshold: 2,
        down_threshold: 3,
        kind: "tcp".into(),
        http: MonitorHttp::default(),
        tags: Arc::default(),
    };
    part(PartChange::Monitor {
        new: Box::new(new),
        pool_name: "tcp/web".into(),
        old,
        moves_checks: false,
    })
}

fn listener_update(change: ListenerChange) -> CloudStep {
    part(PartChange::UpdateListener {
        id: id(3),
        name: "tcp/80".into(),
        change,
    })
}

fn monitor_update(change: MonitorChange) -> CloudStep {
    part(PartChange::UpdateMonitor {
        id: id(4),
        pool_name: "tcp/web".into(),
        change,
    })
}

fn ip(from: Option<u128>) -> CloudStep {
    let address = FloatingAddress("198.51.100.7".parse().unwrap());
    CloudStep::AssignFloatingIp {
        address,
        balancer: id(1),
        from: from.map(id),
    }
}

#[test]
fn labels_are_those_that_operators_know() {
    let short = |number: u128| Uuid::from_u128(number).to_string();
    let (lb, pool, listener, check) = (short(1), short(2), short(3), short(4));
    let table = [
        (
            CloudStep::RenameBalancer {
                balancer: id(1),
                name: "edge".into(),
            },
            format!("rename-lb({lb} -> edge)"),
        ),
        (
            CloudStep::DeleteBalancer {
                balancer: id(1),
                name: "edge".into(),
                href: HREF.into(),
                is_live: true,
            },
            format!("delete-resource({HREF})"),
        ),
        (monitor(None), format!("create-monitor({pool}/tcp)")),
        (monitor(old()), format!("replace-monitor({HREF} -> {pool}/tcp)")),
        (
            listener_update(ListenerChange::AllowedCidrs(vec![
                "192.0.2.0/24".into(),
                "::/0".into(),
            ])),
            format!("update-cidrs({listener}/192.0.2.0/24,::/0)"),
        ),
        (
            listener_update(ListenerChange::TimeoutMemberConnectMs(7)),
            format!("update-listener-timeout-member-connect-ms({listener}: 7ms)"),
        ),
        (
            monitor_update(MonitorChange::UpThreshold(4)),
            format!("update-monitor-up-threshold({check}: 4)"),
        ),
        (
            monitor_update(MonitorChange::Http(HttpChange::Host(None))),
            format!("update-monitor-http-host({check}: )"),
        ),
        (ip(None), format!("assign-floating-ip(198.51.100.7/32 -> {lb})")),
    ];
    for (step, label) in table {
        assert_eq!(step.label(), label);
    }
}

#[test]
fn impact_is_what_operators_were_told() {
    let table = [
        (
            listener_update(ListenerChange::TimeoutClientDataMs(1)),
            Impact::None,
        ),
        (
            listener_update(ListenerChange::AllowedCidrs(Vec::new())),
            Impact::Minimal,
        ),
        (monitor(None), Impact::None),
        (monitor(old()), Impact::Minimal),
        (monitor_update(MonitorChange::DelayS(1)), Impact::Minimal),
        (ip(None), Impact::Minimal),
        (
            part(PartChange::DeletePool {
                old: old().unwrap(),
                is_live: true,
            }),
            Impact::Considerable,
        ),
        (
            part(PartChange::DeletePool {
                old: old().unwrap(),
                is_live: false,
            }),
            Impact::None,
        ),
        (
            CloudStep::DeleteBalancer {
                balancer: id(1),
                name: String::new(),
                href: String::new(),
                is_live: true,
            },
            Impact::Major,
        ),
    ];
    for (step, impact) in table {
        assert_eq!(step.impact(), impact, "{}", step.label());
    }
}

#[test]
fn a_floating_ip_that_moves_holds_both_balancers() {
    let names = |step: CloudStep| {
        step.lanes()
            .iter()
            .map(|lane| lane.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    let lane = |number: u128| format!("cloudscale/load-balancer/{}", Uuid::from_u128(number));
    assert_eq!(names(ip(None)), [lane(1)]);
    assert_eq!(names(ip(Some(5))), [lane(1), lane(5)]);
    assert_eq!(names(monitor(None)), [lane(1)]);
}
