//! Whom to trust: the system's certificate authorities, found as Go's programs find them.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;

/// Where distributions keep all authorities in one file; the first that exists is used.
const FILES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Where distributions keep one file per authority.
const DIRS: [&str; 2] = ["/etc/ssl/certs", "/etc/pki/tls/certs"];

/// The authorities to trust.
///
/// `SSL_CERT_FILE` takes the place of the system's file and `SSL_CERT_DIR` (separated by colons) that of the system's
/// directories; each leaves the other one in force, as in Go. The directories are only searched where no file was
/// found or one was named, because they repeat it. Where nothing is found, as in an image from scratch, the authorities
/// that Mozilla trusts are built in.
pub(super) fn load(file: Option<&Path>, dirs: Option<&[PathBuf]>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    let system = file
        .is_none()
        .then(|| FILES.iter().map(Path::new).find(|path| path.exists()))
        .flatten();
    add(&mut store, file.or(system), None);
    match dirs {
        Some(dirs) => dirs.iter().for_each(|dir| add(&mut store, None, Some(dir))),
        None if system.is_none() || store.is_empty() => {
            DIRS.iter()
                .map(Path::new)
                .for_each(|dir| add(&mut store, None, Some(dir)));
        }
        None => {}
    }
    if store.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    store
}

fn add(store: &mut RootCertStore, file: Option<&Path>, dir: Option<&Path>) {
    if file.is_none() && dir.is_none() {
        return;
    }
    let found = rustls_native_certs::load_certs_from_paths(file, dir);
    for error in &found.errors {
        tracing::debug!(err = %error, "certificate authorities not read");
    }
    store.add_parsable_certificates(found.certs);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority() -> String {
        rcgen::generate_simple_self_signed(["ca.example".to_owned()])
            .unwrap()
            .cert
            .pem()
    }

    #[test]
    fn a_named_file_and_named_directories_take_the_place_of_the_systems() {
        let folder = tempfile::tempdir().unwrap();
        let (file, one, two) = (
            folder.path().join("ca.pem"),
            folder.path().join("one"),
            folder.path().join("two"),
        );
        std::fs::write(&file, authority() + &authority()).unwrap();
        for dir in [&one, &two] {
            std::fs::create_dir(dir).unwrap();
            std::fs::write(dir.join("ca.pem"), authority()).unwrap();
        }
        assert_eq!(load(Some(&file), Some(&[])).len(), 2);
        assert_eq!(load(Some(&file), Some(std::slice::from_ref(&one))).len(), 3);
        assert_eq!(load(Some(&file), Some(&[one, two])).len(), 4);
    }

    #[test]
    fn without_any_authority_on_the_system_the_built_in_ones_are_used() {
        let store = load(Some(Path::new("/nonexistent/ca.pem")), Some(&[]));
        assert_eq!(store.len(), webpki_roots::TLS_SERVER_ROOTS.len());
    }
}
