//! How a batch of questions about machines becomes few calls. The same for every cloud that can list its machines.

use std::future::Future;
use std::sync::Arc;

use futures::future::join_all;

use crate::{CloudError, InstanceQuery, InstanceResult, Purpose};

/// What has to be looked for to answer a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sought<Id> {
    /// The machine with this ID.
    Id(Id),
    /// The machine with the Node's name.
    Name,
}

/// The machines of a cloud: found in a listing of all, or asked for one by one.
///
/// With it, [`answer_all`] is all that [`InstancesV2`](crate::InstancesV2) needs.
pub trait MachineDirectory: Send + Sync {
    /// A machine's ID.
    type Id: Send + Sync;
    /// All machines.
    type Listing: Send + Sync;

    /// What is to be looked for. Without any call.
    ///
    /// # Errors
    ///
    /// The answer itself, where the Node alone gives it: it is another cloud's, or its provider ID is unreadable.
    fn sought(&self, query: &InstanceQuery) -> Result<Sought<Self::Id>, InstanceResult>;

    /// Asks for one machine.
    fn ask(&self, query: &InstanceQuery, id: &Self::Id) -> impl Future<Output = InstanceResult> + Send;

    /// Lists all machines.
    ///
    /// # Errors
    ///
    /// Any failure. It says nothing about any machine.
    fn list(&self) -> impl Future<Output = Result<Arc<Self::Listing>, CloudError>> + Send;

    /// Looks into a listing. A machine that is not there may be asked for: its absence from a listing proves nothing.
    fn look_up(
        &self,
        query: &InstanceQuery,
        sought: &Sought<Self::Id>,
        listing: &Self::Listing,
    ) -> impl Future<Output = InstanceResult> + Send;

    /// Whether machines whose ID is known are asked for one by one after the listing failed in this way: there is hope that
    /// such a question is answered, and each costs a call. Whoever is found by name only is found by a listing only.
    fn outlives_listing(&self, error: &CloudError) -> bool {
        let _ = error;
        false
    }

    /// Adds to the failure of a listing for which Node it was made.
    fn unlisted(&self, query: &InstanceQuery, error: CloudError) -> CloudError;
}

/// How many machines are asked for one by one to see whether the credentials see anything at all. One is enough, and not
/// every one has to be there.
const WITNESSES: usize = 3;

/// Answers every query, in the order asked: one machine is asked for alone, more cost one listing, and what needs no call
/// costs none.
///
/// # Cancellation
///
/// May be dropped at any await: it only reads.
pub async fn answer_all<M: MachineDirectory>(machines: &M, queries: &[InstanceQuery]) -> Vec<InstanceResult> {
    let sought: Vec<_> = queries.iter().map(|query| machines.sought(query)).collect();
    // Whether the credentials see anything at all is asked of the listing.
    if let ([query], [Ok(Sought::Id(id))]) = (queries, sought.as_slice())
        && query.purpose != Purpose::Sighting
    {
        return vec![machines.ask(query, id).await];
    }
    let listing = if sought.iter().any(Result::is_ok) {
        Some(machines.list().await)
    } else {
        None
    };
    let is_outlived = matches!(&listing, Some(Err(error)) if machines.outlives_listing(error));
    let mut sightings = if is_outlived { WITNESSES } else { 0 };
    let is_asked: Vec<bool> = queries
        .iter()
        .zip(&sought)
        .map(|(query, sought)| match (query.purpose, sought) {
            (_, Err(_) | Ok(Sought::Name)) => false,
            (Purpose::Sighting, Ok(Sought::Id(_))) => {
                let is_witness = sightings > 0;
                sightings -= usize::from(is_witness);
                is_witness
            }
            (_, Ok(Sought::Id(_))) => is_outlived,
        })
        .collect();
    let answers = queries
        .iter()
        .zip(sought)
        .zip(is_asked)
        .map(async |((query, sought), is_asked)| {
            match (sought, &listing) {
                (Err(answer), _) => answer,
                (Ok(Sought::Id(id)), _) if is_asked => machines.ask(query, &id).await,
                (Ok(sought), Some(Ok(listing))) => machines.look_up(query, &sought, listing).await,
                (Ok(_), Some(Err(error))) => Err(machines.unlisted(query, error.clone())),
                // Cannot be: whatever is sought is listed.
                (Ok(_), None) => Err(CloudError::other("the machines were not listed")),
            }
        });
    join_all(answers).await
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt;

    use super::*;
    use crate::{InstanceAnswer, Node};

    /// Nodes `name`, `name=ID` and `name=foreign`; of all machines, one is called `a`.
    #[derive(Default)]
    struct Cloud {
        calls: Mutex<Vec<String>>,
        has_no_list: bool,
        outlives: bool,
    }

    impl MachineDirectory for Cloud {
        type Id = String;
        type Listing = Vec<&'static str>;

        fn sought(&self, query: &InstanceQuery) -> Result<Sought<String>, InstanceResult> {
            match query.node.provider_id.as_deref() {
                Some("foreign") => Err(Ok(InstanceAnswer::Foreign)),
                Some(id) => Ok(Sought::Id(id.to_owned())),
                None => Ok(Sought::Name),
            }
        }

        async fn ask(&self, _: &InstanceQuery, id: &String) -> InstanceResult {
            self.calls.lock().unwrap().push(format!("ask {id}"));
            Err(CloudError::other(format!("asked {id}")))
        }

        async fn list(&self) -> Result<Arc<Vec<&'static str>>, CloudError> {
            self.calls.lock().unwrap().push("list".to_owned());
            match self.has_no_list {
                true => Err(CloudError::transient("bad gateway")),
                false => Ok(Arc::new(vec!["a"])),
            }
        }

        async fn look_up(
            &self,
            query: &InstanceQuery,
            sought: &Sought<String>,
            listing: &Vec<&'static str>,
        ) -> InstanceResult {
            let is_listed = listing.contains(&query.node.name.as_str());
            Err(CloudError::other(format!("{sought:?} {is_listed}")))
        }

        fn outlives_listing(&self, _: &CloudError) -> bool {
            self.outlives
        }

        fn unlisted(&self, query: &InstanceQuery, error: CloudError) -> CloudError {
            error.context(&query.node.name)
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
            Ok(answer) => format!("{answer:?}"),
            Err(error) => error.to_string(),
        });
        let calls = std::mem::take(&mut *cloud.calls.lock().unwrap());
        (calls.join(", "), texts.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn one_machine_is_asked_for_and_several_are_listed_once() {
        let cloud = Cloud::default();
        let table: [(&[&str], Purpose, &str, &str); 6] = [
            (&["a=1"], Purpose::Metadata, "ask 1", "asked 1"),
            (&["a=1"], Purpose::Sighting, "list", "Id(\"1\") true"),
            (&["b"], Purpose::Existence, "list", "Name false"),
            (&["a=foreign"], Purpose::Existence, "", "Foreign"),
            (
                &["b=2", "x=foreign", "a"],
                Purpose::Metadata,
                "list",
                "Id(\"2\") false, Foreign, Name true",
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
    fn after_a_failed_listing_machines_with_an_id_may_be_asked_for_one_by_one() {
        let cloud = Cloud {
            has_no_list: true,
            outlives: true,
            ..Cloud::default()
        };
        let (calls, texts) = answers(&cloud, &["a=1", "x=foreign", "b", "c=3"], Purpose::Existence);
        assert_eq!(calls, "list, ask 1, ask 3");
        assert_eq!(texts, "asked 1, Foreign, b: bad gateway, asked 3");
        // Whether anything is seen is asked of a few.
        let (calls, texts) = answers(&cloud, &["a=1", "b", "c=3", "d=4", "e=5"], Purpose::Sighting);
        assert_eq!(calls, "list, ask 1, ask 3, ask 4");
        assert_eq!(texts, "asked 1, b: bad gateway, asked 3, asked 4, e: bad gateway");
    }
}
