//! The rules themselves.
//!
//! Crates are named by their folder. In a pattern `*` stands for one folder name; where the row's own folder has a
//! `*`, the same `*` on its right is that same cloud ("its client"), else it is any.

/// One row: the crates of this folder may depend on the crates of those folders, and on no other of ours.
pub(super) type Row = (&'static str, &'static [&'static str]);

/// Stands in a row for every crate of ours.
pub(super) const ANYTHING: &str = "**";

/// Arrows between our own crates. A crate without a row is a fault.
pub(super) const ARROWS: &[Row] = &[
    // Plans as data, and what to do next about a failed call: clients say it, the contract understands it, and neither knows the
    // other.
    ("crates/plan", &[]),
    // The base of outgoing calls, for both stacks.
    ("crates/transport", &[]),
    // What the Go managers' configuration files are written in.
    ("crates/gcfg", &[]),
    ("crates/cloud-http", &["crates/transport", "crates/plan"]),
    ("crates/cloud-provider", &["crates/plan"]),
    // The drive of a plan; what is written to Kubernetes is handed to its caller. It says when the calls of a step that hang are given up.
    (
        "crates/drive",
        &["crates/cloud-provider", "crates/plan", "crates/transport"],
    ),
    // It turns objects into the contract's nodes and services, and runs the plan's steps that write to Kubernetes.
    (
        "crates/kube-io",
        &["crates/cloud-provider", "crates/plan", "crates/transport"],
    ),
    (
        "crates/controllers",
        &[
            "crates/cloud-provider",
            "crates/plan",
            "crates/drive",
            "crates/kube-io",
            "crates/transport",
        ],
    ),
    (
        "crates/manager",
        &[
            "crates/controllers",
            "crates/drive",
            "crates/kube-io",
            "crates/cloud-provider",
            "crates/plan",
            "crates/transport",
        ],
    ),
    ("clouds/*/client", &["crates/cloud-http"]),
    // The HTTP stack too: one listing is shared by all who ask, and the settings of the stack are a cloud's own.
    (
        "clouds/*/provider",
        &[
            "clouds/*/client",
            "crates/cloud-http",
            "crates/cloud-provider",
            "crates/gcfg",
            "crates/plan",
        ],
    ),
    // Never its client: one mistake in shared wire types would be made twice and cancel out.
    ("clouds/*/sim", &["sim/cloud-kit"]),
    ("sim/cloud-kit", &[]),
    ("sim/kube-api", &["sim/cloud-kit"]),
    // The binary puts the parts together: transport and gate for the cloud, client and gate for the API server.
    (
        "crates/bowline",
        &[
            "crates/manager",
            "crates/cloud-http",
            "crates/cloud-provider",
            "crates/gcfg",
            "crates/kube-io",
            "crates/plan",
            "clouds/*/provider",
        ],
    ),
    // The demo runs the manager as the binary does, beside the simulators.
    (
        "crates/bowline-demo",
        &[
            "crates/bowline",
            "crates/cloud-provider",
            "crates/kube-io",
            "crates/manager",
            "crates/plan",
            "clouds/*/provider",
            "clouds/*/sim",
            "sim/*",
        ],
    ),
    ("testing/*", &[ANYTHING]),
    ("xtask", &[ANYTHING]),
];

/// An outside crate that only some of ours may name in their manifest.
pub(super) struct Wrapped {
    pub(super) names: &'static [&'static str],
    pub(super) only: &'static [&'static str],
    pub(super) because: &'static str,
}

/// Where test code and tools live: they may name any outside crate.
pub(super) const FREE: &[&str] = &["testing/*", "xtask"];

/// Outside crates with a keeper. An empty list: nobody.
pub(super) const WRAPPED: &[Wrapped] = &[
    Wrapped {
        names: &["kube", "kube-client", "kube-core", "kube-runtime"],
        only: &[],
        because: "the API server is called through kube-io; only tests use other clients",
    },
    Wrapped {
        names: &["hyper-rustls"],
        only: &["crates/transport"],
        because: "connections to clouds and to the API server are made in one way, with the same proxies and trust",
    },
    Wrapped {
        names: &["serde-saphyr"],
        only: &["crates/transport", "crates/bowline-demo"],
        because: "its errors show the lines of a file, and those of credentials hold secrets",
    },
    Wrapped {
        names: &["reqwest", "ureq", "isahc", "curl", "attohttpc"],
        only: &[],
        because: "clouds are called through cloud-http",
    },
    Wrapped {
        names: &["k8s-openapi"],
        only: &[],
        because: "what is read of Kubernetes has narrow types, in cloud-provider and kube-io; only tests use all of it",
    },
    Wrapped {
        names: &["anyhow", "clap"],
        only: &["crates/bowline", "crates/bowline-demo", "clouds/*/sim", "sim/*"],
        because: "libraries have typed errors and leave arguments to programs",
    },
];

/// Crates that read no clock, make no call and draw no number.
pub(super) const PURE: &[&str] = &["crates/plan", "crates/gcfg", "crates/cloud-provider"];

/// What a pure crate may not link, not even through another crate.
pub(super) const IMPURE: &[&str] = &[
    "async-std",
    "axum",
    "getrandom",
    "http",
    "hyper",
    "hyper-util",
    "kube",
    "rand",
    "reqwest",
    "rustls",
    "socket2",
    "tokio",
    "tower",
    "tracing-subscriber",
];

/// What no program of ours may link, through whomever: one TLS stack, no C library to patch.
pub(super) const NOWHERE: &[&str] = &["native-tls", "openssl", "openssl-sys", "aws-lc-rs", "aws-lc-sys"];

/// The providers that have the same rooms as each other.
pub(super) const PROVIDERS: &[&str] = &[
    "clouds/cloudscale/provider",
    "clouds/cloudstack/provider",
    "clouds/openstack/provider",
    "clouds/phoenixnap/provider",
];
