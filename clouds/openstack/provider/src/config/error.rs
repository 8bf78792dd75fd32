//! Why the configuration cannot be used. No text holds a secret.

use bowline_cloud_http::{BaseUrlError, Malformed};
use bowline_openstack_client::LoginError;

use super::file::FileError;

/// The configuration cannot be used, or something is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// There is no file.
    #[error("no OpenStack cloud provider config file given: --cloud-config names none")]
    NoFile,
    /// The file cannot be understood.
    #[error("cannot read cloud config {path}: {reason}")]
    File {
        /// The path.
        path: String,
        /// What is wrong, and where.
        reason: FileError,
    },
    /// An option is missing, or cannot be used.
    #[error(
        "{reason} (section {:?} of {place}){}",
        reason.section(),
        unknown.iter().map(|unknown| format!("; {unknown}")).collect::<String>()
    )]
    Option {
        /// What is wrong.
        reason: Box<OptionError>,
        /// The file, and the entry of `clouds.yaml` where one was read.
        place: String,
        /// What the file has that is not known: it may be the option that is missing, misspelt.
        unknown: Vec<String>,
    },
}

/// An option is missing, or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// There is no `clouds.yaml`, or no `clouds-public.yaml` where an entry names one of its own.
    #[error("use-clouds is on, and no {name} was found: looked for {looked_for}")]
    NoCloudsFile {
        /// Its name.
        name: String,
        /// Each place, and why the file there could not be read, if there is one.
        looked_for: String,
    },
    /// The named file of clouds is there and cannot be read.
    #[error("cannot read {path}, which `clouds-file` or the variable OS_CLIENT_CONFIG_FILE names: {reason}")]
    Unreadable {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
    /// A file of clouds cannot be understood.
    #[error("cannot read {path}: {reason}")]
    Yaml {
        /// The path.
        path: String,
        /// What is wrong, and where.
        reason: Malformed,
    },
    /// A file of clouds has several entries, or none.
    #[error(
        "{path} does not have exactly one entry: name one by the option `cloud` or the variable OS_CLOUD"
    )]
    NoCloudChosen {
        /// The file.
        path: String,
    },
    /// A file of clouds has no such entry.
    #[error("{path} has no entry {name:?}{}", meant(near.as_deref()))]
    NoSuchCloud {
        /// The entry.
        name: String,
        /// The file.
        path: String,
        /// The entry whose name is nearly this one.
        near: Option<String>,
    },
    /// Nobody says where Keystone is.
    #[error("`auth-url` is missing or empty")]
    NoAuthUrl,
    /// Keystone's URL cannot be used. It is not repeated: it may hold a password.
    #[error("`auth-url` is {0}")]
    AuthUrl(BaseUrlError),
    /// The credentials make no login.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// There is no such kind of endpoint.
    #[error("`os-endpoint-type` is {0:?}: it is one of public, internal, admin")]
    EndpointType(String),
    /// A certificate or key cannot be used.
    #[error("cannot use `{option}`, file {path}: {reason}")]
    Certificate {
        /// The option.
        option: &'static str,
        /// The path.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The order is none.
    #[error(transparent)]
    SearchOrder(#[from] SearchOrderError),
    /// There is no such version of load balancing.
    #[error("currently only support LBaaS v2, unrecognised lb-version {0:?}")]
    LbVersion(String),
}

impl OptionError {
    /// The section of the option.
    fn section(&self) -> &'static str {
        match self {
            Self::SearchOrder(_) => "Metadata",
            Self::LbVersion(_) => "LoadBalancer",
            _ => "Global",
        }
    }
}

/// The option `search-order` is wrong. The texts are the Go manager's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchOrderError {
    /// It is empty.
    #[error("invalid value in section [Metadata] with key `search-order`. Value cannot be empty")]
    Empty,
    /// It has more words than there are.
    #[error(
        "invalid value in section [Metadata] with key `search-order`. Value cannot contain more than 2 elements"
    )]
    TooMany,
    /// It has a word that means nothing.
    #[error(
        "invalid element {0:?} found in section [Metadata] with key `search-order`.Supported elements include \
         \"configDrive\" and \"metadataService\""
    )]
    Unknown(String),
}

/// The question that follows a name that is not known.
pub(super) fn meant(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!(": did you mean {name:?}?"))
}
