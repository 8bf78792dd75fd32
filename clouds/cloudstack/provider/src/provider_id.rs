//! `external-cloudstack://<virtual machine id>`: how a Node names its virtual machine.

use bowline_cloudstack_client::VirtualMachineId;
use uuid::Uuid;

/// The name of this provider and the scheme of its provider IDs. In every Node's object, so fixed for ever.
pub const PROVIDER_NAME: &str = "external-cloudstack";

/// The scheme that Cluster API's provider, Leaseweb's manager and the provider inside of old Kubernetes write.
const OTHER_NAME: &str = "cloudstack";

const SEPARATOR: &str = "://";

/// What a provider ID says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// The virtual machine of this cloud that has this ID.
    Instance(&'a str),
    /// Something of another cloud.
    Foreign,
    /// Nothing that can be looked for: the name of the Node has to do.
    Unreadable,
}

/// Reads a provider ID: the part behind the first `://` counts, whatever comes after a second one; slashes before the id,
/// as in Cluster API's `cloudstack:///<id>`, do not. A bare UUID is one too.
pub fn parse(text: &str) -> Reference<'_> {
    let instance = |id| match str::trim_start_matches(id, '/') {
        "" => Reference::Unreadable,
        id => Reference::Instance(id),
    };
    let mut parts = text.split(SEPARATOR);
    match (parts.next(), parts.next()) {
        (Some(PROVIDER_NAME | OTHER_NAME), Some(id)) => instance(id),
        (_, Some(_)) => Reference::Foreign,
        // Old Nodes have it without a scheme. What is no UUID may mean anything.
        (Some(bare), None) if Uuid::try_parse(bare).is_ok() => instance(bare),
        _ => Reference::Unreadable,
    }
}

/// The virtual machine that a provider ID names, in lower case, if it is one of this cloud.
pub(crate) fn instance_id(text: &str) -> Option<VirtualMachineId> {
    match parse(text) {
        Reference::Instance(id) => Some(id.to_ascii_lowercase().into()),
        Reference::Foreign | Reference::Unreadable => None,
    }
}

/// Writes a provider ID.
#[must_use]
pub fn format(instance: &VirtualMachineId) -> String {
    format!("{PROVIDER_NAME}{SEPARATOR}{instance}")
}

/// The same as Leaseweb's manager writes it, which reads no other one.
pub(crate) fn format_leaseweb(instance: &VirtualMachineId) -> String {
    format!("{OTHER_NAME}{SEPARATOR}/{instance}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0b6f6a52-93a1-4f6d-9d6a-5d3f0f2a7c11";

    #[test]
    fn own_schemes_and_bare_uuids_name_an_instance_and_other_schemes_are_foreign() {
        let upper = ID.to_uppercase();
        let instance = Reference::Instance;
        let table = [
            (format!("external-cloudstack://{ID}"), instance(ID)),
            (format!("cloudstack:///{ID}"), instance(ID)),
            (format!("cloudstack://{ID}"), instance(ID)),
            (ID.to_owned(), instance(ID)),
            (upper.clone(), instance(&upper)),
            ("external-cloudstack://b://c".to_owned(), instance("b")),
            ("external-cloudstack://".to_owned(), Reference::Unreadable),
            ("cloudstack:///".to_owned(), Reference::Unreadable),
            (String::new(), Reference::Unreadable),
            ("external-cloudstack-u".to_owned(), Reference::Unreadable),
            ("i-1".to_owned(), Reference::Unreadable),
            ("aws:///eu/i-1".to_owned(), Reference::Foreign),
            (format!("aws://{ID}"), Reference::Foreign),
            (format!("External-CloudStack://{ID}"), Reference::Foreign),
            ("a://b://c".to_owned(), Reference::Foreign),
            ("://b".to_owned(), Reference::Foreign),
        ];
        for (text, expected) in table {
            assert_eq!(parse(&text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(id in any::<u128>()) {
            let id = VirtualMachineId::from(Uuid::from_u128(id).to_string());
            let text = format(&id);
            prop_assert_eq!(parse(&text), Reference::Instance(id.as_str()));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,50}") {
            let _ = parse(&text);
        }
    }
}
