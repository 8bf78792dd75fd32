//! The dashboard, made of the queries of the guide.

use serde_json::{Value, json};

use crate::monitoring::guide::{Query, Question};

/// Where the dashboard is.
pub const DASHBOARD: &str = "deploy/chart/files/bowline.json";

/// Panels beside each other, and what a row is wide.
const BESIDE: usize = 3;
const WIDTH: usize = 24;
/// How high a panel is.
const HEIGHT: usize = 8;

/// The dashboard as Grafana imports it: a row for each question, and in it a panel for each query.
#[must_use]
pub fn dashboard(questions: &[Question]) -> String {
    let (mut panels, mut top) = (Vec::new(), 0);
    for question in questions {
        panels.push(json!({
            "type": "row", "id": panels.len() + 1, "title": question.title, "collapsed": false,
            "gridPos": { "x": 0, "y": top, "w": WIDTH, "h": 1 }, "panels": [],
        }));
        top += 1;
        for (place, query) in question.queries.iter().enumerate() {
            let (row, column) = (place / BESIDE, place % BESIDE);
            let width = WIDTH / BESIDE;
            let place = json!({ "x": column * width, "y": top + row * HEIGHT, "w": width, "h": HEIGHT });
            panels.push(panel(panels.len() + 1, query, &place));
        }
        top += question.queries.len().div_ceil(BESIDE) * HEIGHT;
    }
    let dashboard = json!({
        "title": "Bowline", "uid": "bowline", "tags": ["kubernetes", "bowline"], "schemaVersion": 39, "version": 1,
        "editable": true, "graphTooltip": 1, "refresh": "1m", "timezone": "browser",
        "time": { "from": "now-6h", "to": "now" },
        "templating": { "list": [{
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
        }] },
        "annotations": { "list": [] },
        "panels": panels,
    });
    // Nothing in it cannot be written.
    let text = serde_json::to_string_pretty(&dashboard).unwrap_or_default();
    format!("{text}\n")
}

fn panel(id: usize, query: &Query, place: &Value) -> Value {
    json!({
        "type": "timeseries", "id": id, "title": query.title, "gridPos": place,
        "datasource": source(),
        "fieldConfig": { "defaults": { "unit": unit(&query.unit), "min": 0 }, "overrides": [] },
        "options": {
            "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true },
            "tooltip": { "mode": "multi", "sort": "desc" },
        },
        "targets": [{ "refId": "A", "expr": query.expression, "datasource": source() }],
    })
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

/// Grafana's name for a unit.
fn unit(unit: &str) -> &str {
    match unit {
        "s" => "s",
        "1/s" => "ops",
        "B" => "bytes",
        _ => "short",
    }
}
