//! The login: what the files say at the start, and whenever they change.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use bowline_cloud_http::Malformed;
use bowline_cloud_provider::Environment;
use bowline_openstack_client::Login;

use super::clouds_yaml;
use super::error::OptionError;
use super::file::{File, Files};

/// Why files hold no login any more.
pub(super) enum Unread {
    Own(Malformed),
    Clouds(OptionError),
}

pub(super) fn login(contents: &[u8], environment: &Environment, files: Files<'_>) -> Result<Login, Unread> {
    let mut file = File::parse(contents).map_err(|error| Unread::Own(error.place()))?;
    if file.global.use_clouds {
        clouds_yaml::fill(&mut file.global, environment, files).map_err(Unread::Clouds)?;
    }
    Login::new(&file.global.credentials)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bowline_cloud_provider::CloudConfig;

    use super::*;
    use crate::config::Options;

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
