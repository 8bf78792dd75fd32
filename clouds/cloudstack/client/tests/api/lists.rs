//! Lists are whole, or an error.

use bowline_cloudstack_client::{
    ApiError, Class, Detail, Lookup, PublicIpQuery, RuleQuery, VirtualMachineQuery,
};

use crate::answers::{Answer, Api, machines};

async fn names(api: &Api) -> Result<Vec<String>, ApiError> {
    let machines = api
        .client()
        .virtual_machines(&VirtualMachineQuery::All(Detail::All))
        .await?;
    Ok(machines.items.into_iter().map(|machine| machine.name).collect())
}

#[tokio::test]
async fn a_list_that_is_longer_than_an_answer_is_read_to_its_end() {
    let api = Api::new([
        machines(5, &["a", "b"]),
        machines(5, &["c", "d"]),
        machines(5, &["e"]),
    ]);
    assert_eq!(names(&api).await.unwrap(), ["a", "b", "c", "d", "e"]);
    assert_eq!(
        api.take_commands(),
        [
            "GET listVirtualMachines listall=true",
            "GET listVirtualMachines listall=true page=2 pagesize=2",
            "GET listVirtualMachines listall=true page=3 pagesize=2",
        ]
    );
}

#[tokio::test]
async fn a_list_that_fits_into_one_answer_costs_one_call() {
    let api = Api::new([machines(2, &["a", "b"])]);
    assert_eq!(names(&api).await.unwrap(), ["a", "b"]);
    assert_eq!(api.take_seen().len(), 1);
    let api = Api::new([Answer::ok(r#"{"listvirtualmachinesresponse":{}}"#)]);
    assert!(names(&api).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_list_that_changes_meanwhile_is_read_again() {
    let api = Api::new([
        machines(4, &["a", "b"]),
        machines(3, &["d"]),
        machines(3, &["b", "c"]),
        machines(3, &["d"]),
    ]);
    assert_eq!(names(&api).await.unwrap(), ["b", "c", "d"]);
}

#[tokio::test]
async fn a_list_that_stays_short_of_its_count_is_an_error() {
    let short = [machines(3, &["a"]), machines(3, &[])];
    let api = Api::new(short.into_iter().cycle().take(6));
    let error = names(&api).await.unwrap_err();
    assert_eq!(error.class, Class::Unanswered);
    assert_eq!(
        error.to_string(),
        "listVirtualMachines: the list is not whole: the server lists 1 and counts 3"
    );
}

#[tokio::test]
async fn a_list_that_is_as_short_each_time_is_all_there_is_for_who_says_so() {
    let rules = |count: usize, ids: &[&str]| {
        let list: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}"}}"#)).collect();
        let list = list.join(",");
        Answer::ok(&format!(
            r#"{{"listloadbalancerrulesresponse":{{"count":{count},"loadbalancerrule":[{list}]}}}}"#
        ))
    };
    let ask = async |api: &Api| {
        let client = api.client().taking_short_lists();
        let found = client.load_balancer_rules(&RuleQuery::All).await?;
        Ok::<_, ApiError>(
            found
                .into_iter()
                .map(|rule| rule.id.to_string())
                .collect::<Vec<_>>(),
        )
    };
    // It ends early, or knows no pages.
    for second in [rules(3, &[]), rules(3, &["a"])] {
        let pages = [rules(3, &["a"]), second];
        let api = Api::new(pages.into_iter().cycle().take(6));
        assert_eq!(ask(&api).await.unwrap(), ["a"]);
        assert_eq!(api.take_seen().len(), 6);
    }
    let grows = [
        rules(3, &["a"]),
        rules(3, &[]),
        rules(3, &["a", "b"]),
        rules(3, &[]),
        rules(3, &["a"]),
        rules(3, &[]),
    ];
    assert_eq!(ask(&Api::new(grows)).await.unwrap_err().class, Class::Unanswered);
}

#[tokio::test]
async fn a_server_that_ignores_pages_is_not_asked_for_ever() {
    let api = Api::new(vec![machines(4, &["a", "b"]); 6]);
    assert_eq!(names(&api).await.unwrap_err().class, Class::Unanswered);
    assert_eq!(api.take_seen().len(), 6);
}

#[tokio::test]
async fn a_page_that_fails_fails_the_list() {
    let api = Api::new([
        machines(3, &["a", "b"]),
        Answer::Body(
            530,
            r#"{"listvirtualmachinesresponse":{"errorcode":530,"errortext":"no"}}"#.to_owned(),
        ),
    ]);
    assert_eq!(
        names(&api).await.unwrap_err().class,
        Class::Unavailable { after: None }
    );
}

#[tokio::test]
async fn one_object_is_found_whatever_the_server_counts_and_its_absence_needs_a_whole_list() {
    let api = Api::new([machines(9, &["a"])]);
    let found = api.client().virtual_machine(&"a".into()).await.unwrap();
    assert!(matches!(found, Lookup::Found(_)));
    assert_eq!(api.take_seen().len(), 1);
    let short = vec![machines(2, &["b"]), machines(2, &[])];
    let first = [machines(2, &["b"])];
    let api = Api::new(first.into_iter().chain(short.into_iter().cycle().take(6)));
    let error = api.client().virtual_machine(&"a".into()).await.unwrap_err();
    assert_eq!(error.class, Class::Unanswered);
    let api = Api::new([machines(1, &["b"])]);
    let found = api.client().virtual_machine(&"a".into()).await.unwrap();
    assert_eq!(found, Lookup::Unlisted);
}

#[tokio::test]
async fn what_a_server_lists_beyond_the_question_is_left_out() {
    let api = Api::new(
        [
            r#"{"listfirewallrulesresponse":{"count":3,"firewallrule":[
                {"id":"f1","ipaddressid":"ip-1"},{"id":"f2","ipaddressid":"ip-2"},{"id":"f3"}]}}"#,
            r#"{"listnetworkaclsresponse":{"count":3,"networkacl":[
                {"id":"c1","aclid":"l-1"},{"id":"c2","aclid":"l-2"},{"id":"c3"}]}}"#,
            r#"{"listloadbalancerrulesresponse":{"count":3,"loadbalancerrule":[
                {"id":"e1","publicipid":"ip-1"},{"id":"e2","publicipid":"ip-2"},{"id":"e3"}]}}"#,
            r#"{"listpublicipaddressesresponse":{"count":3,"publicipaddress":[
                {"id":"a1","ipaddress":"203.0.113.1"},{"id":"a2","ipaddress":"203.0.113.11"},{"id":"a3"}]}}"#,
        ]
        .map(Answer::ok),
    );
    let client = api.client();
    let ids = |ids: Vec<String>| ids.join(" ");
    let rules = client.firewall_rules(&"ip-1".into()).await.unwrap();
    assert_eq!(
        ids(rules.iter().map(|rule| rule.id.to_string()).collect()),
        "f1 f3"
    );
    let items = client.network_acls(&"l-1".into()).await.unwrap();
    assert_eq!(
        ids(items.iter().map(|item| item.id.to_string()).collect()),
        "c1 c3"
    );
    let query = RuleQuery::On("ip-1".into());
    let rules = client.load_balancer_rules(&query).await.unwrap();
    assert_eq!(
        ids(rules.iter().map(|rule| rule.id.to_string()).collect()),
        "e1 e3"
    );
    let query = PublicIpQuery::Address("203.0.113.1".to_owned());
    let addresses = client.public_ip_addresses(&query).await.unwrap();
    assert_eq!(
        ids(addresses.iter().map(|address| address.id.to_string()).collect()),
        "a1"
    );
}
