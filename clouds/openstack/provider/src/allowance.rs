//! What the login may do and what is left of its quotas, for a person before the installation.

use bowline_cloud_provider::{Allowance, CloudError};
use bowline_openstack_client::{Client, Usage};

/// Reads it. What a service does not tell is left out.
pub(crate) async fn read(client: Client, has_load_balancers: bool) -> Result<Vec<Allowance>, CloudError> {
    let mut all = vec![of_roles(&client.roles().await?)];
    if has_load_balancers {
        let used = client.load_balancers().await?.len();
        let quota = client.load_balancer_quota().await?;
        if let Some(most) = quota.and_then(|quota| quota.load_balancer) {
            all.push(of_quota(
                "load balancers",
                used.try_into().unwrap_or(i64::MAX),
                most,
            ));
        }
        if let Some(Usage {
            limit,
            used,
            reserved,
        }) = client.floating_ip_quota().await?
        {
            all.push(of_quota("floating IPs", used + reserved, limit));
        }
    }
    Ok(all)
}

/// Roles that only read, by Keystone's and Octavia's names.
const READERS: [&str; 3] = [
    "reader",
    "load-balancer_observer",
    "load-balancer_global_observer",
];

fn of_roles(roles: &[String]) -> Allowance {
    let is_lacking = roles.iter().all(|role| READERS.contains(&role.as_str()));
    let names = match roles.is_empty() {
        true => "none".to_owned(),
        false => roles.join(", "),
    };
    let only = if is_lacking { ", which cannot write" } else { "" };
    Allowance {
        text: format!("roles in the project: {names}{only}"),
        is_lacking,
    }
}

/// A quota and its use, and whether nothing is left of it.
pub(crate) fn of_quota(what: &str, used: i64, limit: i64) -> Allowance {
    let (text, is_lacking) = match limit {
        ..0 => (format!("{what}: {used} used, no limit"), false),
        _ if used >= limit => (format!("{what}: {used} of {limit} used, none is left"), true),
        _ => (format!("{what}: {used} of {limit} used"), false),
    };
    Allowance { text, is_lacking }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_that_only_read_and_quotas_without_room_are_lacking() {
        let of =
            |roles: &[&str]| of_roles(&roles.iter().map(ToString::to_string).collect::<Vec<_>>()).is_lacking;
        assert!(of(&["reader"]) && of(&["reader", "load-balancer_observer"]) && of(&[]));
        assert!(!of(&["reader", "member"]) && !of(&["admin"]));
        assert_eq!(
            of_quota("floating IPs", 3, 3).text,
            "floating IPs: 3 of 3 used, none is left"
        );
        assert!(of_quota("floating IPs", 0, 0).is_lacking);
        assert!(!of_quota("floating IPs", 2, 3).is_lacking && !of_quota("floating IPs", 9, -1).is_lacking);
    }
}
