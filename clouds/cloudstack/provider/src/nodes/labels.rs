//! What the cloud's names become as values of labels, whose form Kubernetes prescribes ("Labels and Selectors", "Syntax and
//! character set").

/// The most characters of a value.
const LONGEST: usize = 63;

/// An offering's name as an instance type: letters and digits only, as Nodes have had it since the first manager.
pub(crate) fn instance_type(offering: &str) -> String {
    offering
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(LONGEST)
        .collect()
}

/// A name as it is if it can stand in a label. Else each character that cannot becomes a hyphen; what the value must not
/// begin or end with goes, and what is too much.
pub(crate) fn value(name: &str) -> String {
    let legal: String = name
        .chars()
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => letter,
            _ => '-',
        })
        .collect();
    let is_edge = |letter: char| !letter.is_ascii_alphanumeric();
    let begun = legal.trim_start_matches(is_edge);
    // Every character is one byte by now.
    let cut = &begun[..begun.len().min(LONGEST)];
    cut.trim_end_matches(is_edge).to_owned()
}

/// The same as Leaseweb's manager has it (`sanitizeLabel` in its `cloudstack/util.go`): each character that cannot be becomes an
/// underscore.
pub(crate) fn leaseweb(name: &str) -> String {
    let is_legal = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let legal: String = name
        .chars()
        .map(|letter| if is_legal(letter) { letter } else { '_' })
        .collect();
    let ends = ['-', '_', '.'];
    let value = legal.trim_matches(ends);
    value[..value.len().min(LONGEST)].trim_matches(ends).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_instance_type_has_letters_and_digits_only() {
        for (offering, expected) in [
            ("Small Instance-2.x_é", "SmallInstance2x"),
            ("k8s.large", "k8slarge"),
            ("Medium 4c/8g", "Medium4c8g"),
            ("", ""),
        ] {
            assert_eq!(instance_type(offering), expected);
        }
        assert_eq!(instance_type(&"Ab1".repeat(40)).len(), 63);
    }

    #[test]
    fn a_legal_name_stays_and_any_other_becomes_legal() {
        for (name, expected) in [
            ("Zurich-1", "Zurich-1"),
            ("a.b_c", "a.b_c"),
            ("", ""),
            ("Zürich 1", "Z-rich-1"),
            (" Lab (old) ", "Lab--old"),
            ("---", ""),
            ("東京", ""),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
        assert_eq!(value(&"z".repeat(80)).len(), 63);
        // A cut may uncover another end that is not allowed.
        assert_eq!(value(&format!("{}--x", "z".repeat(62))), "z".repeat(62));
    }

    #[test]
    fn labels_of_leasewebs_manager_have_underscores() {
        for (name, expected) in [
            ("Small Instance-2.x_é", "Small_Instance-2.x"),
            ("Zürich 1", "Z_rich_1"),
            (" Lab (old) ", "Lab__old"),
            ("", ""),
        ] {
            assert_eq!(leaseweb(name), expected, "{name}");
        }
        assert_eq!(leaseweb(&format!("{}--x", "z".repeat(62))), "z".repeat(62));
    }

    proptest! {
        #[test]
        fn every_value_is_legal(name in ".{0,90}") {
            let value = value(&name);
            let is_legal = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            prop_assert!(value.len() <= LONGEST && value.chars().all(is_legal));
            let ends = [value.chars().next(), value.chars().last()];
            prop_assert!(ends.into_iter().flatten().all(|letter| letter.is_ascii_alphanumeric()));
        }
    }
}
