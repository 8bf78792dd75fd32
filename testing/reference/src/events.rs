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
        "\n## Of cloudscale.ch, on Services\n\nAn event is raised when its text is new, and again only after it has not held for a while.\n\n\
         | reason | type | meaning | what to do |\n| --- | --- | --- | --- |\n",
    );
    for event in bowline_cloudscale::event_table() {
        let (reason, kind) = (event.reason, kind(event.kind));
        let _ = writeln!(
            page,
            "| `{reason}` | {kind} | {} | {} |",
            cell(event.meaning),
            cell(event.remedy)
        );
    }
    page
}
