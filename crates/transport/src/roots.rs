//! Whom to trust: the system's certificate authorities, found as Go's programs find them.

use std::path::{Path, PathBuf};

use crate::trusted::Authorities;

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

/// `SSL_CERT_FILE`: authorities in place of the system's file; and `SSL_CERT_DIR`: directories of authorities in place of
/// the system's. From an environment that is handed in.
pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> (Option<PathBuf>, Option<Vec<PathBuf>>) {
    let set = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let dirs = set("SSL_CERT_DIR").map(|dirs| {
        dirs.split(':')
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from)
            .collect()
    });
    (set("SSL_CERT_FILE").map(PathBuf::from), dirs)
}

/// The authorities to trust.
///
/// `SSL_CERT_FILE` takes the place of the system's file and `SSL_CERT_DIR` (separated by colons) that of the system's
/// directories; each leaves the other one in force, as in Go. The directories are only searched where no file was
/// found or one was named, because they repeat it. Where nothing is found, as in an image from scratch, the authorities
/// that Mozilla trusts are built in.
pub fn load(file: Option<&Path>, dirs: Option<&[PathBuf]>) -> Authorities {
    let mut authorities = Authorities::default();
    let system = file
        .is_none()
        .then(|| FILES.iter().map(Path::new).find(|path| path.exists()))
        .flatten();
    add(&mut authorities, file.or(system), None);
    match dirs {
        Some(dirs) => dirs.iter().for_each(|dir| add(&mut authorities, None, Some(dir))),
        None if system.is_none() || authorities.is_empty() => {
            DIRS.iter()
                .map(Path::new)
                .for_each(|dir| add(&mut authorities, None, Some(dir)));
        }
        None => {}
    }
    if authorities.is_empty() {
        authorities.add_anchors(webpki_roots::TLS_SERVER_ROOTS);
    }
    authorities
}

fn add(authorities: &mut Authorities, file: Option<&Path>, dir: Option<&Path>) {
    if file.is_none() && dir.is_none() {
        return;
    }
    let found = rustls_native_certs::load_certs_from_paths(file, dir);
    if !found.errors.is_empty() {
        // Their texts may repeat what is in the files.
        tracing::debug!(count = found.errors.len(), file = ?file, dir = ?dir, "Certificate authorities not read");
    }
    authorities.add(&found.certs);
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
        assert_eq!(load(Some(&file), Some(&[one.clone(), two])).len(), 4);
        std::fs::copy(&file, one.join("all.pem")).unwrap();
        assert_eq!(load(Some(&file), Some(&[one])).len(), 3, "each is kept once");
    }

    #[test]
    fn without_any_authority_on_the_system_the_built_in_ones_are_used() {
        let store = load(Some(Path::new("/nonexistent/ca.pem")), Some(&[]));
        assert_eq!(store.len(), webpki_roots::TLS_SERVER_ROOTS.len());
    }
}
