//! What to do about what a text says by itself.

use std::borrow::Cow;

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_controllers::advice;

/// How the API server says that etcd takes no more (etcd's `ErrNoSpace`).
pub(crate) const ETCD_FULL: &str = "mvcc: database space exceeded";

/// What to do about that. No pod can be deleted before.
pub(crate) const FULL: &str = "whoever runs the control plane compacts and defragments etcd, and then disarms its alarm: etcdctl alarm disarm";

/// What stands before the sentence of a provider that says which setting of its configuration has to be another one.
const SETTINGS: [&str; 2] = [": set `", "; set `"];

/// What to do where a text names a setting: the sentence about it, and whose it is.
pub(super) fn of_setting(text: &str) -> Option<String> {
    let at = SETTINGS.iter().find_map(|start| text.find(start))? + 2;
    // A file's name has a dot as well.
    let ends = [". ", ";"].into_iter().filter_map(|end| text[at..].find(end));
    let end = ends
        .min()
        .map_or(text.trim_end_matches('.').len(), |end| at + end);
    let sentence = &text[at..end];
    Some(format!(
        "whoever runs the manager does this in the file of --cloud-config: {sentence}"
    ))
}

/// What to do where a text tells it by itself, whatever it is about.
pub(super) fn of_text(text: &str) -> Option<Cow<'static, str>> {
    let setting = || of_setting(text).map(Cow::Owned);
    advice::of_the_way(text).map(Cow::Borrowed).or_else(setting)
}

/// What to do about an API server that is not reached, as the text tells why.
pub(crate) fn of_api_server(text: &str) -> &'static str {
    if text.contains("invalid peer certificate") {
        return match text.contains("xpired") {
            true => {
                "the certificate of the API server has expired: whoever runs the control plane renews it, as with `kubeadm certs renew apiserver`; if \
                 it has not, correct the clock here"
            }
            false => {
                "the certificate of the API server is not of the authority that the kubeconfig or the ServiceAccount names, or bears another name: \
                 correct certificate-authority-data, or the address"
            }
        };
    }
    if text.contains("proxy ") {
        return "the way to the API server goes through a proxy, by HTTPS_PROXY: have NO_PROXY name the address of the API server";
    }
    "look at the address, at the certificate authority of the kubeconfig, at the network and at the API server itself"
}

/// What to do about an answer of the cloud that is a failure.
pub(crate) fn remedy_of_error(error: &CloudError) -> Cow<'static, str> {
    let own = error.remedy().map(|it| Cow::Owned(it.to_owned()));
    let known = || advice::about(error.kind(), error.message()).map(Cow::Borrowed);
    let remedy = own.or_else(known).or_else(|| of_text(error.message()));
    remedy.unwrap_or(Cow::Borrowed(match error.kind() {
        ErrorKind::Throttled { .. } => {
            "the cloud asks to be left alone: look at its own status page, as for a maintenance, see who else calls it, and wait"
        }
        ErrorKind::Other => {
            "follow the text; where it names nothing, look at the address of the API and at what answers there"
        }
        ErrorKind::Transient => {
            "look at the address of the API and at what answers there: a proxy, a maintenance page; at the network; and at the cloud's own status \
             page"
        }
        _ => "follow the text",
    }))
}
