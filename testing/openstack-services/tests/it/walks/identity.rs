//! Versions, every way to log in, and tokens that are none.

use bowline_openstack_services::{Login, Service, log_in};
use http::Method;

use crate::walk::Walk;

pub(super) async fn walk(walk: &mut Walk<'_>) {
    use Service::{Compute, Identity, LoadBalancer, Network};
    let ground = walk.ground;
    let (url, user) = (ground.keystone_url(), ground.user());
    let logins = ground.logins().await;
    for (name, login) in [
        ("password", Login::password(user, user, user)),
        ("wrong password", Login::password(user, "wrong", user)),
        ("unknown user", Login::password("nobody", user, user)),
        ("foreign project", Login::password(user, user, "admin")),
        ("application credential by id", logins.by_id),
        ("application credential by name", logins.by_name),
        ("trust", logins.by_trust),
        (
            "unknown application credential",
            Login::application_credential("00000000000000000000000000000000", "secret"),
        ),
    ] {
        let answer = log_in(url, &login).await.unwrap();
        walk.keep(name, answer);
    }
    walk.get("version of keystone", Identity, "").await;
    walk.get("version of neutron", Network, "/").await;
    walk.get("versions of octavia", LoadBalancer, "/").await;
    walk.get("version of nova", Compute, "/").await;

    let nobody = walk.session().with_token("made-up");
    for (name, service, path) in [
        ("neutron, made-up token", Network, "/v2.0/networks"),
        (
            "octavia, made-up token",
            LoadBalancer,
            "/v2.0/lbaas/loadbalancers",
        ),
        ("nova, made-up token", Compute, "/servers/detail"),
    ] {
        let answer = nobody.call(service, Method::GET, path, None).await.unwrap();
        walk.keep(name, answer);
    }
}
