use super::*;

fn target(variables: &[(&str, &str)]) -> ConnectOptions {
    ConnectOptions {
        environment: variables.iter().copied().collect(),
        ..ConnectOptions::default()
    }
}

const KUBECONFIG: &str = r"
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: 'http://10.0.0.1:6443'}}]
users: [{name: u, user: {token: secret}}]
";

/// What comes of a kubeconfig.
fn reach_by(kubeconfig: &str, mut options: ConnectOptions) -> Result<Reach, ConnectError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig).unwrap();
    options.kubeconfig = Some(path);
    reach(&options)
}

fn told(outcome: Result<Reach, ConnectError>) -> String {
    outcome.err().unwrap().to_string()
}

#[tokio::test]
async fn without_any_hint_the_error_names_the_flags() {
    let error = told(reach(&target(&[])));
    assert!(
        error.contains("--kubeconfig") && error.contains("--master"),
        "{error}"
    );
}

#[tokio::test]
async fn a_kubeconfig_that_does_not_exist_is_named() {
    let options = ConnectOptions {
        kubeconfig: Some("/nowhere/kubeconfig".into()),
        ..target(&[])
    };
    let error = told(reach(&options));
    assert!(
        error.starts_with("--kubeconfig `/nowhere/kubeconfig`: "),
        "{error}"
    );
}

#[tokio::test]
async fn master_takes_the_place_of_the_kubeconfigs_server() {
    let found = reach_by(KUBECONFIG, target(&[])).unwrap();
    assert_eq!(found.server, "http://10.0.0.1:6443/");
    for text in [KUBECONFIG.to_owned(), KUBECONFIG.replace("server:", "namespace:")] {
        let options = ConnectOptions {
            master: Some("10.0.0.2:8080".into()),
            ..target(&[])
        };
        let found = reach_by(&text, options).unwrap();
        assert_eq!(found.server, "http://10.0.0.2:8080/");
        assert_eq!(found.credentials.authorization().unwrap(), "Bearer secret");
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_and_its_password_not_repeated() {
    let of_master = |address: &str| {
        let options = ConnectOptions {
            master: Some(address.into()),
            ..target(&[])
        };
        told(reach(&options))
    };
    assert_eq!(of_master("ftp://a"), "--master `ftp://a`: is not an HTTP address");
    for address in [
        "ftp://anna:hunter2@a",
        "https://anna:hunter2@",
        "https://anna:hunter2@a:x",
    ] {
        let error = of_master(address);
        assert!(
            error.starts_with("--master: ") && !error.contains("hunter2"),
            "{error}"
        );
        let error = told(reach_by(
            &KUBECONFIG.replace("http://10.0.0.1:6443", address),
            target(&[]),
        ));
        assert!(
            error.contains(": `server` ") && !error.contains("hunter2"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn user_and_password_in_an_address_are_used_and_not_shown() {
    let text = KUBECONFIG.replace("http://10.0.0.1:6443", "https://anna:p%40ss@api.example:6443/x");
    let found = reach_by(&text, target(&[])).unwrap();
    assert_eq!(found.server, "https://api.example:6443/x");
    let shown = |text: &str| {
        let found = reach_by(text, target(&[])).unwrap();
        found.credentials.authorization().unwrap()
    };
    assert_eq!(shown(&text), "Bearer secret");
    let basic = "Basic YW5uYTpwQHNz";
    assert_eq!(shown(&text.replace("token: secret", "")), basic);
    let named = KUBECONFIG.replace("token: secret", "username: anna, password: p@ss");
    assert_eq!(shown(&named), basic);
    assert!(!format!("{:?}", shown(&named)).contains("YW5"));
}

#[tokio::test]
async fn a_pod_uses_its_service_account() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = target(&[
        ("KUBERNETES_SERVICE_HOST", "fd00::1"),
        ("KUBERNETES_SERVICE_PORT", "443"),
    ]);
    options.service_account = folder.path().to_owned();
    let error = told(reach(&options));
    assert!(error.contains("token`: "), "{error}");
    std::fs::write(folder.path().join("token"), "t").unwrap();
    std::fs::write(folder.path().join("ca.crt"), "hunter2").unwrap();
    let error = told(reach(&options));
    assert!(
        error.contains("ca.crt`: ") && error.contains("no certificate") && !error.contains("hunter2"),
        "{error}"
    );
    let own = rcgen::generate_simple_self_signed(["kubernetes".to_owned()]).unwrap();
    std::fs::write(folder.path().join("ca.crt"), own.cert.pem()).unwrap();
    let found = reach(&options).unwrap();
    assert_eq!(found.server, "https://[fd00::1]:443/");
    assert_eq!(found.credentials.authorization().unwrap(), "Bearer t");
    assert_eq!(found.credentials.ends(), [], "it does not tell");
}

#[tokio::test]
async fn the_ends_of_token_and_certificate_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = target(&[
        ("KUBERNETES_SERVICE_HOST", "192.0.2.1"),
        ("KUBERNETES_SERVICE_PORT", "443"),
    ]);
    options.service_account = folder.path().to_owned();
    // Its claims are {"exp":1790000000}.
    std::fs::write(folder.path().join("token"), "e30.eyJleHAiOjE3OTAwMDAwMDB9.x").unwrap();
    let own = rcgen::generate_simple_self_signed(["kubernetes".to_owned()]).unwrap();
    std::fs::write(folder.path().join("ca.crt"), own.cert.pem()).unwrap();
    let found = reach(&options).unwrap();
    assert_eq!(found.credentials.ends(), [("kubernetes-token", 1_790_000_000)]);

    let mut params = rcgen::CertificateParams::new(vec!["me".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2030, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let place = |text: String| credentials::Place::Contents(text.into_bytes());
    let identity = credentials::identity(place(certificate), place(key.serialize_pem())).unwrap();
    let credentials = Credentials {
        identity: Some(identity),
        ..Credentials::default()
    };
    let expected = [("kubernetes-client-certificate", 1_893_456_000)];
    assert_eq!(credentials.ends(), expected);
}

#[tokio::test]
async fn proxies_come_from_the_environment_that_is_given() {
    let mut options = target(&[("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", "10.0.0.0/8")]);
    let mut has_proxy = |master: &str| {
        options.master = Some(master.into());
        let found = reach(&options).unwrap();
        found.proxies.proxy_for(&found.server).is_some()
    };
    assert!(has_proxy("https://api.example.com"));
    assert!(!has_proxy("https://10.1.2.3:6443"));
    assert!(!has_proxy("https://127.0.0.1:6443"));
    assert!(!has_proxy("http://api.example.com"));
}

#[tokio::test]
async fn the_proxy_of_a_kubeconfig_wins_over_the_environment() {
    for scheme in ["http", "https", "socks5", "socks5h"] {
        let named = format!("http://10.0.0.1:6443', proxy-url: '{scheme}://user:secret@proxy:9");
        let text = KUBECONFIG.replace("http://10.0.0.1:6443", &named);
        let found = reach_by(
            &text,
            target(&[("HTTP_PROXY", "http://other"), ("NO_PROXY", "*")]),
        )
        .unwrap();
        let proxy = found.proxies.proxy_for(&found.server).unwrap();
        assert_eq!(proxy.uri().to_string(), format!("{scheme}://proxy:9/"));
    }
}

#[tokio::test]
async fn an_unusable_proxy_is_refused_without_repeating_its_password() {
    let mut options = target(&[("HTTPS_PROXY", "socks4://user:secret@proxy")]);
    options.master = Some("https://api.example.com".into());
    let named = "http://10.0.0.1:6443', proxy-url: 'ftp://user:secret@proxy";
    let text = KUBECONFIG.replace("http://10.0.0.1:6443", named);
    for (error, origin) in [
        (told(reach(&options)), "HTTPS_PROXY"),
        (
            told(reach_by(&text, target(&[]))),
            "`proxy-url` of the kubeconfig",
        ),
    ] {
        assert!(
            error.contains(origin) && error.contains("socks5://") && !error.contains("secret"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_parts_of_a_kubeconfig_is_told_by_key_and_without_contents() {
    let own = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("secret"), "hunter2hunter2").unwrap();
    std::fs::write(path("tls.crt"), own.cert.pem()).unwrap();
    let (secret, certificate) = (path("secret"), path("tls.crt"));
    // "hunter2hunter2" in base64.
    let encoded = "aHVudGVyMmh1bnRlcjI=";
    let table = [
        (
            "client-certificate-data: 'hunter2!', client-key-data: hunter2".to_owned(),
            "`client-certificate-data`: it is not base64",
        ),
        (
            format!("client-certificate-data: {encoded}, client-key-data: {encoded}"),
            "`client-certificate-data`: there is no certificate",
        ),
        (
            format!("client-certificate: {certificate}, client-key-data: {encoded}"),
            "there is no private key",
        ),
        (
            format!("client-certificate: {certificate}, client-key: {secret}"),
            "secret: there is no private key",
        ),
        (
            format!("client-certificate: {secret}, client-key: {secret}"),
            "secret: there is no certificate",
        ),
        (
            format!("client-certificate: {certificate}"),
            "`client-key` is not",
        ),
        (
            format!("client-key-data: {encoded}"),
            "`client-certificate` is not",
        ),
        (format!("tokenFile: {secret}-not-there"), "secret-not-there: "),
        (
            "token: \"hunter2\\nhunter2\"".to_owned(),
            "`token`: it holds characters that no token has",
        ),
    ];
    for (user, expected) in table {
        let text = KUBECONFIG.replace("token: secret", &user);
        let error = reach_by(&text, target(&[])).err().unwrap();
        let shown = format!("{error} {error:?}");
        assert!(error.to_string().contains(expected), "{user}: {error}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("aHVudG"),
            "{user}: {shown}"
        );
    }
    for (cluster, expected) in [
        (
            "certificate-authority-data: hunter2!",
            "`certificate-authority-data`: it is not base64",
        ),
        (
            "certificate-authority-data: aHVudGVyMmh1bnRlcjI=",
            "`certificate-authority-data`: there is no certificate",
        ),
    ] {
        let text = KUBECONFIG.replace("{server:", &format!("{{{cluster}, server:"));
        let error = told(reach_by(&text, target(&[])));
        assert!(
            error.contains(expected) && !error.contains("hunter2"),
            "{cluster}: {error}"
        );
    }
}

#[tokio::test]
async fn an_auth_provider_is_refused() {
    let text = KUBECONFIG.replace(
        "token: secret",
        "auth-provider: {name: gcp, config: {access-token: hunter2}}",
    );
    let error = told(reach_by(&text, target(&[])));
    assert!(
        error.contains("`auth-provider` is not supported") && !error.contains("hunter2"),
        "{error}"
    );
}

#[tokio::test]
async fn whom_requests_are_made_for_is_said_in_headers() {
    let user = "token: secret, as: anna, as-uid: '', as-groups: [one, two], as-user-extra: {a/b: [x, y]}";
    let found = reach_by(&KUBECONFIG.replace("token: secret", user), target(&[])).unwrap();
    let headers: Vec<_> = found
        .impersonation
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    let expected = [
        ("impersonate-user", "anna"),
        ("impersonate-group", "one"),
        ("impersonate-group", "two"),
        ("impersonate-extra-a%2fb", "x"),
        ("impersonate-extra-a%2fb", "y"),
    ];
    assert_eq!(headers, expected);
    let user = "token: secret, as: \"hunter2\\nx\"";
    let error = told(reach_by(&KUBECONFIG.replace("token: secret", user), target(&[])));
    assert!(
        error.ends_with("`as` holds characters that no header has"),
        "{error}"
    );
}
