//! The parameters of one request.

use std::str::FromStr;

use bytes::Bytes;
use http::{Method, Request, header};

use crate::error::ApiError;
use crate::model::Tag;

/// Parameters as they came. Names are looked up without regard to case, as the server does.
#[derive(Clone, Debug)]
pub(crate) struct Params {
    /// The command, for texts.
    pub(crate) command: String,
    all: Vec<(String, String)>,
}

impl Params {
    /// Those of the query and, with a POST, of the form.
    pub(crate) fn of(request: &Request<Bytes>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let mut all: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|it| it.to_str().ok()).unwrap_or_default();
        if *request.method() == Method::POST && content_type.starts_with("application/x-www-form-urlencoded")
        {
            all.extend(url::form_urlencoded::parse(request.body()).into_owned());
        }
        let mut params = Self {
            command: String::new(),
            all,
        };
        params.command = params.raw("command").unwrap_or_default().to_owned();
        params
    }

    pub(crate) fn all(&self) -> &[(String, String)] {
        &self.all
    }

    /// A value, which may be empty.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        let found = self
            .all
            .iter()
            .rev()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// A value that is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.raw(name).filter(|value| !value.is_empty())
    }

    /// A value that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.text(name).ok_or_else(|| {
            ApiError::new(
                431,
                format!(
                    "Unable to execute API command {} due to missing parameter {name}",
                    self.command.to_lowercase()
                ),
            )
        })
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|value| value.eq_ignore_ascii_case("true"))
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let parse = |value: &str| {
            value
                .trim()
                .parse()
                .map_err(|_| ApiError::unknown(&self.command, name, value))
        };
        self.text(name).map(parse).transpose()
    }

    /// A whole number in the range of ports. The text is the server's, which spells the name in its own way.
    pub(crate) fn port(&self, name: &str, spelled: &str) -> Result<Option<u16>, ApiError> {
        let Some(number) = self.number::<i64>(name)? else {
            return Ok(None);
        };
        match u16::try_from(number) {
            Ok(port) if port > 0 => Ok(Some(port)),
            _ => Err(ApiError::parameter(format!(
                "{spelled} is an invalid value: {number}"
            ))),
        }
    }

    /// The parts of a list, `None` of an empty one.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<&str>> {
        let value = self.raw(name)?;
        Some(
            value
                .split(',')
                .map(str::trim)
                .filter(|it| !it.is_empty())
                .collect(),
        )
    }

    /// The tags of `tags[0].key`, `tags[0].value` and so on.
    pub(crate) fn tags(&self) -> Vec<Tag> {
        (0..)
            .map_while(|index| {
                let key = self.raw(&format!("tags[{index}].key"))?;
                let value = self.raw(&format!("tags[{index}].value"));
                Some(Tag {
                    key: key.to_owned(),
                    value: value.unwrap_or_default().to_owned(),
                })
            })
            .collect()
    }
}
