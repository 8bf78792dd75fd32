//! Lists are whole, or an error.

use bowline_cloudstack_client::{ApiError, ErrorKind, VirtualMachineQuery};

use crate::answers::{Answer, Api};

async fn names(api: &Api) -> Result<Vec<String>, ApiError> {
    let machines = api
        .client()
        .virtual_machines(&VirtualMachineQuery::default())
        .await?;
    Ok(machines.into_iter().map(|machine| machine.name).collect())
}

#[tokio::test]
async fn a_list_that_is_longer_than_an_answer_is_read_to_its_end() {
    let api = Api::new([
        Answer::machines(5, &["a", "b"]),
        Answer::machines(5, &["c", "d"]),
        Answer::machines(5, &["e"]),
    ]);
    assert_eq!(names(&api).await.unwrap(), ["a", "b", "c", "d", "e"]);
    assert_eq!(
        api.take_commands(),
        [
            "GET listVirtualMachines",
            "GET listVirtualMachines page=2 pagesize=2",
            "GET listVirtualMachines page=3 pagesize=2",
        ]
    );
}

#[tokio::test]
async fn a_list_that_fits_into_one_answer_costs_one_call() {
    let api = Api::new([Answer::machines(2, &["a", "b"])]);
    assert_eq!(names(&api).await.unwrap(), ["a", "b"]);
    assert_eq!(api.take_seen().len(), 1);
    let api = Api::new([Answer::ok(r#"{"listvirtualmachinesresponse":{}}"#)]);
    assert!(names(&api).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_list_that_changes_meanwhile_is_read_again() {
    let api = Api::new([
        Answer::machines(4, &["a", "b"]),
        Answer::machines(3, &["d"]),
        Answer::machines(3, &["b", "c"]),
        Answer::machines(3, &["d"]),
    ]);
    assert_eq!(names(&api).await.unwrap(), ["b", "c", "d"]);
}

#[tokio::test]
async fn a_list_that_stays_short_of_its_count_is_an_error() {
    let short = [Answer::machines(3, &["a"]), Answer::machines(3, &[])];
    let api = Api::new(short.into_iter().cycle().take(6));
    let error = names(&api).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Truncated);
    assert_eq!(
        error.to_string(),
        "listVirtualMachines: the list is not whole: the server lists 1 and counts 3"
    );
}

#[tokio::test]
async fn a_server_that_ignores_pages_is_not_asked_for_ever() {
    let api = Api::new(vec![Answer::machines(4, &["a", "b"]); 6]);
    assert_eq!(names(&api).await.unwrap_err().kind, ErrorKind::Truncated);
    assert_eq!(api.take_seen().len(), 6);
}

#[tokio::test]
async fn a_page_that_fails_fails_the_list() {
    let api = Api::new([
        Answer::machines(3, &["a", "b"]),
        Answer::Body(
            530,
            r#"{"listvirtualmachinesresponse":{"errorcode":530,"errortext":"no"}}"#.to_owned(),
        ),
    ]);
    assert_eq!(
        names(&api).await.unwrap_err().kind,
        ErrorKind::Server { retry_after: None }
    );
}
