//! The series of the secure port: who asked, how that was decided, and what the API server said about it.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::{Duration, Instant};

type Labels = [(&'static str, String); 1];
type Totals = Family<Labels, Counter>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// Time until a request was decided about: 1 ms, doubled 14 times.
fn decision_seconds() -> Histogram {
    Histogram::new(prometheus_client::metrics::histogram::exponential_buckets(
        0.001, 2.0, 15,
    ))
}

fn review_seconds() -> Histogram {
    Histogram::new([0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0])
}

/// Time that client certificates are still valid: from half an hour to a year, as in Kubernetes' server library.
const EXPIRATION: [f64; 14] = [
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];

bowline_cloud_provider::plan::series! {
    /// The series of the secure port. Clones share them.
    pub struct ServingMetrics {
        users: Totals = Family::default(),
            "authenticated_user_requests", "[ALPHA] Requests to the secure port by user, the less usual ones as other";
        authentications: Totals = Family::default(),
            "authentication_attempts", "[ALPHA] Requests to the secure port by whether it could be told who asks";
        authentication_seconds: Histograms = Family::new_with_constructor(decision_seconds),
            "authentication_duration_seconds", "[ALPHA] Time of telling who asks, by result";
        authorizations: Totals = Family::default(),
            "authorization_attempts", "[ALPHA] Requests to the secure port by whether they were allowed";
        authorization_seconds: Histograms = Family::new_with_constructor(decision_seconds),
            "authorization_duration_seconds", "[ALPHA] Time of telling whether a request is allowed, by result";
        token_reviews: Totals = Family::default(),
            "apiserver_delegated_authn_request", "[ALPHA] Token reviews asked of the API server, by status code";
        token_review_seconds: Histograms = Family::new_with_constructor(review_seconds),
            "apiserver_delegated_authn_request_duration_seconds", "[ALPHA] Time of a token review, by status code";
        access_reviews: Totals = Family::default(),
            "apiserver_delegated_authz_request", "[ALPHA] Access reviews asked of the API server, by status code";
        access_review_seconds: Histograms = Family::new_with_constructor(review_seconds),
            "apiserver_delegated_authz_request_duration_seconds", "[ALPHA] Time of an access review, by status code";
        expiration: Histogram = Histogram::new(EXPIRATION),
            "apiserver_client_certificate_expiration_seconds", "[ALPHA] Time that the client certificates of requests are still valid";
    }
}

/// What the API server is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Review {
    /// Whose token it is.
    Token,
    /// Whether something is allowed.
    Access,
}

impl ServingMetrics {
    /// Counts that it was told who asks.
    pub(crate) fn authenticated(&self, user: &str, begun: Instant) {
        self.users
            .get_or_create(&[("username", compressed(user).to_owned())])
            .inc();
        self.authentication("success", begun);
    }

    /// Counts that it could not be told who asks.
    pub(crate) fn not_authenticated(&self, begun: Instant) {
        self.authentication("error", begun);
    }

    fn authentication(&self, result: &str, begun: Instant) {
        let labels = [("result", result.to_owned())];
        count(
            &self.authentications,
            &self.authentication_seconds,
            &labels,
            begun.elapsed(),
        );
    }

    /// Counts whether a request was `allowed`, or `no-opinion`, or an `error`.
    pub(crate) fn authorized(&self, result: &str, begun: Instant) {
        let labels = [("result", result.to_owned())];
        count(
            &self.authorizations,
            &self.authorization_seconds,
            &labels,
            begun.elapsed(),
        );
    }

    /// Counts one request to the API server.
    pub(crate) fn reviewed(&self, review: Review, code: &str, took: Duration) {
        let (reviews, seconds) = match review {
            Review::Token => (&self.token_reviews, &self.token_review_seconds),
            Review::Access => (&self.access_reviews, &self.access_review_seconds),
        };
        count(reviews, seconds, &[("code", code.to_owned())], took);
    }

    /// Notes how long a client certificate is still valid.
    pub(crate) fn saw_certificate(&self, seconds_left: f64) {
        self.expiration.observe(seconds_left);
    }
}

fn count(total: &Totals, seconds: &Histograms, labels: &Labels, took: Duration) {
    total.get_or_create(labels).inc();
    seconds.get_or_create(labels).observe(took.as_secs_f64());
}

/// The users that are counted by name: a bound on the label, as in Kubernetes' server library.
fn compressed(user: &str) -> &str {
    match user {
        "admin" | "client" | "kube_proxy" | "kubelet" | "system:serviceaccount:kube-system:default" => user,
        _ if user.contains('@') => "email_id",
        _ => "other",
    }
}
