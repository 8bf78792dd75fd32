//! Tags.

use serde_json::json;

use crate::support::{Caller, cloud, each};

#[tokio::test(start_paused = true)]
async fn address_is_found_by_its_tag() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let (one, two) = (caller.associate().await, caller.associate().await);
    let ids = format!("{one},{two}");
    let tag = [
        ("resourcetype", "PublicIpAddress"),
        ("tags[0].key", "k8s-service-uid"),
        ("tags[0].value", "7c9e"),
    ];
    let with = |ids: &'static str| [("resourceids", ids), tag[0], tag[1], tag[2]];
    let both = [("resourceids", ids.as_str()), tag[0], tag[1], tag[2]];
    assert_eq!(
        caller.run("createTags", &both).await,
        Ok(json!({ "success": true }))
    );
    let twice = caller.run("createTags", &both).await.unwrap_err();
    assert_eq!(twice.0, 530);
    let filter = [("listall", "true"), tag[1], tag[2]];
    let found = caller.get("listPublicIpAddresses", &filter).await;
    assert_eq!(each(&found, "publicipaddress", "id"), [one.clone(), two.clone()]);
    let expected = json!([{ "key": "k8s-service-uid", "value": "7c9e", "resourcetype": "PublicIpAddress", "resourceid": one }]);
    assert_eq!(found["publicipaddress"][0]["tags"], expected);
    let other = [tag[1], ("tags[0].value", "x")];
    assert_eq!(caller.get("listPublicIpAddresses", &other).await, json!({}));
    let found = caller.get("listTags", &[("resourceid", &one)]).await;
    assert_eq!(found["tag"], expected);

    caller
        .run("disassociateIpAddress", &[("id", &one)])
        .await
        .unwrap();
    caller
        .run("deleteTags", &[("resourceids", &two), tag[0], tag[1]])
        .await
        .unwrap();
    assert_eq!(caller.get("listTags", &[]).await, json!({}));
    assert_eq!(caller.run("createTags", &with("7f")).await.unwrap_err().0, 431);
    assert_eq!(
        caller
            .refusal("createTags", &[("resourceids", &two), tag[0]])
            .await
            .0,
        431
    );
    assert_eq!(
        caller
            .refusal("createTags", &[("resourceids", &two), ("resourcetype", "Moon")])
            .await
            .0,
        431
    );
}

#[tokio::test(start_paused = true)]
async fn tags_may_be_forbidden() {
    let (sim, _) = cloud();
    sim.set_behaviour(|it| {
        it.forbidden_to_users.insert("createTags".to_owned());
    });
    let caller = Caller::new(&sim);
    assert_eq!(caller.refusal("createTags", &[]).await.0, 432);
}
