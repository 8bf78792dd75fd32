use std::fs;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};

use super::*;
use crate::clock::SystemClock;

/// A certificate and its key in PEM.
fn pair(name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// As `openssl x509 -req` makes them without a file of extensions.
const OF_VERSION_1: &str = "\
-----BEGIN CERTIFICATE-----
MIIBIDCBxwIUML6aYfdJsAMhjL9/t+ZVb5HkQSUwCgYIKoZIzj0EAwIwEjEQMA4G
A1UEAwwHYm93bGluZTAgFw0yNjExMjcwODAzNDRaGA8yMTI2MTEwMzA4MDM0NFow
EjEQMA4GA1UEAwwHYm93bGluZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABEik
Ehv4Xyj87LJeyeRPsBvk7IS2/IayBFsKIvNEp2WbQvWJxWPBHPNBu5M3eKMIoQ7g
hq6oA4S1Wcw7VHeNJ1EwCgYIKoZIzj0EAwIDSAAwRQIhAIvasbt8JKl+XBa9tkW6
BmKRuIK5Xt54BAlEUtoX6v1eAiB4bKZz39Tykbm1bMUB471XOZz7jvjJgOjLqInf
UvxH0g==
-----END CERTIFICATE-----
";

#[test]
fn a_certificate_of_version_1_is_shown_to_the_api_server() {
    let key = KeyPair::generate().unwrap().serialize_pem();
    assert!(super::pair(OF_VERSION_1.as_bytes(), key.as_bytes()).is_ok());
}

struct Files {
    folder: tempfile::TempDir,
    credentials: Credentials,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (certificate, key) = pair("first");
        fs::write(at("ca.crt"), &certificate).unwrap();
        fs::write(at("tls.crt"), &certificate).unwrap();
        fs::write(at("tls.key"), key).unwrap();
        fs::write(at("token"), " first\n").unwrap();
        let credentials = Credentials {
            token: Some(token_file(&at("token")).unwrap()),
            identity: Some(identity(Place::File(at("tls.crt")), Place::File(at("tls.key"))).unwrap()),
            plugin: None,
            authorities: Some(authorities(Place::File(at("ca.crt"))).unwrap()),
        };
        Self { folder, credentials }
    }

    fn write(&self, name: &str, contents: &str) {
        fs::write(self.folder.path().join(name), contents).unwrap();
    }

    /// Which of the certificates there are has been taken, as far as the first bytes of the key tell.
    fn certificate(&self) -> Vec<u8> {
        let keys = self.credentials.keys();
        keys.identity.unwrap().cert[0].to_vec()
    }
}

async fn later() {
    tokio::time::advance(Duration::from_secs(10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_token_is_read_again_within_ten_seconds_and_the_last_good_one_stays() {
    let files = Files::new();
    let shown = || files.credentials.authorization().unwrap();
    assert_eq!(shown(), "Bearer first");
    assert!(!format!("{:?}", shown()).contains("first"));
    files.write("token", "second\n");
    assert_eq!(shown(), "Bearer first");
    later().await;
    assert_eq!(shown(), "Bearer second");
    for unusable in ["\n", "a\nb", ""] {
        files.write("token", unusable);
        later().await;
        assert_eq!(shown(), "Bearer second", "{unusable:?}");
    }
    // Some programs remove it to limit who sees it.
    fs::remove_file(files.folder.path().join("token")).unwrap();
    later().await;
    assert_eq!(shown(), "Bearer second");
}

#[tokio::test(start_paused = true)]
async fn a_pair_is_taken_when_both_halves_are_there() {
    let files = Files::new();
    let first = files.certificate();
    let (certificate, key) = pair("second");
    files.write("tls.crt", &certificate[..certificate.len() / 2]);
    later().await;
    assert_eq!(files.certificate(), first, "half of the file");
    files.write("tls.crt", &certificate);
    later().await;
    assert_eq!(files.certificate(), first, "half of the pair");
    files.write("tls.key", &key);
    later().await;
    assert_ne!(files.certificate(), first);
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_looked_at_at_once_and_only_a_change_is_news() {
    let files = Files::new();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let are_renewed = async |refused: &Presented| files.credentials.are_renewed(refused, &clock).await;
    let refused = files.credentials.presented();
    assert!(!are_renewed(&refused).await);
    tokio::time::advance(Duration::from_secs(1)).await;
    files.write("token", "second");
    assert!(are_renewed(&refused).await);
    assert_eq!(files.credentials.authorization().unwrap(), "Bearer second");
    // Whoever was refused at the same time learns it without another look.
    assert!(are_renewed(&refused).await);
    assert!(!are_renewed(&files.credentials.presented()).await);
    later().await;
    let before = files.credentials.presented();
    let (certificate, key) = pair("second");
    files.write("tls.crt", &certificate);
    files.write("tls.key", &key);
    assert!(are_renewed(&before).await);
    later().await;
    let before = files.credentials.presented();
    files.write("ca.crt", &certificate);
    assert!(are_renewed(&before).await);
}

#[tokio::test(start_paused = true)]
async fn a_half_may_stand_in_the_kubeconfig_and_the_other_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = pair("a");
    let path = folder.path().join("tls.key");
    fs::write(&path, &key).unwrap();
    let contents = || Place::Contents(certificate.clone().into_bytes());
    identity(contents(), Place::File(path.clone())).unwrap();
    identity(contents(), Place::Contents(key.into_bytes())).unwrap();
    fs::write(&path, pair("b").1).unwrap();
    let error = identity(contents(), Place::File(path)).err().unwrap();
    assert!(
        error.contains("tls.key: the key is not that of the certificate"),
        "{error}"
    );
    let error = identity(contents(), Place::Contents(pair("b").1.into_bytes()))
        .err()
        .unwrap();
    assert!(
        error.starts_with("`client-key-data`: the key is not that of the certificate"),
        "{error}"
    );
    let error = identity(Place::Contents(b"hunter2".to_vec()), contents())
        .err()
        .unwrap();
    assert_eq!(
        error,
        "`client-certificate-data`: there is no certificate in PEM in it"
    );
}
