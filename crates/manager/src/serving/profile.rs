//! `/debug/pprof/profile`: where the processor's time goes, sampled for a while.
//!
//! Behind the feature `cpu-profile`, because the sampler interrupts the process with signals and brings a good part of a
//! megabyte of code for reading symbols.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use pprof::ProfilerGuardBuilder;
use pprof::protos::Message as _;

use super::respond::{TEXT, answer, parameters};

/// Samples per second, as Go's profiler takes them.
const FREQUENCY: i32 = 100;
/// How long it samples if the request does not say, and at most.
const SECONDS: u64 = 30;
const MAX_SECONDS: u64 = 300;

/// Samples for as long as the query says; one profile at a time.
pub(super) async fn respond(query: &str) -> Response<Full<Bytes>> {
    let seconds = parameters(query)
        .find(|(name, _)| name == "seconds")
        .and_then(|(_, value)| value.parse().ok())
        .filter(|seconds| *seconds > 0)
        .unwrap_or(SECONDS);
    match sample(Duration::from_secs(seconds.min(MAX_SECONDS))).await {
        Ok(profile) => {
            let mut response = Response::new(Full::new(Bytes::from(profile)));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            headers.insert(
                "content-disposition",
                HeaderValue::from_static("attachment; filename=\"profile\""),
            );
            response
        }
        Err(error) => {
            let text = format!("Could not enable CPU profiling: {error}\n");
            answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, text)
        }
    }
}

async fn sample(time: Duration) -> pprof::Result<Vec<u8>> {
    let guard = ProfilerGuardBuilder::default()
        .frequency(FREQUENCY)
        .blocklist(&["libc", "libgcc", "pthread", "vdso"])
        .build()?;
    tokio::time::sleep(time).await;
    Ok(guard.report().build()?.pprof()?.encode_to_vec())
}
