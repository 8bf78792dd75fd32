//! The file of a Secret as the kubelet mounts it: the name is a link to `..data/NAME`, and `..data` is a link to a
//! directory, which is replaced as a whole.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use secrecy::SecretString;

struct Mount(tempfile::TempDir);

impl Mount {
    fn new(contents: &str) -> Self {
        let mount = Self(tempfile::tempdir().unwrap());
        mount.swap("1", contents);
        symlink("..data/token", mount.path()).unwrap();
        mount
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("token")
    }

    /// Swaps the link, as the kubelet does.
    fn swap(&self, version: &str, contents: &str) {
        let root = self.0.path();
        fs::create_dir(root.join(version)).unwrap();
        fs::write(root.join(version).join("token"), contents).unwrap();
        symlink(version, root.join("..data_tmp")).unwrap();
        fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
    }
}

fn token(contents: &[u8]) -> Result<SecretString, Malformed> {
    let text = std::str::from_utf8(contents).map_err(|_| Malformed::because("it is no text"))?;
    match text.trim().strip_prefix("token=") {
        Some(token) => Ok(SecretString::from(token)),
        None => Err(Malformed {
            what: "there is no token",
            key: None,
            line: Some(1),
        }),
    }
}

fn open(mount: &Mount) -> CredentialsFile<SecretString> {
    CredentialsFile::open(mount.path(), token).unwrap()
}

async fn later() {
    tokio::time::sleep(LOOK_EVERY).await;
}

#[tokio::test(start_paused = true)]
async fn a_swapped_link_brings_the_new_credentials_within_ten_seconds() {
    let mount = Mount::new("token=old-secret");
    let file = open(&mount);
    let before = file.current();
    mount.swap("2", "token=new-secret");
    assert!(Arc::ptr_eq(&before, &file.current()), "no look at every call");
    later().await;
    assert_eq!(file.current().expose_secret(), "new-secret");
    let after = file.current();
    later().await;
    assert!(Arc::ptr_eq(&after, &file.current()), "nothing has changed");
}

#[tokio::test(start_paused = true)]
async fn the_same_contents_in_another_place_are_no_change() {
    let mount = Mount::new("token=secret");
    let file = open(&mount);
    let before = file.current();
    mount.swap("2", "token=secret");
    later().await;
    assert!(Arc::ptr_eq(&before, &file.current()));
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_the_next_call_looks_at_once() {
    let mount = Mount::new("token=old");
    let file = open(&mount);
    mount.swap("2", "token=new");
    file.distrust();
    assert_eq!(file.current().expose_secret(), "new");
}

#[tokio::test(start_paused = true)]
async fn who_refuses_for_ever_has_the_file_read_once_a_second() {
    let mount = Mount::new("token=old");
    let reads = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    // Every look finds other contents, so that each is one call of the parser.
    let file = CredentialsFile::open(mount.path(), move |_: &[u8]| {
        Ok(counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
    })
    .unwrap();
    for round in 0..100 {
        mount.swap(&format!("round-{round}"), &format!("token={round}"));
        file.distrust();
        file.current();
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    // The first at the start, the others one second apart.
    assert_eq!(reads.load(std::sync::atomic::Ordering::SeqCst), 1 + 10);
}

#[tokio::test(start_paused = true)]
async fn a_pair_of_which_one_half_is_new_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    let write = |path: &Path, text: &str| fs::write(path, text).unwrap();
    write(&one, "a");
    write(&two, "a");
    let pair = CredentialsFile::open_all(vec![one.clone(), two.clone()], |contents| {
        if contents[0] == contents[1] {
            Ok(String::from_utf8(contents[0].to_vec()).unwrap())
        } else {
            Err((1, Malformed::because("is of another pair")))
        }
    })
    .unwrap();
    write(&one, "b");
    later().await;
    assert_eq!(*pair.current(), "a");
    write(&two, "b");
    later().await;
    assert_eq!(*pair.current(), "b");
    write(&two, "c");
    let error = CredentialsFile::open_all(vec![one, two.clone()], |_| {
        Err::<(), _>((1, Malformed::because("is of another pair")))
    })
    .unwrap_err();
    let expected = format!("credentials file {}: is of another pair", two.display());
    assert_eq!(error.to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn bad_contents_leave_the_old_credentials_in_force_until_there_are_good_ones() {
    let mount = Mount::new("token=old");
    let file = open(&mount);
    let log = Log::default();
    // While there is but one subscriber, a line that another thread meets first is off for all of them.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let guard = tracing::subscriber::set_default(log.clone());
    mount.swap("2", "tokne=hunter2");
    for _ in 0..3 {
        later().await;
        assert_eq!(file.current().expose_secret(), "old");
    }
    fs::remove_file(mount.path()).unwrap();
    later().await;
    assert_eq!(file.current().expose_secret(), "old");
    symlink("..data/token", mount.path()).unwrap();
    mount.swap("3", "token=good");
    later().await;
    assert_eq!(file.current().expose_secret(), "good");
    drop(guard);
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "each problem once, and its end: {lines:?}");
    assert!(lines[0].contains("there is no token (line 1)"), "{lines:?}");
    assert!(!lines.concat().contains("hunter2"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_does_not_begin_without_credentials() {
    let mount = Mount::new("password: hunter2");
    let error = CredentialsFile::open(mount.path(), token)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("token: there is no token (line 1)") && !error.contains("hunter2"),
        "{error}"
    );
    let missing = mount.0.path().join("nothing");
    let error = CredentialsFile::open(missing, token).unwrap_err();
    assert!(matches!(
        error,
        CredentialsError::Unreadable {
            reason: std::io::ErrorKind::NotFound,
            ..
        }
    ));
    fs::write(mount.path(), vec![b'a'; 1 + usize::try_from(LARGEST).unwrap()]).unwrap();
    assert!(
        CredentialsFile::open(mount.path(), token).is_err(),
        "another file by mistake"
    );
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().contains("credentials")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn fmt::Debug| {
            line.push_str(&format!("{field}={value:?} "));
        });
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
