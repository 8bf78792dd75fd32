//! The events of the loops and of the clouds, from the tables they are raised from.

use std::fmt::Write as _;

use bowline_plan::NoteKind;

use crate::cell;

fn kind(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::Normal => "Normal",
        NoteKind::Warning => "Warning",
    }
}

pub(crate) fn page() -> String {
    let mut page = String::from(
        "# Events\n\n## Of the loops\n\n| reason | type | on | message | meaning | what to do |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for event in bowline_controllers::events::EVENTS {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} |",
            event.reason,
            kind(event.kind),
            event.object,
            cell(event.message),
            cell(event.meaning),
            cell(event.remedy)
        );
    }
    page.push_str(
        "\n## Of the clouds, on Services\n\nAn event is raised when its text is new, and again only after it has not held for a while.\n",
    );
    let cloudscale = bowline_cloudscale::event_table().iter();
    let rows = cloudscale.map(|it| (it.reason, it.kind, it.meaning, it.remedy));
    table(&mut page, "cloudscale.ch", rows);
    let paper = bowline_paper::event_table().iter();
    table(
        &mut page,
        "Paper",
        paper.map(|it| (it.reason, it.kind, it.meaning, it.remedy)),
    );
    page
}

fn table<'a>(
    page: &mut String,
    cloud: &str,
    rows: impl Iterator<Item = (&'a str, NoteKind, &'a str, &'a str)>,
) {
    let _ = writeln!(
        page,
        "\n### {cloud}\n\n| reason | type | meaning | what to do |\n| --- | --- | --- | --- |"
    );
    for (reason, loudness, meaning, remedy) in rows {
        let (kind, meaning, remedy) = (kind(loudness), cell(meaning), cell(remedy));
        let _ = writeln!(page, "| `{reason}` | {kind} | {meaning} | {remedy} |");
    }
}
