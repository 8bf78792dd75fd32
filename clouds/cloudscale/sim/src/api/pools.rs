//! `/v1/load-balancers/pools`

use super::{Answer, Call, found, path_id};
use crate::behaviour::PoolDelete;
use crate::error::ApiError;
use crate::fields::given;
use crate::model::Pool;
use crate::wire::Wire;

const ALGORITHMS: [&str; 3] = ["round_robin", "least_connections", "source_ip"];
const PROTOCOLS: [&str; 4] = ["tcp", "proxy", "proxyv2", "udp"];

impl Call<'_> {
    pub(super) fn pools(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => self.list(self.state.pools.values(), |it| &it.tags, Wire::pool),
            ("POST", []) => self.create_pool(),
            (_, []) => self.wrong_method(),
            (method, [id]) => {
                let uuid = path_id(id)?;
                let pool = found(&self.state.pools, &uuid)?;
                let balancer = pool.load_balancer;
                match method {
                    "GET" => return self.one(&self.wire().pool(pool)),
                    "PATCH" => {
                        let mut fields = self.patch(false)?;
                        fields.forbid(&["load_balancer", "algorithm", "protocol"]);
                        let (name, tags) = (fields.text("name"), fields.tags());
                        fields.check()?;
                        if let Some(pool) = self.state.pools.get_mut(&uuid) {
                            pool.name = name.unwrap_or_else(|| pool.name.clone());
                            pool.tags = tags.unwrap_or_else(|| pool.tags.clone());
                        }
                    }
                    "DELETE" => self.delete_pool(uuid)?,
                    _ => return self.wrong_method(),
                }
                self.state.touch(balancer);
                self.done()
            }
            _ => Err(ApiError::not_found()),
        }
    }

    fn create_pool(&mut self) -> Answer {
        let mut fields = self.new_fields(&["name", "load_balancer", "algorithm", "protocol"])?;
        let name = fields.text("name");
        let balancer = fields.known("load_balancer", "Load balancer", &self.state.load_balancers);
        let algorithm = fields.word("algorithm", &ALGORITHMS);
        let protocol = fields.word("protocol", &PROTOCOLS);
        let tags = fields.tags().unwrap_or_default();
        fields.check()?;
        let load_balancer = given(balancer, "load_balancer")?;
        let most = self.state.behaviour.quota.pools_per_load_balancer;
        ApiError::unless_full(most, self.state.pools_of(load_balancer).count(), "pools")?;
        let (uuid, created_at) = self.birth();
        let pool = Pool {
            uuid,
            name: given(name, "name")?,
            created_at,
            load_balancer,
            algorithm: given(algorithm, "algorithm")?,
            protocol: given(protocol, "protocol")?,
            tags,
        };
        self.state.pools.insert(uuid, pool.clone());
        self.state.touch(load_balancer);
        self.created(&self.wire().pool(&pool))
    }

    fn delete_pool(&mut self, uuid: uuid::Uuid) -> Result<(), ApiError> {
        match self.state.behaviour.pool_delete {
            PoolDelete::Cascade => self
                .state
                .listeners
                .retain(|_, listener| listener.pool != Some(uuid)),
            PoolDelete::DetachListeners => {
                let listeners = self.state.listeners.values_mut();
                let of_it = listeners.filter(|listener| listener.pool == Some(uuid));
                of_it.for_each(|listener| listener.pool = None);
            }
            PoolDelete::RefuseIfUsed => {
                let mut listeners = self.state.listeners.values();
                if self.state.members_of(uuid).next().is_some()
                    || self.state.monitor_of(uuid).is_some()
                    || listeners.any(|listener| listener.pool == Some(uuid))
                {
                    return Err(ApiError::detail("The pool is still in use."));
                }
            }
        }
        self.state.remove_pool(uuid);
        Ok(())
    }
}
