//! The questions of `docs/guides/monitor.md` and the queries that answer them.

/// A question with its queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The heading, with its number.
    pub title: String,
    /// In their order.
    pub queries: Vec<Query>,
}

/// A query with what its comment says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// What is shown.
    pub title: String,
    /// The unit in brackets at the comment's end; empty: a number of things.
    pub unit: String,
    /// In PromQL.
    pub expression: String,
}

/// The questions of a page: headings of the third level that begin with a number, each with blocks of `promql` in which a
/// comment stands before each query.
#[must_use]
pub fn questions(page: &str) -> Vec<Question> {
    let mut found: Vec<Question> = Vec::new();
    let (mut is_query, mut comment) = (false, None);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            if heading.starts_with(|first: char| first.is_ascii_digit()) {
                found.push(Question {
                    title: heading.to_owned(),
                    queries: Vec::new(),
                });
            }
        } else if line.starts_with("```") {
            is_query = line == "```promql";
            comment = None;
        } else if is_query && let Some(text) = line.strip_prefix("# ") {
            comment = Some(text.to_owned());
        } else if is_query && let (Some(question), Some(comment)) = (found.last_mut(), comment.take()) {
            question.queries.push(query(&comment, line));
        }
    }
    found
}

fn query(comment: &str, expression: &str) -> Query {
    let (title, unit) = comment
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" ("))
        .unwrap_or((comment, ""));
    Query {
        title: title.to_owned(),
        unit: unit.to_owned(),
        expression: expression.to_owned(),
    }
}

/// The queries of all blocks of a page, whatever stands around them.
#[must_use]
pub fn expressions(page: &str) -> Vec<&str> {
    let mut is_query = false;
    let lines = page.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        if is_fence {
            is_query = *line == "```promql";
        }
        is_query && !is_fence && !line.starts_with('#')
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_the_title_and_the_unit_of_its_comment() {
        let page = "## Not this\n### 1. Does it run?\n```promql\n# Memory (B)\na\n# Processes\nsum(b)\n```\n\
                    ```console\n# no\nc\n```\n### Other\n";
        let found = questions(page);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].title, "1. Does it run?");
        let shown: Vec<[&str; 3]> = found[0]
            .queries
            .iter()
            .map(|it| [&*it.title, &*it.unit, &*it.expression])
            .collect();
        assert_eq!(shown, [["Memory", "B", "a"], ["Processes", "", "sum(b)"]]);
        assert_eq!(expressions(page), ["a", "sum(b)"]);
    }
}
