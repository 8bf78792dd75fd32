//! Whose instance a Node is.

use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt as _};

use crate::{
    CloudError, CloudProvider, ErrorKind, InstanceAnswer, InstanceQuery, InstanceResult, InstancesV2, Node,
    Question,
};

/// The instances of several clouds.
pub(super) struct Instances(Vec<OfCloud>);

struct OfCloud {
    name: &'static str,
    platforms: Vec<&'static str>,
    provider: Arc<dyn CloudProvider>,
    instances: Arc<dyn InstancesV2>,
}

impl Instances {
    /// Those of these clouds; `None` if none of them has instances.
    pub(super) fn of<'a>(clouds: impl Iterator<Item = &'a Arc<dyn CloudProvider>>) -> Option<Self> {
        let all = clouds.filter_map(|cloud| {
            Some(OfCloud {
                name: cloud.name(),
                platforms: cloud.platforms(),
                instances: cloud.instances()?,
                provider: Arc::clone(cloud),
            })
        });
        let all: Vec<OfCloud> = all.collect();
        (!all.is_empty()).then_some(Self(all))
    }

    /// Who is asked about a Node: the cloud of its scheme; where its ID bears none, the clouds whose IDs have that form; else all.
    fn asked(&self, node: &Node) -> Vec<usize> {
        let those = |is_asked: &dyn Fn(&OfCloud) -> bool| -> Vec<usize> {
            (0..self.0.len())
                .filter(|cloud| is_asked(&self.0[*cloud]))
                .collect()
        };
        match (node.platform(), &node.provider_id) {
            (Some(platform), _) => those(&|cloud| cloud.platforms.contains(&platform)),
            (None, Some(bare)) => match those(&|cloud| cloud.provider.has_bare_id(bare)) {
                nobody if nobody.is_empty() => those(&|_| true),
                those => those,
            },
            (None, None) => those(&|_| true),
        }
    }

    /// One answer from those of all that were asked. A name is weak, so a cloud that does not answer may have the instance, too.
    fn one_of(&self, node: &Node, answers: Vec<(usize, InstanceResult)>) -> InstanceResult {
        let name = |cloud: usize| self.0[cloud].name;
        let (mut present, mut failed, mut asked) = (Vec::new(), None, Vec::new());
        for (cloud, answer) in answers {
            match answer {
                Ok(InstanceAnswer::Present(instance)) => present.push((cloud, instance)),
                Ok(InstanceAnswer::Absent(_)) => asked.push(name(cloud)),
                Ok(InstanceAnswer::Foreign) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => asked.push(name(cloud)),
                Err(error) => failed = Some(error.context(name(cloud))),
            }
        }
        match (present.len(), failed) {
            (0 | 1, Some(error)) => Err(error),
            (0, None) if asked.is_empty() => Ok(InstanceAnswer::Foreign),
            (0, None) => Err(CloudError::not_found(format!(
                "none of the clouds {} has an instance of the Node {}",
                asked.join(", "),
                node.name
            ))),
            (1, None) => Ok(InstanceAnswer::Present(present.remove(0).1)),
            _ => {
                let clouds: Vec<&str> = present.iter().map(|(cloud, _)| name(*cloud)).collect();
                Err(CloudError::invalid(format!(
                    "the clouds {} each have an instance of the Node {}: rename one of them, or have the kubelet started with --provider-id",
                    clouds.join(" and "),
                    node.name
                )))
            }
        }
    }

    async fn ask(&self, queries: &[InstanceQuery]) -> Vec<InstanceResult> {
        let asked: Vec<Vec<usize>> = queries.iter().map(|query| self.asked(&query.node)).collect();
        let questions = self.0.iter().enumerate().map(|(cloud, of)| {
            let of_cloud = queries
                .iter()
                .zip(&asked)
                .filter(|(_, asked)| asked.contains(&cloud));
            let of_cloud: Vec<InstanceQuery> = of_cloud.map(|(query, _)| query.clone()).collect();
            async move {
                match of_cloud.is_empty() {
                    true => Vec::new(),
                    false => of.instances.instances(&of_cloud).await,
                }
            }
        });
        let mut answers: Vec<_> = future::join_all(questions)
            .await
            .into_iter()
            .map(Vec::into_iter)
            .collect();
        let unanswered = || Err(CloudError::other("the cloud did not answer"));
        queries
            .iter()
            .zip(asked)
            .map(|(query, asked)| {
                let of_query = asked
                    .into_iter()
                    .map(|cloud| (cloud, answers[cloud].next().unwrap_or_else(unanswered)));
                let mut of_query: Vec<_> = of_query.collect();
                match (query.node.provider_id.is_some(), of_query.len()) {
                    (true, 0) => Ok(InstanceAnswer::Foreign),
                    (true, 1) => {
                        let (cloud, answer) = of_query.remove(0);
                        answer.map_err(|error| error.context(self.0[cloud].name))
                    }
                    _ => self.one_of(&query.node, of_query),
                }
            })
            .collect()
    }
}

impl InstancesV2 for Instances {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        self.ask(queries).boxed()
    }

    fn cloud_of(&self, node: &Node) -> Option<usize> {
        match self.asked(node)[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    fn names(&self) -> Vec<Question<'_, String>> {
        let all = self.0.iter().flat_map(|cloud| {
            let names = cloud.instances.names().into_iter();
            names.map(|names| names.to(Some(cloud.name)))
        });
        all.collect()
    }
}
