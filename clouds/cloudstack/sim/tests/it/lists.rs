//! Lists: what they filter by, whom they show what, and their pages.

use bowline_cloudstack_sim::{NetworkSpec, NicSpec, Owner, ProjectSpec, UserSpec, VmSpec, VmState};
use serde_json::{Value, json};

use crate::support::{Caller, cloud, each};

fn names(payload: &Value) -> Vec<String> {
    each(payload, "virtualmachine", "name")
}

#[tokio::test(start_paused = true)]
async fn virtual_machine_is_told_in_full() {
    let (sim, vms) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    sim.set_static_nat(&address, Some(&vms[1]));
    sim.edit_vm(&vms[1], |vm| {
        vm.nics[0].ipv6 = Some("2001:db8::47".parse().unwrap())
    });
    let found = caller.get("listVirtualMachines", &[("id", &vms[1])]).await;
    assert_eq!(found["count"], 1);
    let vm = &found["virtualmachine"][0];
    for (field, value) in [
        ("name", "pool-a-7"),
        ("state", "Running"),
        ("zonename", "Zurich-1"),
        ("serviceofferingname", "Medium 4c/8g"),
        ("publicip", "203.0.113.11"),
        ("account", "team"),
    ] {
        assert_eq!(vm[field], value, "{vm}");
    }
    assert_eq!(vm.get("hostname"), None, "that is for root admins");
    let nic = &vm["nic"][0];
    assert_eq!(nic["networkid"], sim.network());
    assert_eq!(nic["ipaddress"], "10.1.1.47");
    assert_eq!(nic["ip6address"], "2001:db8::47");
    assert_eq!(
        (&nic["isdefault"], &nic["type"]),
        (&json!(true), &json!("Isolated"))
    );

    let short = caller
        .get("listVirtualMachines", &[("id", &vms[1]), ("details", "min,nics")])
        .await;
    let vm = &short["virtualmachine"][0];
    assert!(vm.get("serviceofferingname").is_none() && vm["nic"][0]["ipaddress"] == "10.1.1.47");
    let shorter = caller
        .get("listVirtualMachines", &[("id", &vms[1]), ("details", "min")])
        .await;
    assert_eq!(shorter["virtualmachine"][0].get("nic"), None);
    assert_eq!(
        caller
            .refusal("listVirtualMachines", &[("details", "nick")])
            .await
            .0,
        431
    );
}

#[tokio::test(start_paused = true)]
async fn name_is_a_part_without_case_and_ids_are_whole() {
    let (sim, vms) = cloud();
    sim.add_vm(VmSpec::new("pool-a-70"));
    let caller = Caller::new(&sim);
    let found = caller.get("listVirtualMachines", &[("name", "POOL-A-7")]).await;
    assert_eq!(names(&found), ["pool-a-7", "pool-a-70"]);
    let none = caller.get("listVirtualMachines", &[("name", "pool-b")]).await;
    assert_eq!(none, json!({}), "an empty list is an empty object");
    let both = format!("{},{}", vms[2], vms[0]);
    let found = caller.get("listVirtualMachines", &[("ids", &both)]).await;
    assert_eq!(names(&found), ["cp-a", "pool-a-8"]);
    let refused = caller
        .refusal("listVirtualMachines", &[("ids", &both), ("id", &vms[0])])
        .await;
    assert_eq!(refused.0, 431);
    let unknown = caller.refusal("listVirtualMachines", &[("ids", "7f")]).await;
    assert!(
        unknown.1.contains("Invalid parameter ids value=7f due to"),
        "{}",
        unknown.1
    );
    let stopped = caller.get("listVirtualMachines", &[("state", "stopped")]).await;
    assert_eq!(stopped, json!({}));
    let other = sim.add_network(NetworkSpec::new("storage"));
    let nic = NicSpec {
        network: Some(other.clone()),
        is_default: true,
        ..NicSpec::default()
    };
    sim.add_vm(VmSpec::with_nics("two-legs", [NicSpec::default(), nic]));
    let there = caller.get("listVirtualMachines", &[("networkid", &other)]).await;
    assert_eq!(names(&there), ["two-legs"]);
    assert_eq!(there["virtualmachine"][0]["nic"][0]["isdefault"], false);
}

#[tokio::test(start_paused = true)]
async fn destroyed_vm_is_shown_to_admins_and_expunged_one_to_nobody() {
    let (sim, vms) = cloud();
    sim.add_user(UserSpec::new("a", "s").admin());
    let (user, admin) = (Caller::new(&sim), Caller::with_keys(&sim, "a", "s"));
    sim.destroy_vm(&vms[0]);
    let by_id = [("id", vms[0].as_str())];
    assert_eq!(user.get("listVirtualMachines", &by_id).await, json!({}));
    let seen = admin.get("listVirtualMachines", &by_id).await;
    assert_eq!(seen["virtualmachine"][0]["state"], "Destroyed");
    assert_eq!(seen["virtualmachine"][0]["hostname"], "kvm-host-12");
    sim.set_behaviour(|it| it.users_see_destroyed = true);
    assert_eq!(user.get("listVirtualMachines", &by_id).await["count"], 1);
    assert!(sim.expunge_vm(&vms[0]) && !sim.expunge_vm(&vms[0]));
    for caller in [&user, &admin] {
        assert_eq!(
            caller.get("listVirtualMachines", &[("name", "cp-a")]).await,
            json!({})
        );
        assert_eq!(caller.refusal("listVirtualMachines", &by_id).await.0, 431);
    }
    sim.set_vm_state(&vms[1], VmState::Stopped);
    assert_eq!(
        user.get("listVirtualMachines", &[("state", "Stopped")]).await["count"],
        1
    );
}

#[tokio::test(start_paused = true)]
async fn everybody_sees_what_is_theirs() {
    let (sim, vms) = cloud();
    sim.add_user(UserSpec::new("o", "s").account("other"));
    sim.add_user(UserSpec::new("a", "s").account("admin").admin());
    let foreign = sim.add_vm(VmSpec {
        owner: Some(Owner::Account("other".to_owned())),
        ..VmSpec::new("foreign")
    });
    let (user, admin) = (Caller::new(&sim), Caller::with_keys(&sim, "a", "s"));
    let other = Caller::with_keys(&sim, "o", "s");
    let everything = [("listall", "true")];
    assert_eq!(user.get("listVirtualMachines", &everything).await["count"], 3);
    assert_eq!(
        names(&other.get("listVirtualMachines", &everything).await),
        ["foreign"]
    );
    assert_eq!(
        user.get("listVirtualMachines", &[("id", &foreign)]).await,
        json!({})
    );
    assert_eq!(
        admin.get("listVirtualMachines", &[]).await,
        json!({}),
        "only the own account's"
    );
    assert_eq!(admin.get("listVirtualMachines", &everything).await["count"], 4);
    assert_eq!(
        names(&admin.get("listVirtualMachines", &[("id", &vms[0])]).await),
        ["cp-a"]
    );
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_project_are_shown_with_it_only() {
    let (sim, _) = cloud();
    sim.add_user(UserSpec::new("o", "s").account("other"));
    let project = sim.add_project(ProjectSpec::new("prod"));
    let network = sim.add_network(NetworkSpec::of_project("k8s-prod", &project));
    let vm = sim.add_vm(VmSpec {
        owner: Some(Owner::Project(project.clone())),
        ..VmSpec::with_nics("prod-1", [NicSpec::on(&network)])
    });
    let (user, other) = (Caller::new(&sim), Caller::with_keys(&sim, "o", "s"));
    let with = [("projectid", project.as_str()), ("listall", "true")];
    let found = user.get("listVirtualMachines", &with).await;
    assert_eq!(names(&found), ["prod-1"]);
    assert_eq!(found["virtualmachine"][0]["projectid"], project);
    assert_eq!(found["virtualmachine"][0].get("account"), None);
    assert_eq!(user.get("listVirtualMachines", &[("id", &vm)]).await, json!({}));
    assert_eq!(user.get("listNetworks", &[("id", &network)]).await, json!({}));
    assert_eq!(
        user.get("listNetworks", &[("id", &network), with[0]]).await["count"],
        1
    );
    assert_eq!(
        user.get("listVirtualMachines", &[("projectid", "-1")]).await["count"],
        4
    );
    assert_eq!(other.refusal("listVirtualMachines", &with).await.0, 531);
    assert_eq!(
        user.refusal("listVirtualMachines", &[("projectid", "prod")])
            .await
            .0,
        431
    );
    let found = user.get("listProjects", &[("name", "prod")]).await;
    assert_eq!(each(&found, "project", "id"), [project]);
    assert_eq!(other.get("listProjects", &[("name", "prod")]).await, json!({}));
}

#[tokio::test(start_paused = true)]
async fn pages_hold_part_and_tell_the_number_of_all() {
    let (sim, _) = cloud();
    sim.add_vms("w", 4);
    sim.set_behaviour(|it| it.page_size = Some(3));
    let caller = Caller::new(&sim);
    let page = async |parameters: &[(&str, &str)]| {
        let found = caller.get("listVirtualMachines", parameters).await;
        (found["count"].clone(), names(&found))
    };
    let (count, first) = page(&[]).await;
    assert_eq!((count, first.len()), (json!(7), 3));
    assert_eq!(page(&[("page", "1"), ("pagesize", "3")]).await.1, first);
    assert_eq!(
        page(&[("page", "2"), ("pagesize", "3")]).await.1,
        ["w-1", "w-2", "w-3"]
    );
    assert_eq!(page(&[("page", "3"), ("pagesize", "3")]).await.1, ["w-4"]);
    assert_eq!(
        page(&[("page", "4"), ("pagesize", "3")]).await,
        (json!(7), vec![])
    );
    for wrong in [
        [("page", "1"), ("pagesize", "4")],
        [("page", "0"), ("pagesize", "3")],
        [("page", "x"), ("pagesize", "3")],
        [("page", "2"), ("keyword", "")],
        [("pagesize", "2"), ("keyword", "")],
    ] {
        assert_eq!(
            caller.refusal("listVirtualMachines", &wrong).await.0,
            431,
            "{wrong:?}"
        );
    }
    sim.set_behaviour(|it| it.page_size = None);
    assert_eq!(page(&[]).await.1.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn networks_say_what_they_offer() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let found = caller.get("listNetworks", &[("id", &sim.network())]).await;
    let network = &found["network"][0];
    assert_eq!(
        (&network["type"], &network["state"]),
        (&json!("Isolated"), &json!("Implemented"))
    );
    assert_eq!((network.get("vpcid"), network.get("aclid")), (None, None));
    let services = each(network, "service", "name");
    for service in ["Lb", "Firewall", "SourceNat"] {
        assert!(services.iter().any(|it| it == service), "{services:?}");
    }
    let bern = sim.add_zone("Bern-2");
    let found = caller.get("listZones", &[]).await;
    assert_eq!(each(&found, "zone", "name"), ["Zurich-1", "Bern-2"]);
    let vm = sim.add_vm(VmSpec {
        zone: Some(bern.clone()),
        ..VmSpec::new("far")
    });
    let found = caller.get("listVirtualMachines", &[("zoneid", &bern)]).await;
    assert_eq!(each(&found, "virtualmachine", "id"), [vm]);
}
