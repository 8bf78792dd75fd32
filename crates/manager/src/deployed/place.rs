//! Where in the cluster a manager reads what it is told.

use bowline_kube_io::workloads::{KeyPath, Volume};

/// Where something is that a manager reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A key of a Secret of its namespace.
    Secret {
        /// The Secret's name.
        name: String,
        /// The key; empty: all of them.
        key: String,
    },
    /// A key of a ConfigMap of its namespace.
    ConfigMap {
        /// The ConfigMap's name.
        name: String,
        /// The key; empty: all of them.
        key: String,
    },
}

impl Place {
    pub(super) fn secret(name: &str, key: &str) -> Self {
        let (name, key) = (name.to_owned(), key.to_owned());
        Self::Secret { name, key }
    }

    pub(super) fn config_map(name: &str, key: &str) -> Self {
        let (name, key) = (name.to_owned(), key.to_owned());
        Self::ConfigMap { name, key }
    }

    /// The resource and the name of the object.
    pub fn resource(&self) -> (&'static str, &str) {
        match self {
            Self::Secret { name, .. } => ("secrets", name),
            Self::ConfigMap { name, .. } => ("configmaps", name),
        }
    }

    /// The object, as people write it.
    pub fn object(&self) -> String {
        match self {
            Self::Secret { name, .. } => format!("Secret {name}"),
            Self::ConfigMap { name, .. } => format!("ConfigMap {name}"),
        }
    }
}

/// The key of the object that a volume shows under a path; `None` if its contents are not in the cluster.
pub(super) fn volume_key(volume: &Volume, path: &str) -> Option<Place> {
    let key_of = |items: &[KeyPath]| {
        let item = items.iter().find(|item| item.path == path);
        item.map_or_else(|| path.to_owned(), |item| item.key.clone())
    };
    let secret = volume.secret.as_ref();
    let secret = secret.map(|it| Place::secret(&it.secret_name, &key_of(&it.items)));
    secret.or_else(|| {
        let map = volume.config_map.as_ref()?;
        Some(Place::config_map(&map.name, &key_of(&map.items)))
    })
}
