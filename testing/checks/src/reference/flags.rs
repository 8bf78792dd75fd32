//! The flags, group by group, from the table that parses them.

use std::fmt::Write as _;

use bowline::args::{CHECK, DOCTOR, EXPLAIN, ORPHANS, PLAN, SUPPORT_BUNDLE, VERSION, flag_table};

use crate::reference::{cell, code};

pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Flags\n\nNames, defaults and meanings are those of the Kubernetes cloud controller manager. `_` may stand for `-`. \
         Durations are written as in `1h2m3s`; lists are separated by commas, and the flag may be repeated.\n",
    );
    let of_manager = flag_table().iter().map(|group| (group.title.to_owned(), group));
    let of_commands = [
        ("plan", &PLAN),
        ("doctor", &DOCTOR),
        ("explain", &EXPLAIN),
        ("orphans", &ORPHANS),
        ("check", &CHECK),
        ("support-bundle", &SUPPORT_BUNDLE),
        ("version", &VERSION),
    ];
    let of_commands = of_commands.map(|(word, group)| (format!("Only for the command `{word}`"), group));
    for (title, group) in of_manager.chain(of_commands) {
        let _ = write!(
            page,
            "\n## {title}\n\n| flag | default | meaning |\n| --- | --- | --- |\n"
        );
        for flag in group.flags {
            let short = flag
                .short
                .map(|letter| format!("`-{letter}`, "))
                .unwrap_or_default();
            let value = flag
                .kind
                .placeholder()
                .map(|word| format!(" {word}"))
                .unwrap_or_default();
            let remark = flag
                .status
                .remark()
                .map(|remark| format!(" {remark}"))
                .unwrap_or_default();
            let _ = writeln!(
                page,
                "| {short}`--{}{value}` | {} | {}{remark} |",
                flag.name,
                code(flag.default),
                cell(flag.help)
            );
        }
    }
    page
}

#[cfg(test)]
mod parity;
