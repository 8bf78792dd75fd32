//! The log: klog's lines or JSON objects, on stderr, one write each; info lines on stdout if they are to be apart.

mod fields;
mod json;
mod klog;
mod streams;
mod verbosity;

use std::collections::BTreeMap;

use jiff::Timestamp;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber, span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::args::{LoggingFormat, LoggingOptions};
use fields::Fields;

pub use streams::{Sink, Streams};
pub use verbosity::Verbosity;

/// Starts logging for the whole process. A second call changes nothing.
///
/// Who asks for a split stream with a buffer flushes the result from time to time, and at the end.
pub fn start(options: LoggingOptions) -> (Streams, Verbosity) {
    let streams = Streams::of_process(options.split);
    let verbosity = Verbosity::new(options.verbosity);
    let log = log_with(options, verbosity.clone(), streams.clone(), Timestamp::now);
    // The only error is that somebody logs already: then that one goes on.
    let _ = tracing::subscriber::set_global_default(log);
    (streams, verbosity)
}

/// A log that writes all lines to `sink` and tells the time by `now`.
pub fn log(options: LoggingOptions, sink: Sink, now: fn() -> Timestamp) -> impl Subscriber + Send + Sync {
    log_to(options, Streams::one(sink), now)
}

/// A log that writes to `streams` and tells the time by `now`.
pub fn log_to(
    options: LoggingOptions,
    streams: Streams,
    now: fn() -> Timestamp,
) -> impl Subscriber + Send + Sync {
    let verbosity = Verbosity::new(options.verbosity);
    log_with(options, verbosity, streams, now)
}

/// The same, as talkative as `verbosity` is at the time, whatever the options say.
pub fn log_with(
    options: LoggingOptions,
    verbosity: Verbosity,
    streams: Streams,
    now: fn() -> Timestamp,
) -> impl Subscriber + Send + Sync {
    Registry::default().with(Log {
        options,
        verbosity,
        streams,
        now,
        process: std::process::id(),
    })
}

struct Log {
    options: LoggingOptions,
    verbosity: Verbosity,
    streams: Streams,
    now: fn() -> Timestamp,
    process: u32,
}

/// The crates whose lines follow the verbosity. Lines of others are about their own insides.
const OURS: &[&str] = &["bowline", "cloud_controller_manager"];

/// What these warn of is what the other side of a connection did; for the secure port that is whoever likes.
const TELL_OF_PEERS: &[&str] = &["h2::", "hyper::"];

/// From this verbosity on, other crates are shown as ours are.
const ALL_CRATES: u8 = 8;

fn is_of(crates: &[&str], metadata: &Metadata<'_>) -> bool {
    crates.iter().any(|prefix| metadata.target().starts_with(prefix))
}

impl Log {
    /// The most talkative level that is shown of a place in the code.
    fn level(&self, metadata: &Metadata<'_>) -> LevelFilter {
        let verbosity = self.verbosity(metadata);
        if is_of(TELL_OF_PEERS, metadata) && verbosity < ALL_CRATES {
            return LevelFilter::OFF;
        }
        if self.options.is_quiet {
            return LevelFilter::OFF;
        }
        if !is_of(OURS, metadata) && verbosity < ALL_CRATES {
            return LevelFilter::WARN;
        }
        match verbosity {
            2 | 3 if metadata.target() == bowline_cloud_provider::ANSWER_LOG => LevelFilter::DEBUG,
            3 if metadata.target() == bowline_cloud_provider::DATA_LOG => LevelFilter::DEBUG,
            3 if metadata.target() == bowline_manager::HTTP_LOG => LevelFilter::DEBUG,
            0..=3 => LevelFilter::INFO,
            4..=5 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        }
    }

    /// Whether an event is shown, or a span kept. Ours are kept in any case: their fields belong to every line inside of
    /// them. Others have one for each frame of a connection, which whoever reaches the secure port could have us make.
    fn is_wanted(&self, metadata: &Metadata<'_>) -> bool {
        (metadata.is_span() && is_of(OURS, metadata)) || *metadata.level() <= self.level(metadata)
    }

    fn verbosity(&self, metadata: &Metadata<'_>) -> u8 {
        let stem = metadata
            .file()
            .map(file_name)
            .and_then(|file| file.split('.').next());
        self.options
            .modules
            .iter()
            .find(|(pattern, _)| stem.is_some_and(|stem| matches(pattern, stem)))
            .map_or_else(|| self.verbosity.level(), |(_, level)| *level)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.is_wanted(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.is_wanted(metadata)
    }

    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let scope = context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root());
        let mut inherited = Fields::default();
        for span in scope {
            if let Some(of_span) = span.extensions().get::<Fields>() {
                inherited.extend(of_span);
            }
        }
        let line = Line {
            time: (self.now)(),
            process: self.process,
            level: *event.metadata().level(),
            is_fatal: event.metadata().target() == FATAL,
            file: event.metadata().file().map_or("unknown", file_name),
            line: event.metadata().line().unwrap_or(0),
            fields: fields.after(inherited),
        };
        // In text only lines with an I are info lines; JSON knows info and error only, and a warning is no error.
        let (text, is_info) = match self.options.format {
            LoggingFormat::Text => (klog::format(&line), line.level > Level::WARN),
            LoggingFormat::Json => (json::format(&line), line.level > Level::ERROR),
        };
        self.streams.write(&text, is_info && !line.is_fatal);
    }
}

/// What a line is made from.
struct Line<'a> {
    time: Timestamp,
    process: u32,
    level: Level,
    is_fatal: bool,
    file: &'a str,
    line: u32,
    fields: Fields,
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a pattern with `*` and `?` matches the whole text.
fn matches(pattern: &str, text: &str) -> bool {
    match (pattern.chars().next(), text.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => {
            let rest = &pattern[1..];
            matches(rest, text)
                || text
                    .chars()
                    .next()
                    .is_some_and(|c| matches(pattern, &text[c.len_utf8()..]))
        }
        (Some(p), Some(t)) if p == '?' || p == t => matches(&pattern[p.len_utf8()..], &text[t.len_utf8()..]),
        _ => false,
    }
}

/// The target of the last line before a process gives up: a line of its own kind, as klog's fatal ones.
pub const FATAL: &str = "bowline::fatal";

/// Logs each flag with its value, as the Go managers do from verbosity 1 on.
pub fn flags(verbosity: u8, flags: &[(&'static str, String)]) {
    if verbosity < 1 {
        return;
    }
    let sorted: BTreeMap<_, _> = flags.iter().map(|(name, value)| (*name, value)).collect();
    for (name, value) in sorted {
        tracing::info!("FLAG: --{name}={value:?}");
    }
}

#[cfg(test)]
mod tests;
