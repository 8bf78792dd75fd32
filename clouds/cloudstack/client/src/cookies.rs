//! Cookies of the API, in memory: a balancer before several management servers may tell its clients apart by one.
//!
//! All requests go to the one URL of the settings, and redirects are not followed. So of a cookie only the name and the value
//! count, whether it is over, and whether it may travel without TLS.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bowline_cloud_http::{HeaderMap, Secret};

/// The most cookies that are kept: nobody needs as many, and a server gone wild is not remembered for ever.
const MOST: usize = 32;

/// The cookies of one URL.
#[derive(Default)]
pub(crate) struct Cookies(Mutex<BTreeMap<String, String>>);

impl Cookies {
    /// Keeps what an answer sets. `is_secure`: the URL is one of https.
    pub(crate) fn keep(&self, headers: &HeaderMap, is_secure: bool) {
        for header in headers.get_all("set-cookie") {
            let Ok(text) = header.to_str() else { continue };
            let mut parts = text.split(';').map(str::trim);
            let Some((name, value)) = parts.next().and_then(|cookie| cookie.split_once('=')) else {
                continue;
            };
            let (name, value) = (name.trim(), value.trim());
            let mut is_over = name.is_empty();
            for attribute in parts {
                let (key, value) = attribute.split_once('=').unwrap_or((attribute, ""));
                is_over |= key.eq_ignore_ascii_case("secure") && !is_secure;
                let is_age = key.eq_ignore_ascii_case("max-age");
                is_over |= is_age && value.parse::<i64>().is_ok_and(|seconds| seconds <= 0);
            }
            let mut kept = self.lock();
            if is_over {
                kept.remove(name);
            } else if kept.len() < MOST || kept.contains_key(name) {
                kept.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// What goes with a request, if there is any.
    pub(crate) fn header(&self) -> Option<Secret> {
        let kept = self.lock();
        let pairs: Vec<String> = kept
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        (!pairs.is_empty()).then(|| Secret::new(pairs.join("; ")))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_http::HeaderValue;

    use super::*;

    fn after(cookies: &Cookies, set: &[&str], is_secure: bool) -> Option<String> {
        let mut headers = HeaderMap::new();
        for one in set {
            headers.append("set-cookie", HeaderValue::from_str(one).unwrap());
        }
        cookies.keep(&headers, is_secure);
        cookies.header().map(|header| header.expose().to_owned())
    }

    #[test]
    fn cookies_come_back_until_they_are_over() {
        let cookies = Cookies::default();
        assert_eq!(after(&cookies, &[], true), None);
        let set = [
            "JSESSIONID=node01; Path=/client; HttpOnly",
            "srv=b; Max-Age=60",
            "x",
        ];
        assert_eq!(
            after(&cookies, &set, true).as_deref(),
            Some("JSESSIONID=node01; srv=b")
        );
        assert_eq!(
            after(&cookies, &["JSESSIONID=node02; Secure"], true).as_deref(),
            Some("JSESSIONID=node02; srv=b")
        );
        let over = ["srv=; max-age=0", "JSESSIONID=node03; secure"];
        assert_eq!(after(&cookies, &over, false), None);
    }

    #[test]
    fn no_server_fills_the_memory() {
        let cookies = Cookies::default();
        let set: Vec<String> = (0..100).map(|number| format!("c{number}=v")).collect();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        assert_eq!(after(&cookies, &set, true).unwrap().split("; ").count(), MOST);
    }
}
