//! Every option, one entry each.

/// What was given on the command line.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// `--base-url`.
    pub base_url: Option<String>,
}

/// What a value of the file has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A text.
    Text,
    /// `true` or `false`, also as a text: values of charts often are.
    Switch,
    /// A number of 32 bits.
    Port,
}

/// `name = key in the file, environment variable (empty if there is none), kind, meaning`.
macro_rules! settings {
    ($($name:ident = $key:literal, $variable:literal, $kind:ident, $meaning:literal;)*) => {
        /// The options by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Setting { $(#[doc = $meaning] $name,)* }

        impl Setting {
            /// All of them.
            pub const ALL: [Self; [$($key),*].len()] = [$(Self::$name),*];

            /// The environment variable; empty if there is none.
            #[must_use]
            pub fn variable(self) -> &'static str {
                match self { $(Self::$name => $variable,)* }
            }

            /// The key in the file, which is read in any letter case.
            #[must_use]
            pub fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)* }
            }

            pub(super) fn kind(self) -> Kind {
                match self { $(Self::$name => Kind::$kind,)* }
            }
        }
    };
}

settings! {
    ClientId = "clientID", "PNAP_CLIENT_ID", Text, "Who asks for tokens.";
    ClientSecret = "clientSecret", "PNAP_CLIENT_SECRET", Text, "The proof of it.";
    Location = "location", "PNAP_LOCATION", Text, "Where blocks are bought.";
    LoadBalancer = "loadbalancer", "PNAP_LOAD_BALANCER", Text, "Whether Services get blocks.";
    LocationAnnotation = "annotationIPLocation", "PNAP_ANNOTATION_IP_LOCATION", Text,
        "The annotation by which a Service says where.";
    ApiServerPort = "apiServerPort", "PNAP_API_SERVER_PORT", Port, "Accepted and without effect, as upstream.";
    BaseUrl = "base-url", "PNAP_BASE_URL", Text, "Where the APIs are.";
    TokenUrl = "token-url", "PNAP_TOKEN_URL", Text, "Where tokens come from.";
    ServiceNodeSelector = "serviceNodeSelector", "", Text, "Which Nodes take traffic.";
    BlockDescription = "blockDescription", "PNAP_BLOCK_DESCRIPTION", Text, "What bought blocks are described with.";
    KubeVipAnnotation = "kubeVipAnnotation", "PNAP_KUBE_VIP_ANNOTATION", Switch,
        "Whether kube-vip's own annotation is kept.";
    ReservedIsShutDown = "reservedIsShutDown", "PNAP_RESERVED_IS_SHUT_DOWN", Switch,
        "Whether reserved servers count as shut down.";
}
