//! How a batch of questions about instances becomes few calls: the same for every cloud that can list its instances.

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};

use super::{
    AbsenceProof, FoundBy, Instance, InstanceAnswer, InstanceMetadata, InstanceQuery, InstanceResult,
    InstanceState, InstancesV2, PowerState, Purpose,
};
use crate::{CloudError, ErrorKind, Node, Question};

/// What has to be looked for to answer a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sought<Id> {
    /// The instance with this ID.
    Id(Id),
    /// The instance with the Node's name.
    Name,
    /// None: the Node belongs to another cloud.
    Foreign,
}

/// The instances of a cloud: found in a listing of all, or asked for one by one. It is all that [`InstancesV2`] needs.
///
/// A cloud says how its instances are described, how they are looked for and what proves that one is gone. When to list and
/// when to ask is decided here: one instance is asked for alone, more cost one listing, and what needs no call costs none.
pub trait InstanceDirectory: Send + Sync + 'static {
    /// An instance's ID.
    type Id: Send + Sync;
    /// An instance as the cloud describes it.
    type Item: Send + Sync;
    /// All instances, usually an [`InstanceIndex`](super::InstanceIndex).
    type Listing: Send + Sync;

    /// What is to be looked for. Without any call.
    ///
    /// # Errors
    ///
    /// What the Node says is not enough: its provider ID is unreadable, or its name too weak for the purpose.
    fn sought(&self, query: &InstanceQuery) -> Result<Sought<Self::Id>, CloudError>;

    /// Lists all instances; those who ask at the same time share one listing.
    ///
    /// # Errors
    ///
    /// Any failure. It says nothing about any instance.
    fn list(&self) -> impl Future<Output = Result<Arc<Self::Listing>, CloudError>> + Send;

    /// Asks for one instance. This is where its absence is proved; [`answer`](Self::answer) turns what was found into an answer.
    fn ask(&self, query: &InstanceQuery, id: &Self::Id) -> impl Future<Output = InstanceResult> + Send;

    /// The instance with this ID in a listing.
    fn with_id<'a>(&self, listing: &'a Self::Listing, id: &Self::Id) -> Option<&'a Self::Item>;

    /// All instances in a listing that bear the name of a Node.
    ///
    /// # Errors
    ///
    /// The listing does not tell which they are.
    fn named<'a>(&self, listing: &'a Self::Listing, name: &str) -> Result<Vec<&'a Self::Item>, CloudError>;

    /// The names of all instances in a listing. Empty where the cloud does not tell.
    fn names(&self, listing: &Self::Listing) -> Vec<String> {
        let _ = listing;
        Vec::new()
    }

    /// An instance's ID, as it stands in messages.
    fn id_of(&self, item: &Self::Item) -> String;

    /// What an instance contributes to its Node, with the provider ID that the cloud writes.
    ///
    /// # Errors
    ///
    /// It has not what a Node needs, such as an address. It exists all the same.
    fn metadata(&self, node: &Node, item: &Self::Item) -> Result<InstanceMetadata, CloudError>;

    /// Whether an instance runs.
    fn power(&self, item: &Self::Item) -> PowerState;

    /// The state of an instance, for people.
    fn state(&self, item: &Self::Item) -> InstanceState;

    /// The answer about a Node of which no instance was found, where that proves nothing.
    fn not_found(&self, query: &InstanceQuery) -> CloudError;

    /// What proves that the instance of a Node without provider ID is gone, where a whole listing shows none of its name; `None`:
    /// nothing does, because a name is no identity.
    fn absence_by_name(&self, query: &InstanceQuery, listing: &Self::Listing) -> Option<AbsenceProof> {
        let _ = (query, listing);
        None
    }

    /// Adds to a failure for which Node the instance was looked for.
    fn unable(&self, query: &InstanceQuery, error: CloudError) -> CloudError;

    /// The one instance in a listing that bears the name of a Node.
    ///
    /// # Errors
    ///
    /// Several bear it: nobody knows which one it is. Or the listing does not tell.
    fn with_name<'a>(
        &self,
        listing: &'a Self::Listing,
        name: &str,
    ) -> Result<Option<&'a Self::Item>, CloudError> {
        let named = self.named(listing, name)?;
        if named.len() < 2 {
            return Ok(named.first().copied());
        }
        let ids: Vec<String> = named.into_iter().map(|item| self.id_of(item)).collect();
        Err(CloudError::invalid(format!(
            "found more than one instance with the name of node {name}: {}; set `spec.providerID` of the node, or rename all \
             but one of them",
            ids.join(", ")
        )))
    }

    /// The answer about an instance that is there.
    fn present(&self, query: &InstanceQuery, item: &Self::Item, found_by: FoundBy) -> InstanceResult {
        let mut metadata = match self.metadata(&query.node, item) {
            Ok(metadata) => metadata,
            Err(error) if query.purpose == Purpose::Metadata => return Err(error),
            Err(_) => InstanceMetadata::default(),
        };
        // An ID has many spellings, and that of a Node is never changed.
        if found_by == FoundBy::Id
            && let Some(own) = &query.node.provider_id
        {
            metadata.provider_id = Some(own.to_string());
        }
        Ok(InstanceAnswer::Present(Box::new(Instance {
            metadata,
            power: self.power(item),
            state: self.state(item),
            found_by,
        })))
    }

    /// The answer of [`ask`](Self::ask): what was found, or what proves that it is gone.
    fn answer(&self, query: &InstanceQuery, found: Result<&Self::Item, String>) -> InstanceResult {
        match found {
            Ok(item) => self.present(query, item, FoundBy::Id),
            Err(evidence) if query.purpose == Purpose::Existence => {
                Ok(InstanceAnswer::Absent(AbsenceProof::new(evidence)))
            }
            Err(_) => Err(self.not_found(query)),
        }
    }

    /// Looks into a listing: for the instance with an ID, else for the one with the Node's name. What has an ID and is not
    /// there is asked for where its absence is to be proved: a miss in a listing proves nothing.
    fn look_up(
        &self,
        query: &InstanceQuery,
        id: Option<&Self::Id>,
        listing: &Self::Listing,
    ) -> impl Future<Output = InstanceResult> + Send {
        async move {
            let found = match id {
                Some(id) => self.with_id(listing, id),
                None => self
                    .with_name(listing, query.node.name.as_str())
                    .map_err(|error| self.unable(query, error))?,
            };
            match (found, id) {
                (Some(item), Some(_)) => self.present(query, item, FoundBy::Id),
                (Some(item), None) => self.present(query, item, FoundBy::Name),
                (None, Some(id)) if self.is_asked_for(query.purpose) => self.ask(query, id).await,
                (None, None) if query.purpose == Purpose::Existence => self
                    .absence_by_name(query, listing)
                    .map(InstanceAnswer::Absent)
                    .ok_or_else(|| self.not_found(query)),
                (None, _) => Err(self.not_found(query)),
            }
        }
    }

    /// Whether an instance that is not listed is asked for by its ID: where its absence has to be proved.
    fn is_asked_for(&self, purpose: Purpose) -> bool {
        purpose == Purpose::Existence
    }

    /// Whether an absence is believed only of an API that has a list of instances: where an address that has nothing at all
    /// answers in the same words. It costs a listing for each instance that is asked for alone and is gone.
    fn needs_listing(&self) -> bool {
        false
    }

    /// Whether instances whose ID is known are asked for one by one after the listing failed in this way: there is hope that
    /// such a question is answered, and each costs a call. What is looked for by name is found by a listing only.
    fn outlives_listing(&self, error: &CloudError) -> bool {
        let _ = error;
        false
    }
}

impl<D: InstanceDirectory> InstancesV2 for D {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        answer_all(self, queries).boxed()
    }

    fn names(&self) -> Vec<Question<'_, String>> {
        let names = async { Ok(InstanceDirectory::names(self, &*self.list().await?)) };
        vec![Question::new(names)]
    }
}

/// How many instances are asked for one by one to see whether the credentials see anything at all. One is enough, and not
/// every one has to be there.
const WITNESSES: usize = 3;

/// How many answers are worked on at a time: each needs room for a call, and no client has more under way than this. What is
/// found in the listing takes no time.
const AT_ONCE: usize = 64;

/// Answers every query, in the order asked.
async fn answer_all<D: InstanceDirectory>(directory: &D, queries: &[InstanceQuery]) -> Vec<InstanceResult> {
    let sought: Vec<_> = queries.iter().map(|query| directory.sought(query)).collect();
    // Whether the credentials see anything at all is asked of the listing.
    if let ([query], [Ok(Sought::Id(id))]) = (queries, sought.as_slice())
        && query.purpose != Purpose::CredentialCheck
    {
        return vec![answer_one(directory, query, id).await];
    }
    let is_listed = |sought: &Result<_, _>| matches!(sought, Ok(Sought::Id(_) | Sought::Name));
    let listing = match sought.iter().any(is_listed) {
        true => directory.list().await,
        false => Err(CloudError::other("nothing was looked for")),
    };
    let is_outlived = listing
        .as_ref()
        .is_err_and(|error| directory.outlives_listing(error));
    let mut sightings = if is_outlived { WITNESSES } else { 0 };
    let is_asked: Vec<bool> = queries
        .iter()
        .zip(&sought)
        .map(|(query, sought)| match (query.purpose, sought) {
            (Purpose::CredentialCheck, Ok(Sought::Id(_))) => {
                let is_witness = sightings > 0;
                sightings -= usize::from(is_witness);
                is_witness
            }
            (_, Ok(Sought::Id(_))) => is_outlived,
            (_, Ok(Sought::Name | Sought::Foreign) | Err(_)) => false,
        })
        .collect();
    let is_blind = listing
        .as_ref()
        .is_ok_and(|listing| shows_no_witness(directory, queries, &sought, listing));
    let listing = &listing;
    let answer = |(index, (sought, is_asked)): (usize, (Result<_, _>, _))| async move {
        let query = &queries[index];
        let id = match sought? {
            Sought::Foreign => return Ok(InstanceAnswer::Foreign),
            Sought::Id(id) if is_asked => return directory.ask(query, &id).await,
            Sought::Id(id) => Some(id),
            Sought::Name => None,
        };
        match listing {
            Ok(_) if is_blind && query.purpose != Purpose::Metadata => Err(directory.not_found(query)),
            Ok(listing) => directory.look_up(query, id.as_ref(), listing).await,
            Err(error) => Err(directory.unable(query, unlisted(error))),
        }
    };
    // By their place: a closure that is handed a borrowed query would not do in a boxed future.
    stream::iter(std::iter::zip(sought, is_asked).enumerate())
        .map(answer)
        .buffered(AT_ONCE)
        .collect()
        .await
}

/// Answers a query that comes alone, with as little as proves the answer.
async fn answer_one<D: InstanceDirectory>(
    directory: &D,
    query: &InstanceQuery,
    id: &D::Id,
) -> InstanceResult {
    let answer = directory.ask(query, id).await?;
    if matches!(answer, InstanceAnswer::Absent(_))
        && directory.needs_listing()
        && let Err(error) = directory.list().await
        && error.kind() == ErrorKind::NotFound
    {
        return Err(directory.unable(query, unlisted(&error)));
    }
    Ok(answer)
}

/// Why there is no listing. That the list itself is not found says of no instance that it is not.
fn unlisted(error: &CloudError) -> CloudError {
    match error.kind() {
        ErrorKind::NotFound => CloudError::other(error.message()),
        _ => error.clone(),
    }
}

/// Whether a listing has none of the instances that certainly run. Then the credentials are not those of the cluster, and
/// what they do not show proves nothing: to ask for each suspect would cost a call and change no answer.
fn shows_no_witness<D: InstanceDirectory>(
    directory: &D,
    queries: &[InstanceQuery],
    sought: &[Result<Sought<D::Id>, CloudError>],
    listing: &D::Listing,
) -> bool {
    if directory.is_asked_for(Purpose::CredentialCheck) {
        return false;
    }
    let shown = |query: &InstanceQuery, sought: &Result<Sought<D::Id>, CloudError>| match sought {
        Ok(Sought::Id(id)) => Some(directory.with_id(listing, id).is_some()),
        Ok(Sought::Name) => Some(!matches!(
            directory.with_name(listing, query.node.name.as_str()),
            Ok(None)
        )),
        Ok(Sought::Foreign) | Err(_) => None,
    };
    let mut witnesses = queries
        .iter()
        .zip(sought)
        .filter(|(query, _)| query.purpose == Purpose::CredentialCheck)
        .filter_map(|(query, sought)| shown(query, sought))
        .peekable();
    witnesses.peek().is_some() && witnesses.all(|is_shown| !is_shown)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::InstanceIndex;

    /// Nodes `name`, `name=ID` and `name=foreign`; of all instances, `a` with the ID 1 is listed, `e` without an address, and two
    /// of the name `twin`.
    #[derive(Default)]
    struct Cloud {
        calls: Mutex<Vec<String>>,
        has_no_list: bool,
        outlives: bool,
    }

    impl InstanceDirectory for Cloud {
        type Id = String;
        type Item = (&'static str, &'static str);
        type Listing = InstanceIndex<&'static str, Self::Item>;

        fn sought(&self, query: &InstanceQuery) -> Result<Sought<String>, CloudError> {
            Ok(match query.node.provider_id.as_deref() {
                Some("foreign") => Sought::Foreign,
                Some(id) => Sought::Id(id.to_owned()),
                None => Sought::Name,
            })
        }

        async fn ask(&self, _: &InstanceQuery, id: &String) -> InstanceResult {
            self.calls.lock().unwrap().push(format!("ask {id}"));
            Err(CloudError::other(format!("asked {id}")))
        }

        async fn list(&self) -> Result<Arc<Self::Listing>, CloudError> {
            self.calls.lock().unwrap().push("list".to_owned());
            if self.has_no_list {
                return Err(CloudError::transient("bad gateway"));
            }
            let index = InstanceIndex::new(
                vec![("1", "a"), ("bare", "e"), ("8", "twin"), ("9", "twin")],
                |(id, _)| *id,
                |(_, name)| (*name).to_owned(),
            );
            Ok(Arc::new(index))
        }

        fn with_id<'a>(&self, listing: &'a Self::Listing, id: &String) -> Option<&'a Self::Item> {
            listing.with_id(id.as_str())
        }

        fn named<'a>(
            &self,
            listing: &'a Self::Listing,
            name: &str,
        ) -> Result<Vec<&'a Self::Item>, CloudError> {
            Ok(listing.with_name(name))
        }

        fn id_of(&self, (id, _): &Self::Item) -> String {
            (*id).to_owned()
        }

        fn metadata(&self, _: &Node, (id, _): &Self::Item) -> Result<InstanceMetadata, CloudError> {
            match *id {
                "bare" => Err(CloudError::other("no address")),
                id => Ok(InstanceMetadata {
                    provider_id: Some("as the cloud writes it".to_owned()),
                    zone: format!("found {id}"),
                    ..InstanceMetadata::default()
                }),
            }
        }

        fn power(&self, _: &Self::Item) -> PowerState {
            PowerState::On
        }

        fn state(&self, _: &Self::Item) -> InstanceState {
            InstanceState::default()
        }

        fn not_found(&self, query: &InstanceQuery) -> CloudError {
            CloudError::not_found(format!("nothing for {}", query.node.name))
        }

        fn unable(&self, query: &InstanceQuery, error: CloudError) -> CloudError {
            error.context(&query.node.name)
        }

        fn outlives_listing(&self, _: &CloudError) -> bool {
            self.outlives
        }
    }

    fn query(node: &str, purpose: Purpose) -> InstanceQuery {
        let (name, id) = node.split_once('=').unzip();
        let node = Node {
            provider_id: id.map(Arc::from),
            ..Node::named(name.unwrap_or(node))
        };
        InstanceQuery {
            node: Arc::new(node),
            purpose,
        }
    }

    fn answers(cloud: &Cloud, nodes: &[&str], purpose: Purpose) -> (String, String) {
        let queries: Vec<InstanceQuery> = nodes.iter().map(|node| query(node, purpose)).collect();
        let answers = answer_all(cloud, &queries).now_or_never().unwrap();
        let texts = answers.iter().map(|answer| match answer {
            Ok(InstanceAnswer::Present(instance)) => instance.metadata.zone.clone(),
            Ok(answer) => format!("{answer:?}"),
            Err(error) => error.to_string(),
        });
        let calls = std::mem::take(&mut *cloud.calls.lock().unwrap());
        (calls.join(", "), texts.collect::<Vec<_>>().join(", "))
    }

    /// Else a Node would be told that it has the ID of another instance.
    #[test]
    fn an_instance_found_by_the_nodes_id_has_that_in_the_nodes_spelling() {
        let queries = ["a=1", "a"].map(|node| query(node, Purpose::Metadata));
        let answers = answer_all(&Cloud::default(), &queries).now_or_never().unwrap();
        let found = answers.into_iter().map(|answer| match answer.unwrap() {
            InstanceAnswer::Present(instance) => (instance.found_by, instance.metadata.provider_id),
            other => panic!("{other:?}"),
        });
        let expected = [
            (FoundBy::Id, Some("1".to_owned())),
            (FoundBy::Name, Some("as the cloud writes it".to_owned())),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn one_instance_is_asked_for_and_several_are_listed_once() {
        let cloud = Cloud::default();
        let table: [(&[&str], Purpose, &str, &str); 7] = [
            (&["a=1"], Purpose::Metadata, "ask 1", "asked 1"),
            (&["a=1"], Purpose::CredentialCheck, "list", "found 1"),
            (&["b"], Purpose::Existence, "list", "nothing for b"),
            (&["a=foreign"], Purpose::Existence, "", "Foreign"),
            (
                &["b=2", "x=foreign", "a"],
                Purpose::Metadata,
                "list",
                "nothing for b, Foreign, found 1",
            ),
            // A miss in a listing proves nothing.
            (
                &["b=2", "a=1"],
                Purpose::Existence,
                "list, ask 2",
                "asked 2, found 1",
            ),
            (&[], Purpose::Metadata, "", ""),
        ];
        for (nodes, purpose, calls, texts) in table {
            assert_eq!(
                answers(&cloud, nodes, purpose),
                (calls.to_owned(), texts.to_owned()),
                "{nodes:?}"
            );
        }
    }

    #[test]
    fn where_no_ready_node_is_listed_no_other_is_asked_for() {
        let cloud = Cloud::default();
        let mixed = |witness: &str| {
            let queries = [
                query("b=2", Purpose::Existence),
                query("c=3", Purpose::Existence),
                query("x=foreign", Purpose::CredentialCheck),
                query(witness, Purpose::CredentialCheck),
            ];
            answer_all(&cloud, &queries).now_or_never().unwrap();
            std::mem::take(&mut *cloud.calls.lock().unwrap()).join(", ")
        };
        assert_eq!(mixed("w=7"), "list");
        assert_eq!(mixed("w"), "list");
        assert_eq!(mixed("a=1"), "list, ask 2, ask 3");
        // Without a witness nothing speaks against the answers.
        assert_eq!(mixed("y=foreign"), "list, ask 2, ask 3");
    }

    #[test]
    fn what_a_new_node_is_called_is_found_whoever_else_is_not_listed() {
        let cloud = Cloud::default();
        let queries = [
            query("a", Purpose::Metadata),
            query("w=7", Purpose::CredentialCheck),
        ];
        let answers = answer_all(&cloud, &queries).now_or_never().unwrap();
        assert!(matches!(answers[..], [Ok(InstanceAnswer::Present(_)), Err(_)]));
        assert_eq!(*cloud.calls.lock().unwrap(), ["list"]);
    }

    #[test]
    fn an_instance_without_an_address_exists_but_gives_a_node_nothing() {
        let cloud = Cloud::default();
        let texts = |purpose| answers(&cloud, &["e"], purpose).1;
        assert_eq!(texts(Purpose::CredentialCheck), "");
        assert_eq!(texts(Purpose::Metadata), "no address");
    }

    #[test]
    fn a_name_that_several_bear_is_an_error_that_says_which_and_what_to_do() {
        let (_, text) = answers(&Cloud::default(), &["twin"], Purpose::Metadata);
        assert_eq!(
            text,
            "twin: found more than one instance with the name of node twin: 8, 9; set `spec.providerID` of the node, or rename all \
             but one of them"
        );
    }

    #[test]
    fn a_failed_listing_answers_nobody_but_those_who_need_none() {
        let cloud = Cloud {
            has_no_list: true,
            ..Cloud::default()
        };
        let (calls, texts) = answers(&cloud, &["a=1", "x=foreign", "b"], Purpose::Existence);
        assert_eq!(calls, "list");
        assert_eq!(texts, "a: bad gateway, Foreign, b: bad gateway");
    }

    #[test]
    fn that_the_list_is_not_found_says_nothing_about_an_instance() {
        let error = unlisted(&CloudError::not_found("servers.list: 404 Not Found"));
        assert_eq!(
            (error.kind(), error.message()),
            (ErrorKind::Other, "servers.list: 404 Not Found")
        );
        assert_eq!(
            unlisted(&CloudError::transient("bad gateway")).kind(),
            ErrorKind::Transient
        );
    }

    #[test]
    fn after_a_failed_listing_instances_with_an_id_may_be_asked_for_one_by_one() {
        let cloud = Cloud {
            has_no_list: true,
            outlives: true,
            ..Cloud::default()
        };
        let (calls, texts) = answers(&cloud, &["a=1", "x=foreign", "b", "c=3"], Purpose::Existence);
        assert_eq!(calls, "list, ask 1, ask 3");
        assert_eq!(texts, "asked 1, Foreign, b: bad gateway, asked 3");
        // Whether anything is seen is asked of a few.
        let (calls, texts) = answers(
            &cloud,
            &["a=1", "b", "c=3", "d=4", "e=5"],
            Purpose::CredentialCheck,
        );
        assert_eq!(calls, "list, ask 1, ask 3, ask 4");
        assert_eq!(texts, "asked 1, b: bad gateway, asked 3, asked 4, e: bad gateway");
    }
}
