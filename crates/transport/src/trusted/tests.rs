use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

use super::*;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn named(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).unwrap()
}

fn own(params: &CertificateParams, key: &KeyPair) -> CertificateDer<'static> {
    params.self_signed(key).unwrap().der().clone()
}

fn trusting(certificates: &[CertificateDer<'static>]) -> Trusted {
    let mut authorities = Authorities::default();
    authorities.add(certificates);
    Trusted::new(authorities, provider()).unwrap()
}

fn check(trusted: &Trusted, shown: &CertificateDer<'_>, name: &str) -> Result<(), Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    // 2026-03-01
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_772_323_200));
    trusted
        .verify_server_cert(shown, &[], &name, &[], now)
        .map(|_| ())
}

fn of(change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
    let mut params = named("api.example");
    change(&mut params);
    own(&params, &KeyPair::generate().unwrap())
}

#[test]
fn a_certificate_that_is_trusted_itself_is_taken_whatever_it_says_of_authority() {
    let authority = |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let no_authority = |params: &mut CertificateParams| params.is_ca = IsCa::ExplicitNoCa;
    for shown in [of(|_| ()), of(authority), of(no_authority)] {
        check(&trusting(std::slice::from_ref(&shown)), &shown, "api.example").unwrap();
    }
    // Also one that an authority has signed that is not known.
    let key = KeyPair::generate().unwrap();
    let mut stranger = named("ca.example");
    authority(&mut stranger);
    let issuer = Issuer::new(stranger, key);
    let key = KeyPair::generate().unwrap();
    let leaf = named("api.example").signed_by(&key, &issuer).unwrap();
    check(&trusting(&[leaf.der().clone()]), leaf.der(), "api.example").unwrap();
    // Addresses are names, too.
    let by_address = own(&named("10.0.0.1"), &KeyPair::generate().unwrap());
    check(
        &trusting(std::slice::from_ref(&by_address)),
        &by_address,
        "10.0.0.1",
    )
    .unwrap();
}

#[test]
fn only_that_very_certificate_is_taken_for_its_names_time_and_use() {
    let key = KeyPair::generate().unwrap();
    let authority = |name: &str| {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let known = own(&authority("api.example"), &key);
    // The same name and the same key, but not the same certificate.
    let mut other = authority("api.example");
    other.serial_number = Some(7.into());
    let other = own(&other, &key);
    assert!(check(&trusting(std::slice::from_ref(&known)), &other, "api.example").is_err());
    check(&trusting(std::slice::from_ref(&known)), &known, "api.example").unwrap();
    assert!(check(&trusting(std::slice::from_ref(&known)), &known, "other.example").is_err());
    // In words that people know, not as an authority that is used as a server's.
    let unknown = check(&trusting(&[of(|_| ())]), &known, "api.example").unwrap_err();
    assert_eq!(unknown.to_string(), "invalid peer certificate: UnknownIssuer");
    assert!(check(&trusting(&[known]), &of(|_| ()), "api.example").is_err());

    let refused = |change: fn(&mut CertificateParams)| {
        let shown = of(|params| {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            change(params);
        });
        check(&trusting(std::slice::from_ref(&shown)), &shown, "api.example").unwrap_err()
    };
    let reason = |error| match error {
        Error::InvalidCertificate(error) => error,
        error => panic!("{error}"),
    };
    let past = reason(refused(|params| {
        params.not_after = rcgen::date_time_ymd(2001, 1, 1)
    }));
    assert_eq!(past, CertificateError::Expired);
    let future = reason(refused(|params| {
        params.not_before = rcgen::date_time_ymd(4000, 1, 1)
    }));
    assert_eq!(future, CertificateError::NotValidYet);
    let client = reason(refused(|params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    }));
    assert_eq!(client, CertificateError::InvalidPurpose);
}

#[test]
fn of_a_bundle_what_cannot_be_read_is_passed_over() {
    let good = of(|_| ());
    let broken = CertificateDer::from(vec![0x30, 0x03, 1, 2, 3]);
    let mut authorities = Authorities::default();
    authorities.add(std::slice::from_ref(&broken));
    assert!(authorities.is_empty());
    assert!(client_tls(Some(authorities)).is_err());
    check(&trusting(&[broken, good.clone()]), &good, "api.example").unwrap();
}
