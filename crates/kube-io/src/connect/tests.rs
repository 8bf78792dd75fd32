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

#[tokio::test]
async fn without_any_hint_the_error_names_the_flags() {
    let error = configuration(&target(&[])).await.err().unwrap().to_string();
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
    let error = configuration(&options).await.err().unwrap().to_string();
    assert!(
        error.starts_with("--kubeconfig `/nowhere/kubeconfig`: "),
        "{error}"
    );
}

#[tokio::test]
async fn master_takes_the_place_of_the_kubeconfigs_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, KUBECONFIG).unwrap();
    let mut options = ConnectOptions {
        kubeconfig: Some(path),
        ..target(&[])
    };
    let (config, _) = configuration(&options).await.unwrap();
    assert_eq!(config.cluster_url, "http://10.0.0.1:6443/");
    options.master = Some("10.0.0.2:8080".into());
    let (config, _) = configuration(&options).await.unwrap();
    assert_eq!(config.cluster_url, "http://10.0.0.2:8080/");
    assert!(config.auth_info.token.is_some());
}

#[tokio::test]
async fn a_master_that_is_no_address_is_refused() {
    let options = ConnectOptions {
        master: Some("ftp://a".into()),
        ..target(&[])
    };
    let error = configuration(&options).await.err().unwrap().to_string();
    assert_eq!(error, "--master `ftp://a`: is not an HTTP address");
}

#[tokio::test]
async fn a_pod_uses_its_service_account() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = target(&[
        ("KUBERNETES_SERVICE_HOST", "fd00::1"),
        ("KUBERNETES_SERVICE_PORT", "443"),
    ]);
    options.service_account = folder.path().to_owned();
    let error = configuration(&options).await.err().unwrap().to_string();
    assert!(error.contains("token`: "), "{error}");
    std::fs::write(folder.path().join("token"), "t").unwrap();
    std::fs::write(folder.path().join("ca.crt"), "c").unwrap();
    let (config, _) = configuration(&options).await.unwrap();
    assert_eq!(config.cluster_url, "https://[fd00::1]:443/");
    assert!(config.auth_info.token_file.unwrap().ends_with("/token"));
}

#[tokio::test]
async fn proxies_come_from_the_environment_that_is_given() {
    let mut options = target(&[("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", "10.0.0.0/8")]);
    let mut has_proxy = async |master: &str| {
        options.master = Some(master.into());
        configuration(&options).await.unwrap().1.is_some()
    };
    assert!(has_proxy("https://api.example.com").await);
    assert!(!has_proxy("https://10.1.2.3:6443").await);
    assert!(!has_proxy("https://127.0.0.1:6443").await);
    assert!(!has_proxy("http://api.example.com").await);
}

#[tokio::test]
async fn an_unusable_proxy_is_refused_without_repeating_its_password() {
    let mut options = target(&[("HTTPS_PROXY", "socks5://user:secret@proxy")]);
    options.master = Some("https://api.example.com".into());
    let error = configuration(&options).await.err().unwrap().to_string();
    assert!(
        error.contains("socks5://") && !error.contains("secret"),
        "{error}"
    );
}
