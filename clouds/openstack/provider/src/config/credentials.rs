//! The login: what the files say at the start, and whenever they change.

use std::cell::RefCell;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use bowline_cloud_http::{CredentialsError, CredentialsFile, Malformed};
use bowline_cloud_provider::{CloudConfig, Environment};
use bowline_openstack_client::{Credentials, Login};

use super::file::{File, Global};
use super::{Files, OptionError, Options, clouds_yaml};

impl Options {
    /// The login, to be followed while the program runs: in the file, and in those beside it that were read for
    /// `clouds.yaml`. Only the login is read again: a change of another option needs a new start.
    ///
    /// # Errors
    ///
    /// A file is not there any more, or holds no login by now.
    pub fn credentials_file(
        &self,
        config: &CloudConfig,
        environment: &Environment,
    ) -> Result<Option<CredentialsFile<Login>>, CredentialsError> {
        let CloudConfig::Given { path, .. } = config else {
            return Ok(None);
        };
        let (known, environment) = (self.clouds_files.clone(), environment.clone());
        let paths = iter::once(PathBuf::from(path))
            .chain(known.iter().cloned())
            .collect();
        let parse = move |contents: &[&[u8]]| {
            let (own, others) = contents
                .split_first()
                .map_or((&[][..], &[][..]), |(own, others)| (*own, others));
            let place = |path: &Path| known.iter().position(|known| known == path);
            let files = |path: &Path| {
                let contents = place(path).and_then(|place| others.get(place));
                contents
                    .map(|contents| contents.to_vec())
                    .ok_or_else(|| io::ErrorKind::NotFound.into())
            };
            login(own, &environment, &files).map_err(|error| match error {
                Unread::Own(reason) => (0, reason),
                Unread::Clouds(OptionError::Yaml { path, reason }) => {
                    (place(Path::new(&path)).map_or(0, |place| place + 1), reason)
                }
                Unread::Clouds(_) => (0, Malformed::because("it names no entry of clouds.yaml")),
            })
        };
        CredentialsFile::open_all(paths, parse).map(Some)
    }
}

/// Why files hold no login any more.
enum Unread {
    Own(Malformed),
    Clouds(OptionError),
}

fn login(contents: &[u8], environment: &Environment, files: Files<'_>) -> Result<Login, Unread> {
    let mut file = File::parse(contents).map_err(|error| Unread::Own(error.place()))?;
    if file.global.use_clouds {
        clouds_yaml::fill(&mut file.global, environment, files).map_err(Unread::Clouds)?;
    }
    Login::new(&credentials(&file.global))
        .map_err(|_| Unread::Own(Malformed::because("its credentials make no login")))
}

/// Reads files and notes which of them there are.
pub(super) fn noting<'a>(
    files: Files<'a>,
    read: &'a RefCell<Vec<PathBuf>>,
) -> impl Fn(&Path) -> io::Result<Vec<u8>> + 'a {
    move |path| {
        let contents = files(path)?;
        read.borrow_mut().push(path.to_owned());
        Ok(contents)
    }
}

pub(super) fn credentials(global: &Global) -> Credentials {
    Credentials {
        username: global.username.clone(),
        user_id: global.user_id.clone(),
        password: global.password.clone(),
        tenant_id: global.tenant_id.clone(),
        tenant_name: global.tenant_name.clone(),
        domain_id: global.domain_id.clone(),
        domain_name: global.domain_name.clone(),
        user_domain_id: global.user_domain_id.clone(),
        user_domain_name: global.user_domain_name.clone(),
        tenant_domain_id: global.tenant_domain_id.clone(),
        tenant_domain_name: global.tenant_domain_name.clone(),
        trust_id: global.trust_id.clone(),
        trustee_id: global.trustee_id.clone(),
        trustee_password: global.trustee_password.clone(),
        application_credential_id: global.application_credential_id.clone(),
        application_credential_name: global.application_credential_name.clone(),
        application_credential_secret: global.application_credential_secret.clone(),
        token: global.token.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const OPTIONS: &str = "[Global]\nuse-clouds\nauth-url = http://a:5000/v3\npassword = P\n";

    fn clouds(user: &str) -> String {
        format!("clouds: {{one: {{auth: {{username: {user}, domain_id: d, project_id: p}}}}}}")
    }

    #[tokio::test(start_paused = true)]
    async fn the_login_follows_the_file_and_what_stands_in_clouds_yaml() {
        let folder = tempfile::tempdir().unwrap();
        let (own, beside) = (
            folder.path().join("cloud.conf"),
            folder.path().join("clouds.yaml"),
        );
        let text = format!("{OPTIONS}clouds-file = {}\n", beside.display());
        std::fs::write(&own, &text).unwrap();
        std::fs::write(&beside, clouds("anna")).unwrap();
        let config = CloudConfig::Given {
            path: own.display().to_string(),
            contents: text.clone().into_bytes(),
        };
        let environment = Environment::default();
        let options = Options::read(&config, &environment, &|path| std::fs::read(path)).unwrap();
        let file = options.credentials_file(&config, &environment).unwrap().unwrap();
        let now = async |path: &Path, contents: &str| {
            std::fs::write(path, contents).unwrap();
            tokio::time::advance(Duration::from_secs(10)).await;
            format!("{:?}", file.current())
        };
        assert!(now(&beside, &clouds("berta")).await.contains("berta"));
        let named = text.replace("password", "username = carla\npassword");
        assert!(now(&own, &named).await.contains("carla"));
        // What makes no login changes nothing.
        assert!(now(&beside, "clouds: {}").await.contains("carla"));
        assert!(now(&own, "[Global]\n").await.contains("carla"));
    }
}
