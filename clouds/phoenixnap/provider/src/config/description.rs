//! The description that bought blocks get, so that people see in the portal what a block is for.

use bowline_cloud_provider::ServiceKey;

/// The longest description that the API takes, in characters (IP API, "IP Blocks").
const LONGEST: usize = 250;

/// What may stand in the text for something of the Service.
const PLACES: [&str; 3] = ["{namespace}", "{name}", "{cluster}"];

/// A text in which `{namespace}`, `{name}` and `{cluster}` stand for those of the Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDescription(String);

impl BlockDescription {
    /// Reads the text; `None` if it is empty.
    ///
    /// # Errors
    ///
    /// It has braces around something else.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let rest = PLACES
            .iter()
            .fold(text.to_owned(), |rest, place| rest.replace(place, ""));
        if rest.contains(['{', '}']) {
            return Err(format!("only {} may stand in braces", PLACES.join(", ")));
        }
        Ok(Some(text)
            .filter(|text| !text.is_empty())
            .map(|text| Self(text.to_owned())))
    }

    /// The description of a block for this Service of the cluster with this UID. What is too long for the API is cut off.
    pub(crate) fn of(&self, service: &ServiceKey, cluster: &str) -> String {
        let values = [&*service.namespace, &*service.name, cluster];
        // No value has braces in it, so none is replaced twice.
        let text = PLACES
            .iter()
            .zip(values)
            .fold(self.0.clone(), |text, (place, value)| text.replace(place, value));
        text.chars().take(LONGEST).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_stands_where_the_text_says() {
        let described = |text: &str| {
            let description = BlockDescription::parse(text).unwrap().unwrap();
            description.of(&ServiceKey::new("shop", "web"), "0b2f")
        };
        assert_eq!(described("{namespace}/{name} of {cluster}"), "shop/web of 0b2f");
        assert_eq!(described("Kubernetes"), "Kubernetes");
        assert_eq!(described(&"ü".repeat(300)).chars().count(), 250);
        assert_eq!(BlockDescription::parse(""), Ok(None));
        for wrong in ["{service}", "{name", "name}", "{Name}", "{}"] {
            assert!(BlockDescription::parse(wrong).is_err(), "{wrong}");
        }
    }
}
