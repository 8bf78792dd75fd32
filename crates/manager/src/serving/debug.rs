//! `/debug/`: the verbosity of the log, and what there is of Go's profiles.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{HeaderValue, LOCATION};
use http::{Method, Response, StatusCode};
use http_body_util::Full;

use super::SetVerbosity;
use super::answers::{HTML, TEXT, answer, not_found, plain};

/// Go's profiles, and why there is none of them here.
#[rustfmt::skip]
const NOT_THERE: &[(&str, &str)] = &[
    ("allocs", "allocations are not sampled by this program's allocator"),
    ("block", "waiting is not recorded: all work is done by tasks on one thread"),
    ("goroutine", "there are no goroutines: all work is done by tasks on one thread"),
    ("heap", "allocations are not sampled by this program's allocator"),
    ("mutex", "waiting is not recorded: all work is done by tasks on one thread"),
    ("profile", "the program does not sample itself; use perf or samply on its host, see docs/guides/profile.md"),
    ("symbol", "profiles carry the names of functions themselves"),
    ("threadcreate", "all work is done by tasks on one thread"),
    ("trace", "there is no execution tracer: raise the verbosity at /debug/flags/v instead"),
];

/// Answers what is below `/debug/`. `body` is that of the request, if all of it has come and it is short.
pub(super) fn respond(
    set_verbosity: &SetVerbosity,
    method: &Method,
    path: &str,
    body: Option<&[u8]>,
) -> Response<Full<Bytes>> {
    match path {
        "/debug/flags/v" if *method == Method::PUT => verbosity(set_verbosity, body),
        "/debug/flags/v" => plain(StatusCode::NOT_ACCEPTABLE, "unsupported http method\n"),
        "/debug/flags" | "/debug/flags/" => flags(),
        "/debug/pprof" => moved("/debug/pprof/"),
        "/debug/pprof/" => profiles(),
        "/debug/pprof/cmdline" => command_line(),
        _ => {
            let name = path.strip_prefix("/debug/pprof/");
            let reason = name.and_then(|name| NOT_THERE.iter().find(|(known, _)| *known == name));
            reason.map_or_else(not_found, |(_, reason)| absent(reason))
        }
    }
}

fn verbosity(set: &SetVerbosity, body: Option<&[u8]>) -> Response<Full<Bytes>> {
    let Some(body) = body else {
        return plain(StatusCode::BAD_REQUEST, "error reading request body\n");
    };
    let text = String::from_utf8_lossy(body);
    match text.trim().parse::<u32>() {
        Ok(level) => {
            set(u8::try_from(level).unwrap_or(u8::MAX));
            let said = format!("successfully set klog.logging.verbosity to {level}\n");
            answer(StatusCode::OK, TEXT, said)
        }
        Err(error) => {
            let text = text.escape_debug();
            let said = format!("failed set klog.logging.verbosity {text}: {error}\n");
            answer(StatusCode::BAD_REQUEST, TEXT, said)
        }
    }
}

fn flags() -> Response<Full<Bytes>> {
    let page = "<html><head><title>/debug/flags/</title></head><body>\n\
                /debug/flags/<br>\nflags that can be changed with PUT:<br>\n<a href=\"/debug/flags/v\">v</a><br>\n\
                </body></html>\n";
    answer(StatusCode::OK, HTML, page.to_owned())
}

/// The words of the command line, with a zero byte between them.
fn command_line() -> Response<Full<Bytes>> {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    answer(StatusCode::OK, TEXT, words.join("\0"))
}

fn profiles() -> Response<Full<Bytes>> {
    let mut page = String::from(
        "<html><head><title>/debug/pprof/</title></head><body>\n/debug/pprof/<br>\n\
         <a href=\"cmdline\">cmdline</a>: the command line<br>\n",
    );
    for (name, reason) in NOT_THERE {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "{name}: not here, {reason}<br>");
    }
    page.push_str("</body></html>\n");
    answer(StatusCode::OK, HTML, page)
}

fn moved(to: &'static str) -> Response<Full<Bytes>> {
    let page = format!("<a href=\"{to}\">Found</a>.\n\n");
    let mut response = answer(StatusCode::FOUND, HTML, page);
    response
        .headers_mut()
        .insert(LOCATION, HeaderValue::from_static(to));
    response
}

fn absent(reason: &str) -> Response<Full<Bytes>> {
    let said = format!("not implemented: {reason}\n");
    answer(StatusCode::NOT_IMPLEMENTED, TEXT, said)
}
