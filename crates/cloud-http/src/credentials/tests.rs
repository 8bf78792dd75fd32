//! The file of a Secret as the kubelet mounts it: the name is a link to `..data/NAME`, and `..data` is a link to a
//! directory, which is replaced as a whole.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::Secret;

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

fn token(contents: &[u8]) -> Result<Secret, Malformed> {
    let text = std::str::from_utf8(contents).map_err(|_| Malformed::because("it is no text"))?;
    match text.trim().strip_prefix("token=") {
        Some(token) => Ok(Secret::new(token)),
        None => Err(Malformed {
            what: "there is no token",
            line: Some(1),
        }),
    }
}

fn open(mount: &Mount) -> CredentialsFile<Secret> {
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
    assert_eq!(file.current().expose(), "new-secret");
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
    assert_eq!(file.current().expose(), "new");
}

#[tokio::test(start_paused = true)]
async fn bad_contents_leave_the_old_credentials_in_force_until_there_are_good_ones() {
    let mount = Mount::new("token=old");
    let file = open(&mount);
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    mount.swap("2", "tokne=hunter2");
    for _ in 0..3 {
        later().await;
        assert_eq!(file.current().expose(), "old");
    }
    fs::remove_file(mount.path()).unwrap();
    later().await;
    assert_eq!(file.current().expose(), "old");
    symlink("..data/token", mount.path()).unwrap();
    mount.swap("3", "token=good");
    later().await;
    assert_eq!(file.current().expose(), "good");
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
