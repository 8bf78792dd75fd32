//! Who asks the API server for what: one name per part of the program, and with `--use-service-account-credentials` a
//! ServiceAccount for each controller.

use bowline_kube_io::rbac::{Account, NAMESPACE};
use bowline_kube_io::{EventSink, Kube, Recorder};

/// The clients of the parts. They share connections and the bound on requests in flight.
pub(crate) struct Identities {
    kube: Kube,
    has_accounts: bool,
    /// The ServiceAccount of the provider's own writes.
    provider: Option<&'static str>,
}

impl Identities {
    /// The names at the end of the `User-Agent` are those of Kubernetes' cloud-provider library.
    pub(crate) fn new(kube: &Kube, has_accounts: bool, provider: Option<&'static str>) -> Self {
        Self {
            kube: kube.clone(),
            has_accounts,
            provider,
        }
    }

    /// For the caches. Always the process itself.
    pub(crate) fn informers(&self) -> Kube {
        self.kube.identified("shared-informers")
    }

    /// For the lease. Always the process itself.
    pub(crate) fn election(&self) -> Kube {
        self.kube.identified("leader-election")
    }

    /// For what belongs to no controller, such as events about the lease. Always the process itself.
    pub(crate) fn process(&self) -> Kube {
        self.kube.identified("cloud-controller-manager")
    }

    /// For a controller, or for what the provider's plans write.
    pub(crate) fn of(&self, account: Account) -> Kube {
        match account {
            Account::Process => self.process(),
            Account::Provider => match self.provider {
                Some(name) => self.named(name),
                None => self.of(Account::Service),
            },
            // These have a name; without one it would be the process.
            Account::Node | Account::Service | Account::Route => account
                .name()
                .map_or_else(|| self.process(), |name| self.named(name)),
        }
    }

    /// The events of a controller, written by whom it writes as.
    pub(crate) fn recorder(&self, events: &EventSink, component: &'static str, kube: &Kube) -> Recorder {
        let recorder = events.recorder(component);
        if self.has_accounts {
            recorder.written_by(kube.clone())
        } else {
            recorder
        }
    }

    fn named(&self, name: &str) -> Kube {
        let kube = self.kube.identified(name);
        if self.has_accounts {
            kube.as_service_account(NAMESPACE, name)
        } else {
            kube
        }
    }
}
