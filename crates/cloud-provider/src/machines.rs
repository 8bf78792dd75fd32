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

    /// Adds to the failure of a listing for which Node it was made.
    fn unlisted(&self, query: &InstanceQuery, error: CloudError) -> CloudError;
}

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
    let answers = queries.iter().zip(sought).map(async |(query, sought)| {
        match (sought, &listing) {
            (Err(answer), _) => answer,
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
}
