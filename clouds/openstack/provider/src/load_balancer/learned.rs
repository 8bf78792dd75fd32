//! What the answer to a write told.

use bowline_cloud_provider::{Told, WriteOutcome};
use bowline_openstack_client::{
    FloatingIp, Listener, LoadBalancer, LoadBalancerId, Member, Monitor, Pool, Port, SecurityGroup,
    SecurityGroupRule,
};
use bowline_plan::Refusal;

/// What the answer to a write told.
#[derive(Debug)]
pub(crate) enum Learned {
    /// It was made; what the object is like now, where the answer shows it.
    Done(Option<Box<Shown>>),
    /// Octavia was not asked: a change that another Service made of the load balancer is under way.
    Busy,
    /// Nothing happened: Octavia says that another change is under way.
    Conflict {
        /// What is told if that is a refusal.
        why: Refusal,
        /// Whether it says so of a pool. That may have failed, and takes neither members nor a monitor then.
        is_of_pool: bool,
        /// Whether it is a refusal; see [`AtRest`](bowline_plan::AtRest).
        is_refusal: bool,
    },
    /// The cloud refused it: the same would be refused again.
    Refused(Refusal),
    /// It failed otherwise, and holds up nothing else in this reconcile.
    Failed(Refusal),
    /// The same if it was sent, and nobody knows what came of it.
    Unheard(Refusal),
}

impl Told for Learned {
    fn refused(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Octavia may take a write, and not do it; the book forgets when all is done.
    fn ends_refusal(&self) -> bool {
        false
    }

    fn made(&self) -> Option<u128> {
        match self {
            Self::Done(Some(shown)) => match &**shown {
                Shown::Balancer(made) => number(&made.id),
                _ => None,
            },
            _ => None,
        }
    }

    fn outcome(&self) -> WriteOutcome {
        match self {
            Self::Done(_) => WriteOutcome::Taken,
            Self::Busy
            | Self::Conflict {
                is_refusal: false, ..
            } => WriteOutcome::PutOff,
            Self::Conflict { .. } | Self::Refused(_) | Self::Failed(_) => WriteOutcome::NotTaken,
            Self::Unheard(_) => WriteOutcome::Unknown,
        }
    }
}

/// The ID of a load balancer as a number; Octavia's are UUIDs.
pub(crate) fn number(id: &LoadBalancerId) -> Option<u128> {
    u128::from_str_radix(&id.as_str().replace('-', ""), 16).ok()
}

/// Defines what an answer shows.
macro_rules! shown {
    ($($kind:ident: $object:ty,)*) => {
        /// An object as an answer shows it.
        #[derive(Debug)]
        pub(crate) enum Shown {
            $($kind($object),)*
        }

        $(impl From<$object> for Shown {
            fn from(shown: $object) -> Self {
                Self::$kind(shown)
            }
        })*
    };
}

shown! {
    Balancer: LoadBalancer,
    Listener: Listener,
    Pool: Pool,
    Member: Member,
    Monitor: Monitor,
    FloatingIp: FloatingIp,
    Group: SecurityGroup,
    Rule: SecurityGroupRule,
    Port: Port,
}

/// It was made, and this is what came of it.
pub(crate) fn shown(shown: impl Into<Shown>) -> Learned {
    Learned::Done(Some(Box::new(shown.into())))
}

/// It was made, and the answer shows nothing.
pub(crate) fn done<T>(_: T) -> Learned {
    Learned::Done(None)
}
