//! `/tag-manager/v1/tags`, and the tags of everything else.

use std::collections::BTreeSet;

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Call, reply};
use crate::behaviour::TagFilter;
use crate::error::ApiError;
use crate::model::{Tag, has_tag};
use crate::state::State;
use crate::wire;

/// The longest name and the longest value, in characters.
const MAX_LENGTH: usize = 100;

/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 250;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewTag {
    name: String,
    is_billing_tag: bool,
    description: Option<String>,
}

impl Call<'_> {
    pub(super) fn list_tags(&self) -> Answer {
        let names = self.query("name");
        let tags = self.state.tags.values();
        let tags = tags.filter(|tag| names.is_empty() || names.contains(&tag.name));
        reply(
            StatusCode::OK,
            tags.map(|tag| wire::tag(self.state, tag)).collect::<Value>(),
        )
    }

    pub(super) fn create_tag(&mut self) -> Answer {
        let wish: NewTag = self.body()?;
        let mut errors = Vec::new();
        if !is_word(&wish.name) {
            errors.push(format!("name: {:?} is not allowed", wish.name));
        }
        check_description(wish.description.as_deref(), &mut errors);
        ApiError::if_any(errors)?;
        let name = &wish.name;
        if !self.state.insert_tag(name, wish.description, wish.is_billing_tag) {
            return Err(ApiError::conflict(format!("A tag with the name {name} exists.")));
        }
        let made = &self.state.tags[&wish.name];
        reply(StatusCode::CREATED, wire::tag(self.state, made))
    }
}

/// Checks tags that are to be assigned: names that exist, words that are allowed, no name twice.
pub(super) fn check(state: &State, tags: &[Tag], errors: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for Tag { name, value } in tags {
        if !is_word(name) {
            errors.push(format!("tags: the name {name:?} is not allowed"));
        } else if !state.tags.contains_key(name) {
            errors.push(format!("tags: there is no tag {name}"));
        }
        if let Some(value) = value.as_deref().filter(|value| !is_word(value)) {
            errors.push(format!("tags: the value {value:?} of {name} is not allowed"));
        }
        if !seen.insert(name) {
            errors.push(format!("tags: {name} is there twice"));
        }
    }
}

pub(super) fn check_description(description: Option<&str>, errors: &mut Vec<String>) {
    if description.is_some_and(|text| text.chars().count() > MAX_DESCRIPTION) {
        errors.push(format!("description: longer than {MAX_DESCRIPTION} characters"));
    }
}

/// The vendor's pattern `[A-zÀ-ú0-9_-]{1,100}`, whose first range has some signs between the letters.
fn is_word(text: &str) -> bool {
    let is_allowed = |c: char| matches!(c, 'A'..='z' | 'À'..='ú' | '0'..='9' | '-');
    (1..=MAX_LENGTH).contains(&text.chars().count()) && text.chars().all(is_allowed)
}

/// Whether tags pass conditions of the form `name` or `name.value`.
pub(super) fn pass(filter: TagFilter, conditions: &[String], tags: &[Tag]) -> bool {
    let mut fits = conditions.iter().map(|condition| {
        let (name, value) = match condition.split_once('.') {
            Some((name, value)) => (name, Some(value)),
            None => (condition.as_str(), None),
        };
        has_tag(tags, name, value)
    });
    match filter {
        TagFilter::All => fits.all(|fit| fit),
        TagFilter::Any => conditions.is_empty() || fits.any(|fit| fit),
        TagFilter::Ignored => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_tags_have_no_dot_slash_or_blank() {
        for (text, is_allowed) in [
            ("cloud-provider-phoenixnap-auto", true),
            ("Größe_1", true),
            // One letter too far: the vendor's range ends with the ú.
            ("Grün", false),
            (&"x".repeat(100), true),
            (&"x".repeat(101), false),
            ("", false),
            ("shop.checkout", false),
            ("shop/checkout", false),
            ("a b", false),
        ] {
            assert_eq!(is_word(text), is_allowed, "{text:?}");
        }
    }

    #[test]
    fn conditions_split_at_the_first_dot() {
        let tags = [Tag::new("a", "b"), Tag::new("c", "d")];
        let pass = |filter, conditions: &[&str]| {
            let conditions: Vec<String> = conditions.iter().map(|&it| it.to_owned()).collect();
            pass(filter, &conditions, &tags)
        };
        assert!(pass(TagFilter::All, &["a.b", "c"]));
        assert!(!pass(TagFilter::All, &["a.b", "c.x"]));
        assert!(!pass(TagFilter::All, &["a.b.c"]));
        assert!(pass(TagFilter::Any, &["a.b", "c.x"]));
        assert!(!pass(TagFilter::Any, &["x"]));
        assert!(pass(TagFilter::Ignored, &["x"]));
    }
}
