//! How answers are put.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;

pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const HTML: &str = "text/html; charset=utf-8";

pub(super) fn not_found() -> Response<Full<Bytes>> {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}

pub(super) fn plain(code: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    answer(code, TEXT, text.to_owned())
}

pub(super) fn answer(code: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}
