use super::*;

const SECRET: &str = "hunter2-7f3a9c1e5b2d";

const GOOD: &str = "\
apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context: {cluster: c, user: u}
clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443
users:
- name: u
  user:
    token: SECRET
";

fn parsed(text: &str) -> Result<(Cluster, User), String> {
    select(parse(text.as_bytes(), Path::new("/etc/kube"))?)
}

/// What of the good file is replaced by what, and what is told of it.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "    token: SECRET",
        "    token: [SECRET]",
        "`token`: a text is expected (line 14)",
    ),
    (
        "    token: SECRET",
        "    token: {SECRET: SECRET}",
        "`token`: a text is expected (line 14)",
    ),
    (
        "    token: SECRET",
        "    token: SECRET\n    token: SECRET",
        "a key stands twice; keep one of the two (line 15)",
    ),
    (
        "    token: SECRET",
        "\ttoken: SECRET",
        "a tab stands where YAML allows blanks only; indent with blanks (line 14)",
    ),
    ("    token: SECRET", "    token: \"SECRET", "not valid YAML"),
    ("    token: SECRET", "    token: 'SECRET", "not valid YAML"),
    (
        "    token: SECRET",
        "   token: SECRET\n    tokenFile: x",
        "not valid YAML",
    ),
    ("    token: SECRET", "    token: SECRET: SECRET", "not valid YAML"),
    ("    token: SECRET", "    token: *SECRET", "an alias"),
    ("    token: SECRET", "    token: @SECRET", "not valid YAML"),
    ("    token: SECRET", "    token: `SECRET", "not valid YAML"),
    ("    token: SECRET", "    token: %SECRET", "not valid YAML"),
    ("    token: SECRET", "    token: \"\\qSECRET\"", "not valid YAML"),
    (
        "    token: SECRET",
        "    token: SECRET\n    as-groups: SECRET",
        "`as-groups`: a list is expected (line 15)",
    ),
    (
        "    token: SECRET",
        "    token: SECRET\n    exec: SECRET",
        "`exec`: a mapping",
    ),
    (
        "    token: SECRET",
        "    exec: {command: x, env: [{name: SECRET, value: [SECRET]}]}",
        "a text is expected (line 14)",
    ),
    (
        "    token: SECRET",
        "    exec: {interactiveMode: SECRET}",
        "`interactiveMode`: not one of the words",
    ),
    (
        "    token: SECRET",
        "    exec: {env: [{value: SECRET}]}",
        "an entry has no `name`",
    ),
    (
        "  user:\n    token: SECRET",
        "  user: SECRET",
        "`user`: a mapping of keys to values is expected (line 13)",
    ),
    (
        "  user:\n    token: SECRET",
        "  user: [SECRET]",
        "`user`: a mapping of keys to values is expected (line 13)",
    ),
    (
        "- name: u\n  user:\n    token: SECRET",
        "- SECRET",
        "a mapping of keys to values is expected (line 12)",
    ),
    (
        "- name: u\n  user:\n    token: SECRET",
        "  SECRET: x",
        "a list is expected (line 12)",
    ),
    ("- name: u\n", "- nam: SECRET\n", "an entry has no `name`"),
    (
        "    server: https://10.0.0.1:6443",
        "    server: [SECRET]",
        "`server`: a text is expected (line 10)",
    ),
    (
        "    server: https://10.0.0.1:6443",
        "    insecure-skip-tls-verify: SECRET",
        "`insecure-skip-tls-verify`: true or false is expected (line 10)",
    ),
    (
        "  context: {cluster: c, user: u}",
        "  context: SECRET",
        "`context`: a mapping",
    ),
    ("cluster: c, user: u", "user: SECRET", "an entry has no `cluster`"),
    (
        "cluster: c, user: u",
        "cluster: SECRET, user: u",
        "`cluster` of the current context names no entry of `clusters`",
    ),
    (
        "current-context: here",
        "current-context: SECRET",
        "`current-context` names no entry of `contexts`",
    ),
    (
        "current-context: here",
        "SECRET: here",
        "`current-context` is not set",
    ),
    (
        "kind: Config",
        "kind: [SECRET]",
        "`kind`: a text is expected (line 2)",
    ),
    ("apiVersion: v1", "SECRET", ""),
    ("apiVersion: v1", "- SECRET", ""),
    (
        "apiVersion: v1",
        "kind: SECRET\n---\nkind: SECRET2\n---",
        "its documents differ",
    ),
    ("apiVersion: v1", "{SECRET", ""),
    ("apiVersion: v1", "\0SECRET", ""),
    ("apiVersion: v1", "\u{1}SECRET: \u{7}", ""),
    ("apiVersion: v1", "!!SECRET SECRET: x", ""),
];

#[test]
fn no_mistake_shows_what_stands_in_the_file() {
    parsed(GOOD).unwrap();
    let mut faults = Vec::new();
    for (good, bad, expected) in MISTAKES {
        assert!(GOOD.contains(good), "{good}");
        let text = GOOD.replacen(good, bad, 1).replace("SECRET", SECRET);
        let Err(told) = parsed(&text) else {
            if !expected.is_empty() {
                faults.push(format!("{bad:?} was read"));
            }
            continue;
        };
        if !told.contains(expected) {
            faults.push(format!("{bad:?}\n  expected {expected}\n  got      {told}"));
        }
        for fragment in SECRET.as_bytes().windows(6) {
            let fragment = std::str::from_utf8(fragment).unwrap();
            assert!(!told.contains(fragment), "{bad:?}: {told}");
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // Cut off anywhere, and what is no text at all.
    for length in 0..GOOD.len() {
        if let Err(told) = parsed(&GOOD.replace("SECRET", SECRET)[..length]) {
            assert!(!told.contains("hunter"), "{length}: {told}");
        }
    }
    let error = parse(b"\x80\xffhunter2-7f3a9c1e5b2d", Path::new(""))
        .err()
        .unwrap();
    assert_eq!(error, "it is no kubeconfig: the file is not a text in UTF-8");
}

#[test]
fn paths_are_relative_to_the_folder_of_the_file() {
    let text = GOOD
        .replace("    server:", "    certificate-authority: pki/ca.crt\n    server:")
        .replace(
            "    token: SECRET",
            "    client-certificate: c.crt\n    client-key: /k\n    tokenFile: t\n    exec: {command: bin/get}",
        );
    let (cluster, user) = parsed(&text).unwrap();
    assert_eq!(
        cluster.certificate_authority.as_deref(),
        Some("/etc/kube/pki/ca.crt")
    );
    assert_eq!(user.client_certificate.as_deref(), Some("/etc/kube/c.crt"));
    assert_eq!(user.client_key.as_deref(), Some("/k"));
    assert_eq!(user.token_file.as_deref(), Some("/etc/kube/t"));
    assert_eq!(user.exec.unwrap().command.as_deref(), Some("/etc/kube/bin/get"));
    let text = GOOD.replace("    token: SECRET", "    exec: {command: get}");
    let (_, user) = parsed(&text).unwrap();
    assert_eq!(user.exec.unwrap().command.as_deref(), Some("get"));
}

#[test]
fn several_documents_are_merged_and_a_user_may_be_missing() {
    let text = format!(
        "current-context: here\n---\n{}",
        GOOD.replace("current-context: here", "current-context: there")
    );
    assert!(parsed(&text).is_ok());
    let (_, user) = parsed(&GOOD.replace("- name: u", "- name: other")).unwrap();
    assert!(user.token.is_none());
    // Keys that nobody knows are passed over, as by the Go managers.
    assert!(parsed(&format!("{GOOD}\nlater: {{x: 1}}\n")).is_ok());
}

#[test]
fn a_path_that_leads_nowhere_is_shown_and_a_token_in_its_place_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    for (line, key) in [
        (format!("tokenFile: {SECRET}"), "tokenFile"),
        (format!("tokenFile: {SECRET}/a/b"), "tokenFile"),
        (format!("tokenFile: /{SECRET}/a"), "tokenFile"),
        (
            format!("client-key: {SECRET}\n    client-certificate: config"),
            "client-key",
        ),
    ] {
        std::fs::write(&path, GOOD.replace("token: SECRET", &line)).unwrap();
        let error = read(&path).err().unwrap();
        assert!(error.contains(key) && !error.contains(SECRET), "{error}");
    }
    for missing in ["/etc/not-there/token", "pki/client.key", "client.key"] {
        let line = format!("tokenFile: {missing}");
        std::fs::write(&path, GOOD.replace("token: SECRET", &line)).unwrap();
        let shown = folder.path().join(missing);
        let error = format!(
            "`tokenFile` names the file `{}`, which does not exist",
            shown.display()
        );
        assert_eq!(read(&path).err().unwrap(), error);
    }
    std::fs::write(folder.path().join("t"), SECRET).unwrap();
    for good in ["tokenFile: t", "tokenFile: /var/not-there"] {
        std::fs::write(&path, GOOD.replace("token: SECRET", good)).unwrap();
        read(&path).unwrap();
    }
}

#[test]
fn a_plugin_is_told_of_the_cluster_only_if_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.crt"), "an authority").unwrap();
    let cluster = "    certificate-authority: ca.crt\n    proxy-url: http://proxy\n    tls-server-name: api\n    \
                   extensions: [{name: other, extension: 1}, {name: client.authentication.k8s.io/exec, extension: {a: b}}]\n    server:";
    let text = GOOD.replace("    server:", cluster);
    let told = |asked: &str| {
        let exec = format!("exec: {{command: get, interactiveMode: Always{asked}}}");
        let text = text.replace("token: SECRET", &exec);
        let (_, user) = select(parse(text.as_bytes(), folder.path())?)?;
        Ok::<_, String>(user.exec.unwrap().cluster)
    };
    assert_eq!(told(""), Ok(None));
    assert_eq!(told(", provideClusterInfo: false"), Ok(None));
    let expected = json!({
        "server": "https://10.0.0.1:6443",
        "certificate-authority-data": "YW4gYXV0aG9yaXR5",
        "proxy-url": "http://proxy",
        "tls-server-name": "api",
        "config": {"a": "b"},
    });
    assert_eq!(told(", provideClusterInfo: true"), Ok(Some(expected)));
    std::fs::remove_file(folder.path().join("ca.crt")).unwrap();
    let error = told(", provideClusterInfo: true").unwrap_err();
    assert!(
        error.starts_with("`certificate-authority` cannot be read"),
        "{error}"
    );
}
