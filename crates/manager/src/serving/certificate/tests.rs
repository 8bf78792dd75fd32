use std::time::Duration;

use bowline_kube_io::TokioClock;
use rcgen::{CertificateParams, DnType, KeyPair};

use super::*;
use crate::config::NamedCertificate;

fn start() -> Timestamp {
    Timestamp::from_second(1_780_000_000).unwrap()
}

fn certificates(config: &ServingConfig) -> Result<Certificates, CertificateError> {
    Certificates::obtain(config, Arc::new(TokioClock::starting_at(start())))
}

fn of(certificate: CertificateSource) -> ServingConfig {
    ServingConfig {
        certificate,
        ..ServingConfig::default()
    }
}

fn main_of(certificates: &Certificates) -> Vec<CertificateDer<'static>> {
    certificates.choose(None).cert.clone()
}

/// Writes a pair with these names, the first one as common name, into the directory.
fn pair(directory: &Path, stem: &str, common: &str, names: &[&str]) -> (PathBuf, PathBuf) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let paths = (
        directory.join(format!("{stem}.crt")),
        directory.join(format!("{stem}.key")),
    );
    std::fs::write(&paths.0, certificate.pem()).unwrap();
    std::fs::write(&paths.1, key.serialize_pem()).unwrap();
    paths
}

#[tokio::test(start_paused = true)]
async fn a_directory_keeps_what_was_made() {
    let directory = tempfile::tempdir().unwrap();
    let config = of(CertificateSource::Directory(directory.path().join("certs")));
    let first = certificates(&config).unwrap();
    let second = certificates(&config).unwrap();
    assert_eq!(main_of(&first), main_of(&second));
    assert_eq!(main_of(&first).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_missing_file_is_named() {
    let source = CertificateSource::Files {
        certificate: "/nonexistent/tls.crt".into(),
        key: "/nonexistent/tls.key".into(),
    };
    let error = certificates(&of(source)).unwrap_err();
    assert!(error.to_string().starts_with("/nonexistent/tls.crt: "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn new_files_are_served_and_bad_ones_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = pair(directory.path(), "tls", "one", &[]);
    let source = CertificateSource::Files {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    let served = certificates(&of(source)).unwrap();
    let first = main_of(&served);
    served.refresh().await;
    assert_eq!(main_of(&served), first);

    // A new certificate whose key has not come yet, then nonsense, then nothing at all.
    let old_key = std::fs::read(&key).unwrap();
    pair(directory.path(), "tls", "two", &[]);
    let new_key = std::fs::read(&key).unwrap();
    std::fs::write(&key, old_key).unwrap();
    served.refresh().await;
    assert_eq!(main_of(&served), first);
    std::fs::write(&key, "-----BEGIN NONSENSE-----").unwrap();
    served.refresh().await;
    assert_eq!(main_of(&served), first);
    std::fs::remove_file(&key).unwrap();
    served.refresh().await;
    assert_eq!(main_of(&served), first);

    std::fs::write(&key, new_key).unwrap();
    served.refresh().await;
    assert_ne!(main_of(&served), first);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_in_memory_is_made_anew_after_four_fifths_of_its_life() {
    let served = certificates(&of(CertificateSource::Memory)).unwrap();
    let first = main_of(&served);
    tokio::time::advance(Duration::from_secs(290 * 24 * 3600)).await;
    served.refresh().await;
    assert_eq!(main_of(&served), first);
    tokio::time::advance(Duration::from_secs(2 * 24 * 3600)).await;
    served.refresh().await;
    let second = main_of(&served);
    assert_ne!(second, first);
    served.refresh().await;
    assert_eq!(main_of(&served), second);
}

#[tokio::test(start_paused = true)]
async fn the_name_that_a_client_asks_for_chooses_the_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = pair(directory.path(), "explicit", "explicit", &["unused.example"]);
    let (certificate2, key2) = pair(
        directory.path(),
        "own",
        "own.example",
        &["san.example", "*.wild.example", "metrics.example"],
    );
    let named = |certificate: &Path, key: &Path, names: &[&str]| NamedCertificate {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let served = certificates(&ServingConfig {
        named_certificates: vec![
            named(&certificate, &key, &["Metrics.example", "*.any.example"]),
            named(&certificate2, &key2, &[]),
        ],
        ..ServingConfig::default()
    })
    .unwrap();
    let (explicit, own, main) = {
        let current = served.served();
        let key = |index: usize| current.named[index].1.cert.clone();
        (key(0), key(1), current.main.cert.clone())
    };
    for (name, expected) in [
        (Some("metrics.example"), &explicit),
        (Some("METRICS.example."), &explicit),
        (Some("a.any.example"), &explicit),
        (Some("b.a.any.example"), &main),
        (Some("unused.example"), &main),
        (Some("own.example"), &own),
        (Some("san.example"), &own),
        (Some("x.wild.example"), &own),
        (Some("other"), &main),
        (None, &main),
    ] {
        assert_eq!(&served.choose(name).cert, expected, "{name:?}");
    }

    pair(directory.path(), "own", "moved.example", &[]);
    served.refresh().await;
    assert_eq!(served.choose(Some("own.example")).cert, main);
    assert_ne!(served.choose(Some("moved.example")).cert, main);
}
