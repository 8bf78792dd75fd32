//! Instances of Nodes, with a configuration file as the program reads it.

use std::io;
use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, SocketOptions, Transport};
use bowline_cloud_provider::{
    CloudConfig, CloudProvider, Environment, Instance, InstanceAnswer, InstanceQuery, Node, PowerState,
    Purpose,
};
use bowline_openstack::{Client, Metrics, Offer, OpenStack, Options};

use super::on_both;
use crate::ground::Ground;

on_both! {
    an_instance_is_found_switched_off_and_proved_absent,
}

/// The provider as the program starts it.
async fn provider(ground: &Ground) -> OpenStack {
    let (url, user) = (ground.keystone_url(), ground.user());
    let contents = format!(
        "[Global]\nauth-url = {url}\nusername = {user}\npassword = {user}\ntenant-name = {user}\n\
         domain-id = default\nregion = RegionOne\n"
    );
    let config = CloudConfig::Given {
        path: "cloud.conf".to_owned(),
        contents: contents.into_bytes(),
    };
    let options = Options::read(&config, &Environment::default(), &|_| {
        Err(io::ErrorKind::NotFound.into())
    })
    .unwrap();
    let (mut http, mut sockets) = (
        CloudHttpConfig::new("openstack", "test"),
        SocketOptions::default(),
    );
    options.configure(&mut http, &mut sockets);
    let transport = Transport::sockets(&sockets).unwrap();
    let client = Client::new(CloudHttp::new(http, transport), options.settings.clone());
    let offer = Offer::ask(&client, &options, true).await.unwrap();
    OpenStack::new(client, &options, offer, &Metrics::default())
}

async fn ask(provider: &OpenStack, node: &Node, purpose: Purpose) -> InstanceAnswer {
    let query = InstanceQuery {
        node: Arc::new(node.clone()),
        purpose,
    };
    let mut answers = provider.instances().unwrap().instances(&[query]).await;
    answers.remove(0).unwrap()
}

#[track_caller]
fn present(answer: InstanceAnswer) -> Instance {
    match answer {
        InstanceAnswer::Present(instance) => *instance,
        other => panic!("not present: {other:?}"),
    }
}

async fn an_instance_is_found_switched_off_and_proved_absent(ground: Ground) {
    let server = ground.server("node-1").await;
    let provider = provider(&ground).await;
    let mut node = Node::named("node-1");
    let instance = present(ask(&provider, &node, Purpose::Metadata).await);
    let id = format!("openstack:///{server}");
    assert_eq!(instance.metadata.provider_id.as_deref(), Some(&*id));
    assert_eq!(instance.metadata.instance_type, "m1.small");
    assert_eq!(instance.power, PowerState::On);
    let addresses = format!("{:?}", instance.metadata);
    assert!(addresses.contains("10.0.0."), "{addresses}");

    node.provider_id = Some(id.into());
    ground.stop(&server).await;
    let instance = present(ask(&provider, &node, Purpose::Existence).await);
    assert_eq!(instance.power, PowerState::Off);

    ground.delete(&server).await;
    let gone = ask(&provider, &node, Purpose::Existence).await;
    assert!(matches!(gone, InstanceAnswer::Absent(_)), "{gone:?}");
}
