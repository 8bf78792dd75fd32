//! klog's text form: `Lmmdd hh:mm:ss.uuuuuu threadid file:line] "message" key="value"`.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use tracing::Level;

use super::Line;
use super::fields::Value;

pub(super) fn format(line: &Line<'_>) -> String {
    let letter = match line.level {
        _ if line.is_fatal => 'F',
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let time = line.time.to_zoned(TimeZone::UTC);
    let mut text = format!(
        "{letter}{:02}{:02} {:02}:{:02}:{:02}.{:06} {:>7} {}:{}] ",
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.subsec_nanosecond() / 1000,
        line.process,
        line.file,
        line.line
    );
    // Writing to a String cannot fail.
    let _ = if line.is_fatal || line.fields.message.starts_with("FLAG: ") {
        // klog has no quotes around these.
        write!(text, "{}", line.fields.message)
    } else {
        write!(text, "{:?}", line.fields.message)
    };
    for (key, value) in &line.fields.others {
        let _ = match value {
            Value::Text(value) => write!(text, " {key}={value:?}"),
            Value::Bool(value) => write!(text, " {key}={value}"),
            Value::Int(value) => write!(text, " {key}={value}"),
            Value::Unsigned(value) => write!(text, " {key}={value}"),
            Value::Float(value) => write!(text, " {key}={value}"),
        };
    }
    text.push('\n');
    text
}
